package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/simd/asm/lanes"
)

// storeVector and storeWords write sixteen float32, or bfloat16; a row's last are masked.
func storeVector(v VecPhysical, to Mem, last bool) {
	if last {
		VMOVUPS(v, K1, to)
	} else {
		VMOVUPS(v, to)
	}
}

func storeWords(v Op, to Mem, last bool) {
	if last {
		VMOVDQU16(v, K1, to)
	} else {
		VMOVDQU16(v, to)
	}
}

// stageSums puts the first sums to memory, from where storeStaged writes them.
func stageSums(stage Mem, n int) {
	for i, sum := range sums[:n] {
		VMOVUPS(sum, stage.Offset(64*i))
	}
}

// storeStaged writes a row of bfloat16 that lies in the slots at stage, for processors that do not round and for a dst of float32. Neither
// is so frequent that each shape had a loop of its own.
func storeStaged(f fields, stage Mem, room GPPhysical, pairs bool) {
	from, to, runs, loads := at, end, tmp, room
	mask, second := K2, K4
	name := stageName(pairs)
	Label(name)
	LEAQ(stage, from)
	f.load("runs", runs)
	SUBQ(f.mem("dstWhole"), dst)
	KXNORD(mask, mask, mask)
	Label(name + "run")
	ADDQ(f.mem("unused"), from)
	f.load("each", loads)
	MOVQ(dst, to)
	Label(name + "load")
	CMPQ(loads, U8(1))
	JNE(LabelRef(name + "put"))
	CMPQ(runs, U8(1))
	JNE(LabelRef(name + "put"))
	SUBQ(f.mem("dstShift"), to)
	KMOVD(K1, mask)
	Label(name + "put")
	even, odd := sums[0], sums[1]
	VMOVUPS(Mem{Base: from}, even)
	block := 64
	if pairs {
		VMOVUPS(Mem{Base: from, Disp: 64}, odd)
		block = 128
	}
	TESTQ(U32(modeBF16), f.mem("mode"))
	JZ(LabelRef(name + "wide"))
	if pairs {
		lanes.JoinBF16(even, odd, x, y)
		VMOVDQU16(even, mask, Mem{Base: to})
	} else {
		lanes.ToBF16(even, x)
		VPMOVDW(x, mask, Mem{Base: to})
	}
	ADDQ(U8(block/2), to)
	JMP(LabelRef(name + "next"))
	Label(name + "wide")
	if pairs {
		lanes.Interleave(even, odd, x, y)
		KSHIFTRD(U8(16), mask, second)
		VMOVUPS(odd, second, Mem{Base: to, Disp: 64})
	}
	VMOVUPS(even, mask, Mem{Base: to})
	ADDQ(U32(block), to)
	Label(name + "next")
	ADDQ(U32(block), from)
	DECQ(loads)
	JNZ(LabelRef(name + "load"))
	ADDQ(f.mem("dstHead"), dst)
	DECQ(runs)
	JNZ(LabelRef(name + "run"))
}

func stageName(pairs bool) string {
	if pairs {
		return "pairs"
	}
	return "singles"
}

package lanes

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	. "github.com/mmcloughlin/avo/reg"
)

// The processor's own rounding to bfloat16 (AVX512_BF16), which the assembler does not
// know. Registers are chosen after the program is written, so the instructions stand by
// name until then and are replaced by their bytes at the end.
//
// They round to nearest even and keep NaN, as simd.ToBF16 does; only numbers below the
// least normal one, 1.2e-38, become zero.
//
// Their sum of products of pairs, VDPBF16PS, is not here: on Emerald Rapids it takes two
// cycles, as long as the four instructions that widen and add two rows.
const (
	roundPair = "VCVTNE2PS2BF16"
	roundOne  = "VCVTNEPS2BF16"
)

func init() {
	pass.Compile = pass.Concat(pass.Compile, pass.FunctionPass(encode))
}

// RoundPair rounds sixteen numbers of low and sixteen of high to the 32 of to.
func RoundPair(low, high, to Op) { native(roundPair, to, low, high) }

// RoundOne rounds the sixteen numbers of from to the Y register to.
func RoundOne(from, to Op) { native(roundOne, to, from) }

func native(name string, to Op, from ...Op) {
	Instruction(&ir.Instruction{
		Opcode: name, Operands: append(from, to), Inputs: from, Outputs: []Op{to},
		ISA: []string{"AVX512BF16"},
	})
}

// encode replaces the instructions of a function that stand by name.
func encode(f *ir.Function) error {
	var nodes []ir.Node
	for _, n := range f.Nodes {
		if i, ok := n.(*ir.Instruction); ok && (i.Opcode == roundPair || i.Opcode == roundOne) {
			nodes = append(nodes, words(i)...)
			continue
		}
		nodes = append(nodes, n)
	}
	f.Nodes = nodes
	return nil
}

// words is an instruction as its six bytes: EVEX, 512 bits, map 0F38, W0, opcode 72.
func words(i *ir.Instruction) []ir.Node {
	number := func(k int) byte { return byte(i.Operands[k].(Physical).PhysicalIndex()) }
	rm, v, prefix := number(0), byte(0), byte(2) // F3
	if i.Opcode == roundPair {
		v, prefix = number(1), 3 // F2
	}
	to := number(len(i.Operands) - 1)
	// The upper bits of register numbers are stored inverted.
	b := [6]byte{
		0x62,
		^(to>>3&1<<7|rm>>4&1<<6|rm>>3&1<<5|to>>4&1<<4)&0xf0 | 2,
		^(v&15)<<3&0x78 | 4 | prefix,
		0x40 | ^(v>>1)&8,
		0x72,
		0xc0 | to&7<<3 | rm&7,
	}
	text := i.Opcode
	for k, op := range i.Operands {
		text += map[bool]string{true: " ", false: ", "}[k == 0] + op.Asm()
	}
	return []ir.Node{
		ir.NewComment(text),
		&ir.Instruction{Opcode: "LONG", Operands: []Op{U32(uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16 | uint32(b[3])<<24)}},
		&ir.Instruction{Opcode: "WORD", Operands: []Op{U16(uint16(b[4]) | uint16(b[5])<<8)}},
	}
}

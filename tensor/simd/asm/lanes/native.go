package lanes

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	. "github.com/mmcloughlin/avo/reg"
)

// The processor's own instructions for bfloat16 (AVX512_BF16), which the assembler does
// not know. Registers are chosen after the program is written, so the instructions stand
// by name until then and are replaced by their bytes at the end.
//
// They round to nearest even and keep NaN, as simd.ToBF16 does; only numbers below the
// least normal one, 1.2e-38, are taken for zeros and become zeros.
const (
	roundPair = "VCVTNE2PS2BF16"
	roundOne  = "VCVTNEPS2BF16"
	dotPairs  = "VDPBF16PS"
	dotPair   = "VDPBF16PS.BCST"
)

// opcodes of the instructions, with their mandatory prefix as EVEX counts it.
var opcodes = map[string]struct{ prefix, opcode byte }{
	roundPair: {3, 0x72}, // F2
	roundOne:  {2, 0x72}, // F3
	dotPairs:  {2, 0x52},
	dotPair:   {2, 0x52},
}

func init() {
	pass.Compile = pass.Concat(pass.Compile, pass.FunctionPass(encode))
}

// RoundPair rounds sixteen numbers of low and sixteen of high to the 32 of to.
func RoundPair(low, high, to Op) { native(roundPair, []Op{low, high}, to) }

// RoundOne rounds the sixteen numbers of from to the Y register to.
func RoundOne(from, to Op) { native(roundOne, []Op{from}, to) }

// DotPairs adds to each float32 of sum two products of bfloat16 numbers:
//
//	sum_i += x_2i+1 · y_2i+1, then sum_i += x_2i · y_2i
//
// x, a register or memory, and y are 32 numbers each. The products are exact. Rounding is to
// nearest even, whatever the mode; denormals of x, y and sum are taken for zeros, and
// a sum that is one becomes zero.
//
// On Emerald Rapids it takes the place of four vector instructions, two cycles, so it saves only
// where both x and y would have to be widened.
func DotPairs(x, y, sum Op) { native(dotPairs, []Op{x, y, sum}, sum) }

// DotPairsBroadcast is DotPairs with the two numbers at x for all pairs of x.
func DotPairsBroadcast(x Mem, y, sum Op) { native(dotPair, []Op{x, y, sum}, sum) }

// native is an instruction that reads from and writes to, which may be the last of from.
func native(name string, from []Op, to Op) {
	operands := from
	if from[len(from)-1] != to {
		operands = append(from[:len(from):len(from)], to)
	}
	Instruction(&ir.Instruction{
		Opcode: name, Operands: operands, Inputs: append([]Op(nil), from...), Outputs: []Op{to},
		ISA: []string{"AVX512BF16"},
	})
}

// encode replaces the instructions of a function that stand by name.
func encode(f *ir.Function) error {
	var nodes []ir.Node
	for _, n := range f.Nodes {
		if i, ok := n.(*ir.Instruction); ok && opcodes[i.Opcode].opcode != 0 {
			nodes = append(nodes, words(i)...)
			continue
		}
		nodes = append(nodes, n)
	}
	f.Nodes = nodes
	return nil
}

// words is an instruction as its bytes, in words as long as possible.
func words(i *ir.Instruction) []ir.Node {
	text := i.Opcode
	for k, op := range i.Operands {
		text += map[bool]string{true: " ", false: ", "}[k == 0] + op.Asm()
	}
	nodes := []ir.Node{ir.NewComment(text)}
	add := func(name string, value Op) {
		nodes = append(nodes, &ir.Instruction{Opcode: name, Operands: []Op{value}})
	}
	b := machineCode(i)
	for ; len(b) >= 4; b = b[4:] {
		add("LONG", U32(uint32(b[0])|uint32(b[1])<<8|uint32(b[2])<<16|uint32(b[3])<<24))
	}
	for ; len(b) >= 2; b = b[2:] {
		add("WORD", U16(uint16(b[0])|uint16(b[1])<<8))
	}
	for ; len(b) > 0; b = b[1:] {
		add("BYTE", U8(b[0]))
	}
	return nodes
}

// machineCode is an instruction's bytes: EVEX, 512 bits, map 0F38, W0.
func machineCode(i *ir.Instruction) []byte {
	number := func(k int) byte { return byte(i.Operands[k].(Physical).PhysicalIndex()) }
	to, v := number(len(i.Operands)-1), byte(0)
	if len(i.Operands) == 3 {
		v = number(1)
	}
	var x, b, spread byte // bits of the index, the base or register, and whether a word is spread
	var rest []byte
	if m, ok := i.Operands[0].(Mem); ok {
		unit := 64
		if i.Opcode == dotPair {
			unit, spread = 4, 0x10
		}
		x, b, rest = address(m, to&7, unit)
	} else {
		r := number(0)
		x, b, rest = r>>4&1, r>>3&1, []byte{0xc0 | to&7<<3 | r&7}
	}
	// The upper bits of register numbers are stored inverted.
	code := opcodes[i.Opcode]
	return append([]byte{
		0x62,
		^(to>>3&1<<7|x<<6|b<<5|to>>4&1<<4)&0xf0 | 2,
		^(v&15)<<3&0x78 | 4 | code.prefix,
		0x40 | spread | ^(v>>1)&8,
		code.opcode,
	}, rest...)
}

// address is the upper bits of a memory operand's index and base, and its bytes: ModRM, SIB and
// the displacement, which is one byte if it counts units.
func address(m Mem, reg byte, unit int) (x, b byte, bytes []byte) {
	base := byte(m.Base.(Physical).PhysicalIndex())
	mod, disp := byte(0x80), []byte{byte(m.Disp), byte(m.Disp >> 8), byte(m.Disp >> 16), byte(m.Disp >> 24)}
	switch n := m.Disp / unit; {
	case m.Disp == 0 && base&7 != 5:
		mod, disp = 0, nil
	case m.Disp%unit == 0 && n == int(int8(n)):
		mod, disp = 0x40, []byte{byte(n)}
	}
	bytes = []byte{mod | reg<<3 | base&7}
	if m.Index != nil || base&7 == 4 {
		index, scale := byte(4), byte(0) // none
		if m.Index != nil {
			index = byte(m.Index.(Physical).PhysicalIndex())
			scale = map[uint8]byte{1: 0, 2: 1, 4: 2, 8: 3}[m.Scale]
		}
		x = index >> 3 & 1
		bytes = []byte{mod | reg<<3 | 4, scale<<6 | index&7<<3 | base&7}
	}
	return x, base >> 3 & 1, append(bytes, disp...)
}

package lanes

import (
	"bytes"
	"encoding/hex"
	"testing"

	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// The bytes that an assembler which knows the instructions makes of them (GNU as 2.40).
func TestMachineCode(t *testing.T) {
	for _, c := range []struct {
		name string
		ops  []Op
		want string
	}{
		{dotPairs, []Op{Z1, Z2, Z3}, "62f26e4852d9"},
		{dotPairs, []Op{Z31, Z16, Z9}, "62127e4052cf"},
		{dotPairs, []Op{Z9, Z31, Z16}, "62c2064052c1"},
		{dotPairs, []Op{Mem{Base: RAX}, Z2, Z3}, "62f26e485218"},
		{dotPairs, []Op{Mem{Base: RBP, Disp: 64}, Z17, Z30}, "626276405275" + "01"},
		{dotPairs, []Op{Mem{Base: R13}, Z17, Z30}, "624276405275" + "00"},
		{dotPairs, []Op{Mem{Base: RSP, Disp: 8128}, Z17, Z30}, "62627640527424" + "7f"},
		{dotPairs, []Op{Mem{Base: R12, Disp: 8192}, Z17, Z30}, "6242764052b424" + "00200000"},
		{dotPairs, []Op{Mem{Base: R9, Index: R15, Scale: 8, Disp: -12}, Z1, Z8}, "62127648" + "5284f9f4ffffff"},
		{dotPairs, []Op{Mem{Base: RCX, Index: RDX, Scale: 2, Disp: -64}, Z1, Z8}, "62727648" + "524451ff"},
		{dotPair, []Op{Mem{Base: RAX}, Z2, Z3}, "62f26e585218"},
		{dotPair, []Op{Mem{Base: R11, Index: RAX, Scale: 4, Disp: 12}, Z20, Z31}, "62425e50527c8303"},
		{dotPair, []Op{Mem{Base: R11, Disp: 13}, Z20, Z31}, "62425e5052bb" + "0d000000"},
		{roundPair, []Op{Z31, Z16, Z9}, "62127f4072cf"},
		{roundOne, []Op{Z17, Y6}, "62b27e4872f1"},
	} {
		got := machineCode(&ir.Instruction{Opcode: c.name, Operands: c.ops})
		if want, _ := hex.DecodeString(c.want); !bytes.Equal(got, want) {
			t.Errorf("%s %v: % x, want % x", c.name, c.ops, got, want)
		}
	}
}

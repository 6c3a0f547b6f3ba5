package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// The assembler does not know tile instructions; here are their bytes. All are
// VEX-coded, three-byte form, map 0F38, 128 bit, W0.

// Mandatory prefixes as VEX counts them.
const (
	none = 0
	pF3  = 2
	pF2  = 3
)

func emit(bytes ...byte) {
	for len(bytes) >= 4 {
		raw("LONG", U32(uint32(bytes[0])|uint32(bytes[1])<<8|uint32(bytes[2])<<16|uint32(bytes[3])<<24))
		bytes = bytes[4:]
	}
	for _, b := range bytes {
		raw("BYTE", U8(b))
	}
}

func raw(opcode string, value Op) {
	Instruction(&ir.Instruction{Opcode: opcode, Operands: []Op{value}})
}

// vex is the prefix and opcode: extension bits of index and base, a source
// register (v) and the mandatory prefix.
func vex(x, b, v, prefix int, opcode byte) []byte {
	return []byte{0xc4, 0xe2 ^ byte(x<<6|b<<5), byte((^v&15)<<3 | prefix), opcode}
}

// memory is a tile's place: rows at base, base + stride, ...
func memory(prefix, tile int, base, stride GPPhysical) []byte {
	n, m := number(base), number(stride)
	if n&7 == 5 {
		panic("a base of BP or R13 needs a displacement")
	}
	out := vex(m>>3, n>>3, 0, prefix, 0x4b)
	return append(out, byte(tile<<3|4), byte((m&7)<<3|n&7))
}

// number is a register's number in machine code.
func number(r GPPhysical) int {
	for i, x := range []GPPhysical{RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI, R8, R9, R10, R11, R12, R13, R14, R15} {
		if x == r {
			return i
		}
	}
	panic("not a 64-bit register")
}

func loadTile(tile int, base, stride GPPhysical)  { emit(memory(pF2, tile, base, stride)...) }
func storeTile(tile int, base, stride GPPhysical) { emit(memory(pF3, tile, base, stride)...) }

// loadTileAt is loadTile from base plus a displacement.
func loadTileAt(tile int, base, stride GPPhysical, disp int) {
	emit(displaced(pF2, tile, base, stride, disp)...)
}

// storeTileAt is storeTile to base plus a displacement.
func storeTileAt(tile int, base, stride GPPhysical, disp int) {
	emit(displaced(pF3, tile, base, stride, disp)...)
}

func displaced(prefix, tile int, base, stride GPPhysical, disp int) []byte {
	n, m := number(base), number(stride)
	out := append(vex(m>>3, n>>3, 0, prefix, 0x4b), byte(0x84|tile<<3), byte((m&7)<<3|n&7))
	return append(out, byte(disp), byte(disp>>8), byte(disp>>16), byte(disp>>24))
}

func zeroTile(tile int) { emit(append(vex(0, 0, 0, pF2, 0x49), byte(0xc0|tile<<3))...) }

// multiply: tile c += a · b.
func multiply(c, a, b int) { emit(append(vex(0, 0, b, pF3, 0x5c), byte(0xc0|c<<3|a))...) }

// multiplyTwoWay is multiply of numbers of half precision.
func multiplyTwoWay(c, a, b int) { emit(append(vex(0, 0, b, pF2, 0x5c), byte(0xc0|c<<3|a))...) }

// apart is how many instructions of any kind should lie between two that load or multiply tiles. There are
// times, of tens of milliseconds, in which these are slow, as if another had a share in the unit; then
// four products and two loads take 90 ns one right after another, and 57 with eight instructions between
// them. At other times it is 28 ns with and without.
const apart = 8

// nothing is n instructions that do nothing.
func nothing(n int) {
	for range n {
		emit(0x90)
	}
}

// loadConfig reads the configuration at BX.
func loadConfig() { emit(append(vex(0, 0, 0, none, 0x49), 0x03)...) }

func releaseTiles() { emit(append(vex(0, 0, 0, none, 0x49), 0xc0)...) }

// askLine asks for a line of those that a kernel asks for in pairs, some bytes from each other: the next place's after
// every second one.
func askLine(place, apart GPPhysical, asked *int) {
	PREFETCHT1(Mem{Base: place, Disp: *asked % 2 * 64})
	if *asked++; *asked%2 == 0 {
		ADDQ(apart, place)
	}
}

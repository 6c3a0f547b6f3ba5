package simd

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestKept: every level keeps what draws one by one keep, and stores nothing beyond its room.
func TestKept(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	ids := make([]uint32, 24)
	for i := range ids {
		ids[i] = r.Uint32()
	}
	for level := Generic; level <= Supported(); level++ {
		for cols := 1; cols <= 130; cols++ {
			for _, rows := range []int{8, 24} {
				d := Drop{On: true, Key: r.Uint64(), First: 0xfffffffa, Threshold: 20000}
				if cols%2 == 0 {
					d.IDs = &ids[0]
				}
				room := KeptRoom(rows, cols)
				got, want := bytes.Repeat([]byte{0xa5}, room+1), make([]byte, room)
				(&Kept{Drop: d, Rows: rows, Cols: cols, Bits: &got[0]}).Run(level)
				for i := range rows {
					for j := range cols {
						if n := i*cols + j; uint16(drawHash(d.key(i), uint32(j/2))>>(j%2*16)) >= d.Threshold {
							want[n/8] |= 1 << (n % 8)
						}
					}
				}
				if n := rows * cols / 8; !bytes.Equal(got[:n], want[:n]) || got[room] != 0xa5 {
					t.Fatalf("%v: %d x %d: % x, want % x", level, rows, cols, got, want)
				}
			}
		}
	}
}

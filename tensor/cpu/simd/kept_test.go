package simd

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"starling/tensor/draw"
)

// dumbKeeps draws for one number.
func dumbKeeps(d Drop, row, column int) bool {
	id := d.First + uint32(row)
	if d.IDs != nil {
		id = *at(d.IDs, row)
	}
	if d.Threshold == draw.Half {
		return draw.RowBits(d.Key, id, uint32(column/64))>>(column%64)&1 != 0
	}
	return draw.Column(draw.RowKey(d.Key, id), uint32(column)) >= d.Threshold
}

// TestKept: every level keeps what draws one by one keep, and stores nothing beyond its room.
func TestKept(t *testing.T) {
	r := rand.New(rand.NewPCG(7, 1))
	ids := make([]uint32, 24)
	for i := range ids {
		ids[i] = r.Uint32()
	}
	for level := Generic; level <= Supported(); level++ {
		for cols := KeptLeast; cols <= KeptCols; cols++ {
			for i, rows := range []int{8, 24, 8, 24} {
				d := Drop{On: true, Key: r.Uint64(), First: 0xffffffe8, Threshold: draw.Half}
				if (cols+i)%2 == 0 {
					d.IDs = &ids[0]
				}
				room := KeptBytes(rows, cols)
				got, want := bytes.Repeat([]byte{0xa5}, room+1), make([]byte, room)
				(&Kept{Drop: d, Rows: rows, Cols: cols, Bits: &got[0]}).Run(level)
				for i := range rows {
					for j := range cols {
						if n := i*cols + j; dumbKeeps(d, i, j) {
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

package cpu

import (
	"bytes"
	"slices"
	"testing"

	"starling/tensor"
)

// TestEvict: a matrix that left and came back is the same to all its handles, wherever its
// block is now, and its memory is free for others in between.
func TestEvict(t *testing.T) {
	c := New(1)
	defer c.Close()
	for _, rows := range []int{1, 10, 3000} { // small blocks, and one of a region
		m := c.New(F32, rows, 100)
		want := make([]float32, rows*100)
		for i := range want {
			want[i] = float32(i)
		}
		c.Upload(m, want)
		view, before := m.Slice(rows/2, rows), used(c)
		var kept []byte
		left, err := c.Evict(m, func(b []byte) error {
			kept = bytes.Clone(b)
			return nil
		})
		if err != nil || !left || used(c) >= before {
			t.Fatalf("%d rows: left %v, %v; %d bytes in use, %d before", rows, left, err, used(c), before)
		}
		other := c.New(F32, rows, 100) // in its place
		if err := c.Restore(m, func(b []byte) error {
			copy(b, kept)
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		got := make([]float32, view.Rows*100)
		if c.Download(got, view); !slices.Equal(got, want[rows/2*100:]) {
			t.Errorf("%d rows: a view has other numbers", rows)
		}
		c.Free(other)
		c.Free(m)
	}
	host := c.FromHost(1, 3, []float32{1, 2, 3})
	for name, m := range map[string]tensor.Matrix{"a host slice": host, "a view": c.New(F32, 4, 4).Slice(1, 2),
		"no numbers": c.New(F32, 0, 4)} {
		if left, err := c.Evict(m, func([]byte) error { return nil }); left || err != nil {
			t.Errorf("%s left memory: %v", name, err)
		}
	}
}

func used(c *Device) int64 {
	n, _ := c.Usage()
	return n
}

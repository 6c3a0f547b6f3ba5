package measure

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"starling/tensor"
	"starling/tensor/cpu"
	"starling/tensor/cpu/simd"
)

// TestRun measures every kernel at small, odd sizes and every level: each has its
// row, and the figures count work that was done.
func TestRun(t *testing.T) {
	for level := simd.Generic; level <= simd.Supported(); level++ {
		c := cpu.NewWith(cpu.Options{Threads: 2, Level: level})
		var names []string
		err := Run(context.Background(), c, Options{Rows: 333, Width: 36, Degree: 3, Rounds: 1,
			Types: []tensor.DType{tensor.F32}}, func(r Row) {
			names = append(names, r.Kernel)
			if r.Seconds <= 0 || r.Rate <= 0 || r.Ratio <= 0 || math.IsInf(r.Ratio, 0) {
				t.Errorf("%v: %+v", level, r)
			}
			// What rows leave out of the traffic takes some time too.
			if attention := strings.HasPrefix(r.Kernel, "attention"); attention && r.Traffic < r.Ratio || !attention &&
				r.Traffic != 0 {
				t.Errorf("%v: %+v", level, r)
			}
		})
		if err != nil || !slices.Equal(names, Names()) {
			t.Errorf("%v: %v, %v", level, names, err)
		}
		if inUse, _ := c.Usage(); inUse != 0 {
			t.Errorf("%v: %d bytes were not given back", level, inUse)
		}
		c.Close()
	}
}

func TestRunOnlyAndInterrupted(t *testing.T) {
	c := cpu.New(1)
	defer c.Close()
	o := Options{Rows: 64, Width: 7, Degree: 1, Rounds: 1, Only: "norm-gradient"} // 7 columns have no four heads
	var rows []string
	if err := Run(context.Background(), c, o, func(r Row) { rows = append(rows, r.Kernel+" "+r.Type) }); err != nil {
		t.Fatal(err)
	}
	want := []string{"batch-norm-gradient float32", "layer-norm-gradient float32", "batch-norm-gradient bfloat16",
		"layer-norm-gradient bfloat16"}
	if !slices.Equal(rows, want) {
		t.Errorf("%v, want %v", rows, want)
	}
	ctx, cancel := context.WithCancel(context.Background())
	o.Only = ""
	err := Run(ctx, c, o, func(Row) { cancel() })
	if inUse, _ := c.Usage(); err != context.Canceled || inUse != 0 {
		t.Errorf("interrupted: %v, %d bytes in use", err, inUse)
	}
}

// TestTouched counts lines of rows that share them, that straddle them and that are lines by themselves.
func TestTouched(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 8))
	for _, bytes := range []int{2, 4, 14, 28, 64, 80, 1024} {
		var list []uint32
		lines := map[int]bool{}
		for i := range 300 {
			if r.IntN(3) > 0 {
				continue
			}
			list = append(list, uint32(i))
			for b := range bytes {
				lines[(i*bytes+b)/64] = true
			}
		}
		if got := touched(list, bytes); got != 64*len(lines) {
			t.Errorf("rows of %d bytes: %d bytes of %d lines", bytes, got, len(lines))
		}
	}
}

// TestTranspose finds every edge by its other end, in the order of ends.
func TestTranspose(t *testing.T) {
	g := newGraph(50, 3)
	ptr, index, place := g.transpose()
	seen := map[uint32]bool{}
	for j := range g.ptr[1:] {
		for k := ptr[j]; k < ptr[j+1]; k++ {
			e := place[k]
			if seen[e] || int(g.index[e]) != j || index[k] != e/3 {
				t.Fatalf("edge %d from %d to %d is by %d at place %d", e, g.index[e], e/3, j, index[k])
			}
			seen[e] = true
		}
	}
	if len(seen) != len(g.index) {
		t.Errorf("%d of %d edges", len(seen), len(g.index))
	}
}

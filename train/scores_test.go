package train

import (
	"context"
	"math"
	"slices"
	"sync"
	"testing"

	"starling/event"
	"starling/tensor"
	"starling/wire"
)

// TestScoresAreNeverOld: strategies whose rows, or gradients of rows, are late or old have attention's scores, its last
// layer, and gradients of both as they are in every epoch.
func TestScoresAreNeverOld(t *testing.T) {
	parts := cut(t, communities(t, 60, false), "random", 3)
	for _, text := range []string{"pipegcn", "sancus:epoch:2", "sancus:adaptive:2", "sancus:variation:0.6", "skipg:2", "bns:0.3:cached"} {
		choice, err := DefaultChoice("").Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		ends := wire.NewGroup(len(parts), wire.DefaultOptions())
		rows, prompt := make([]int, len(parts)), make([]int, len(parts))
		var wg sync.WaitGroup
		for k, part := range parts {
			wg.Go(func() {
				o := small("gat")
				o.Strategy = choice
				s, err := newStrategy(&site{ctx: context.Background(), dev: tensor.NewRef(), part: part, end: ends[k], opt: o, events: event.All()})
				if err != nil {
					t.Error(err)
					return
				}
				rows[k], prompt[k] = oldOnes(s)
				if err := s.Finish(); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		for _, e := range ends {
			e.Close()
		}
		if slices.Max(prompt) > 0 || slices.Min(rows) == 0 {
			t.Errorf("%s: numbers of another epoch came %v times among scores or in the last layer, %v times among rows", text, prompt, rows)
		}
	}
}

// oldOnes exchanges rows, scores and the last layer's rows, and gradients of all, that are the epoch's number, counted from 1, or its square, so that
// not all change alike. It returns how many of them were not when they were used.
func oldOnes(s Strategy) (rows, prompt int) {
	var x *exchanging
	switch s := s.(type) {
	case *exchanging:
		x = s
	case *sancus:
		x = s.exchanging
	}
	b := x.border(1)
	first, core := uint32(x.part.Book.Offsets[x.part.Meta.Part]), uint32(b.src)
	full := func(rows int, value func(row uint32) float64) tensor.Matrix {
		m, v := x.dev.New(tensor.F64, rows, 1), make([]float64, rows)
		for i := range v {
			v[i] = value(uint32(i))
		}
		x.dev.Upload(m, v)
		return m
	}
	constant := func(v float64) func(uint32) float64 { return func(uint32) float64 { return v } }
	given := full(b.src, constant(0)) // how many peers give a gradient back
	x.dev.ScatterAdd(given, full(b.send.Len(), constant(1)), b.send)
	for epoch := range 6 {
		of := func(vertex uint32) float64 { return math.Pow(float64(epoch+1), float64(1+vertex%2)) }
		own := full(b.src, func(i uint32) float64 { return of(first + i) })
		far := full(b.farRows(), func(k uint32) float64 {
			switch {
			case len(x.part.Halo) == b.farRows():
				k = x.part.Halo[k]
			case k >= first: // of whole blocks
				k += core
			}
			return of(k)
		})
		x.Begin(epoch, true)
		off := map[string]int{}
		for _, backward := range []bool{false, true} {
			for _, what := range []string{"rows", "scores", "last"} {
				t := transfer{layer: 1, across: true, scores: what == "scores", prompt: what == "last", backward: backward, kind: wire.Activation}
				got, want := full(b.farRows(), constant(0)), far
				if !backward {
					finishNow(x.move.fetch(t, b, got, own))
				} else {
					t.kind, got, want = wire.Gradient, full(b.src, constant(0)), full(b.src, constant(0))
					rows := full(b.farRows(), constant(0)) // the callee's to change
					x.dev.Copy(rows, far)
					finishNow(x.move.giveBack(t, b, rows, got))
					x.dev.Multiply(want, own, given)
				}
				off[what] += unequal(x.dev, got, want)
			}
		}
		rows, prompt = rows+off["rows"], prompt+off["scores"]+off["last"]
	}
	return rows, prompt
}

func finishNow(a arrival) {
	a.wait()
	a.done()
}

// unequal is how many numbers of two matrices differ.
func unequal(dev tensor.Device, a, b tensor.Matrix) (n int) {
	v, w := make([]float64, a.Rows*a.Cols), make([]float64, a.Rows*a.Cols)
	dev.Download(v, a)
	dev.Download(w, b)
	for i := range v {
		if v[i] != w[i] {
			n++
		}
	}
	return n
}

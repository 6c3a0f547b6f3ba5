package train

import (
	"context"
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

// oldOnes exchanges rows, scores and the last layer's rows, and gradients of all, that are the epoch's number throughout, counted from 1. It
// returns how many of them were not when they were used.
func oldOnes(s Strategy) (rows, prompt int) {
	var x *exchanging
	switch s := s.(type) {
	case *exchanging:
		x = s
	case *sancus:
		x = s.exchanging
	}
	b := x.border(1)
	full := func(rows int, v float64) tensor.Matrix {
		m := x.dev.New(tensor.F64, rows, 1)
		x.dev.Upload(m, slices.Repeat([]float64{v}, rows))
		return m
	}
	given := full(b.src, 0) // how many peers give a gradient back
	x.dev.ScatterAdd(given, full(b.send.Len(), 1), b.send)
	for epoch := range 6 {
		now := float64(epoch + 1)
		x.Begin(epoch, true)
		off := map[string]int{}
		for _, backward := range []bool{false, true} {
			for _, of := range []string{"rows", "scores", "last"} {
				t := transfer{layer: 1, across: true, scores: of == "scores", prompt: of == "last", backward: backward, kind: wire.Activation}
				got, want := full(b.farRows(), 0), full(b.farRows(), now)
				if !backward {
					finishNow(x.move.fetch(t, b, got, full(b.src, now)))
				} else {
					t.kind, got, want = wire.Gradient, full(b.src, 0), full(b.src, 0)
					finishNow(x.move.giveBack(t, b, full(b.farRows(), now), got))
					x.dev.Combine(want, now, given, 0, tensor.Matrix{})
				}
				off[of] += unequal(x.dev, got, want)
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

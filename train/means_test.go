package train

import (
	"context"
	"math"
	"sync"
	"testing"

	"starling/event"
	"starling/rng"
	"starling/tensor"
	"starling/wire"
)

// moveSlowly is moveTo for the rows of each peer, on the host; fresh are those rows as they are now.
func moveSlowly(rows, fresh []float64, cols int, ptr []int64) {
	for q := range len(ptr) - 1 {
		lo, hi := int(ptr[q])*cols, int(ptr[q+1])*cols
		if lo < hi {
			moveOne(rows[lo:hi], fresh[lo:hi], cols)
		}
	}
}

func moveOne(rows, fresh []float64, cols int) {
	n := len(rows) / cols
	was, is := make([]float64, cols), make([]float64, cols)
	for i := range rows {
		was[i%cols] += rows[i] / float64(n)
		is[i%cols] += fresh[i] / float64(n)
	}
	size, squares := 0.0, 0.0
	for _, x := range was {
		size += x * x
	}
	share := make([]float64, n)
	for k := range share {
		for c, x := range was {
			share[k] += rows[k*cols+c] * x
		}
		squares += share[k] * share[k]
	}
	all, scale := 1000*size*size+squares/float64(n), 0.0
	if all > 0 {
		scale = 1000 * size / all
	}
	for k := range share {
		for c := range cols {
			rows[k*cols+c] += (scale*share[k] + 1 - scale*size) * (is[c] - was[c])
		}
	}
}

// onBorders does something on every worker of a group, each with the border of its part.
func onBorders(t *testing.T, workers, servers int, relay bool, do func(m *exact, b *border)) {
	t.Helper()
	parts := cutForServers(t, communities(t, 90, false), "random", workers, servers)
	var all sync.WaitGroup
	for k, end := range wire.NewGroup(workers, wire.DefaultOptions()) {
		defer end.Close()
		s := &site{ctx: context.Background(), dev: tensor.NewRef(), part: parts[k], end: end, events: event.All(), opt: Options{Strategy: DefaultChoice("halo")}}
		s.opt.Strategy.Relay, s.opt.Strategy.Means = relay, true
		all.Go(func() {
			m := &exact{site: s}
			x, _, err := overHalo(s, m)
			if err != nil {
				t.Error(err)
				return
			}
			m.begin(0, true)
			do(m, x.border(0))
			if m.first != nil {
				t.Error(m.first)
			}
		})
	}
	all.Wait()
}

// someRows is a matrix of numbers that depend on a name, row and column.
func someRows(dev tensor.Device, name uint64, rows, cols int) (tensor.Matrix, []float64) {
	m, v := dev.New(tensor.F64, rows, cols), make([]float64, rows*cols)
	for i := range v {
		v[i] = rng.New(name).Float64(uint64(i)) - 0.3
	}
	dev.Upload(m, v)
	return m, v
}

// TestMeansOfRows: rows that came straight have the mean of what they stand for, by peer;
// rows as they are now stay.
func TestMeansOfRows(t *testing.T) {
	for _, relay := range []bool{false, true} {
		onBorders(t, 4, 2, relay, func(m *exact, b *border) {
			const cols = 3
			src, _ := someRows(m.dev, uint64(m.end.Rank()), b.src, cols)
			now := m.dev.New(tensor.F64, b.farRows(), cols)
			tr := transfer{layer: 1, kind: wire.Activation}
			x := m.fetch(tr, b, now, src)
			x.wait()
			x.done()
			want := make([]float64, b.farRows()*cols)
			m.dev.Download(want, now)
			m.centre(tr, b, src).move(now)
			near(t, "rows of now", numbers(m.dev, now), want)

			m.epoch = 1
			old, v := someRows(m.dev, 99, b.farRows(), cols)
			m.centre(tr, b, src).move(old)
			moveSlowly(v, want, cols, b.farPtr)
			n := b.straightRows() * cols
			near(t, "old rows", numbers(m.dev, old)[:n], v[:n])
		})
	}
}

// TestMeansOfGradients: whoever passes them on, gradients that are nothing but means add up
// to those that workers have.
func TestMeansOfGradients(t *testing.T) {
	for _, relay := range []bool{false, true} {
		var lock sync.Mutex
		const cols = 3
		var sent, got [cols]float64
		onBorders(t, 6, 2, relay, func(m *exact, b *border) {
			rows, v := someRows(m.dev, uint64(m.end.Rank()), b.farRows(), cols)
			in := m.dev.New(tensor.F64, b.send.Len(), cols)
			m.centreBack(transfer{layer: 1, backward: true, kind: wire.Gradient}, b, rows).move(in)
			lock.Lock()
			defer lock.Unlock()
			for i, x := range v {
				sent[i%cols] += x
			}
			for i, x := range numbers(m.dev, in) {
				got[i%cols] += x
			}
		})
		near(t, "sums of gradients", got[:], sent[:])
	}
}

func numbers(dev tensor.Device, m tensor.Matrix) []float64 {
	v := make([]float64, m.Rows*m.Cols)
	dev.Download(v, m)
	return v
}

func near(t *testing.T, what string, got, want []float64) {
	t.Helper()
	for i := range want {
		if !(math.Abs(got[i]-want[i]) < 1e-9*(1+math.Abs(want[i]))) {
			t.Errorf("%s: number %d is %g, want %g", what, i, got[i], want[i])
			return
		}
	}
}

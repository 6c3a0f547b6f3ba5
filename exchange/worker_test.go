package exchange

import (
	"math"
	"testing"

	"starling/partition"
	"starling/rng"
	"starling/tensor"
	"starling/train"
	"starling/train/traintest"
	"starling/wire"
)

// workerOf is the worker of a site, whose rows travel as they are.
func workerOf(s *train.Site) *Worker {
	return &Worker{Ctx: s.Ctx, Dev: s.Dev, Part: s.Part, End: s.End, Events: s.Events, AllReduce: s.Peers.AllReduce,
		RowOptions: DefaultRows, Saved: &Saved{}}
}

// onAll looks things up as every worker of some parts, and compares what was sent with the
// plan. Answers have that number of bytes: answer.
func onAll(t *testing.T, parts []*partition.Part, answer int, f func(l *Lookup) error) {
	t.Helper()
	traintest.OnAll(t, parts, func(s *train.Site) (wire.Bytes, error) {
		l, err := newLookup(NewSetup(workerOf(s)), "test", answer)
		if err == nil {
			err = f(l)
		}
		if err == nil {
			err = l.Close()
		}
		return l.Sent, err
	})
}

// onHalos does something as every worker, each with the halo of its part.
func onHalos(t *testing.T, workers, servers int, relay bool, do func(r *Rows, h *Halo)) {
	t.Helper()
	parts := traintest.CutForServers(t, traintest.Communities(t, 90, false), "random", workers, servers)
	ends := traintest.Ends(workers)
	defer traintest.Close(ends)
	traintest.Each(workers, func(k int) {
		w := workerOf(traintest.Site(parts[k], ends[k], train.Options{}))
		w.Relayed = relay
		rows := NewRows(w)
		a, _, err := OverHalo(w, rows)
		if err != nil {
			t.Error(err)
			w.End.Fail(err)
			return
		}
		rows.Begin(0, 0, true)
		do(rows, a.Halo(0))
		if err := rows.Err(); err != nil {
			t.Error(err)
		}
	})
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

// equal compares numbers but for rounding.
func equal(t *testing.T, what string, got, want []float64) {
	t.Helper()
	for i := range want {
		if !(math.Abs(got[i]-want[i]) < 1e-9*(1+math.Abs(want[i]))) {
			t.Errorf("%s: number %d is %g, want %g", what, i, got[i], want[i])
			return
		}
	}
}

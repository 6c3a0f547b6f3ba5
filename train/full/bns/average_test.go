package bns

import (
	"fmt"
	"math"
	"testing"

	"starling/exchange"
	"starling/nn"
	"starling/partition"
	"starling/rng"
	"starling/tensor"
	"starling/train"
	"starling/train/traintest"
)

// aggregated is what a worker's rows receive, and the gradients of what they send, as
// means over some epochs, with their standard errors. Rows do not change meanwhile.
type aggregated struct{ mean, off []float64 }

func aggregate(t *testing.T, parts []*partition.Part, c options, kind nn.Kind, epochs int) []aggregated {
	t.Helper()
	out := make([]aggregated, len(parts))
	ends := traintest.Ends(len(parts))
	defer traintest.Close(ends)
	c.RowOptions = exchange.DefaultRows
	o := traintest.Small("sage")
	o.Strategy = traintest.Made(Strategy, c)
	traintest.Each(len(parts), func(k int) {
		x, err := Strategy.New(traintest.Site(parts[k], ends[k], o))
		if err == nil {
			out[k], err = meanOf(x, parts[k], nn.Reduction{Kind: kind}, epochs)
		}
		if err != nil {
			t.Error(err)
			ends[k].Fail(err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return out
}

func meanOf(x train.Strategy, part *partition.Part, r nn.Reduction, epochs int) (aggregated, error) {
	dev, n := traintest.Ref(), part.Core()
	rows := func(stream uint64) tensor.Matrix {
		m, v := dev.New(tensor.F64, n, 1), make([]float64, n)
		for i := range v {
			v[i] = rng.New(stream).Normal(uint64(part.IDs[i]))
		}
		dev.Upload(m, v)
		return m
	}
	src, ddst, dst, dsrc := rows(1), rows(2), dev.New(tensor.F64, n, 1), dev.New(tensor.F64, n, 1)
	sum, squares, v := make([]float64, 2*n), make([]float64, 2*n), make([]float64, 2*n)
	for e := range epochs {
		x.Begin(e, 0, true)
		x.Sum(1, r, dst, src)
		x.SumGrad(1, r, dsrc, ddst)
		dev.Download(v[:n], dst)
		dev.Download(v[n:], dsrc)
		for i, y := range v {
			sum[i], squares[i] = sum[i]+y, squares[i]+y*y
		}
	}
	a := aggregated{sum, squares}
	for i, s := range sum {
		a.mean[i] = s / float64(epochs)
		a.off[i] = math.Sqrt(max(0, squares[i]/float64(epochs)-a.mean[i]*a.mean[i]) / float64(epochs))
	}
	return a, x.Err()
}

// TestIsRightOnAverage: over many epochs, sums over neighbours and gradients of rows have
// halo's for their mean, however sums are normalized; with the shrunk scale what local rows
// give and a share of what halo rows add to it. With a cache they are halo's in every epoch,
// while rows do not change.
func TestIsRightOnAverage(t *testing.T) {
	const keep = 0.3
	parts := traintest.Cut(t, traintest.Communities(t, 40, false), "random", 2)
	var shares [2]float64 // of halo rows, by who receives them
	for k, part := range parts {
		shares[k] = keep * shrunk(keep, remoteDegree(exchange.PartHalo(part)))
	}
	for _, kind := range []nn.Kind{nn.Sum, nn.Mean, nn.MeanSelf, nn.Symmetric} {
		halo := aggregate(t, parts, options{Keep: 1}, kind, 1)
		local := aggregate(t, parts, options{Keep: 1e-15}, kind, 1)
		for _, run := range []struct {
			options
			epochs int
		}{{options{Keep: keep}, 800}, {options{Keep: keep, Shrunk: true}, 800},
			{options{Keep: keep, Cached: true}, 20}} {
			for k, got := range aggregate(t, parts, run.options, kind, run.epochs) {
				what := fmt.Sprintf("reduction %v, %+v, worker %d", kind, run.options, k)
				for i, w := range halo[k].mean {
					if run.Shrunk {
						to := k
						if i >= parts[k].Core() {
							to = 1 - k // of which the gradients come
						}
						w = local[k].mean[i] + shares[to]*(w-local[k].mean[i])
					}
					bound := 1e-6 // squares less a square lose half the digits
					if !run.Cached {
						bound += 5 * got.off[i]
					}
					if d := math.Abs(got.mean[i] - w); d > bound {
						t.Fatalf("%s: %g on average, want %g, %g apart where %g may be", what, got.mean[i], w, d, bound)
					}
					if run.Cached && got.off[i] > 1e-6 {
						t.Fatalf("%s: differs from epoch to epoch", what)
					}
				}
			}
		}
	}
}

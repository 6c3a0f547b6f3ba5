package train

import (
	"context"
	"fmt"
	"math"
	"sync"
	"testing"

	"starling/event"
	"starling/nn"
	"starling/partition"
	"starling/rng"
	"starling/tensor"
	"starling/wire"
)

// aggregated is what a worker's rows receive, and the gradients of what they send, as
// means over some epochs, with their standard errors. Rows stand still meanwhile.
type aggregated struct{ mean, off []float64 }

func aggregate(t *testing.T, parts []*partition.Part, c Choice, kind nn.Kind, epochs int) []aggregated {
	t.Helper()
	out := make([]aggregated, len(parts))
	ends := wire.NewGroup(len(parts), wire.DefaultOptions())
	var wg sync.WaitGroup
	for k, part := range parts {
		wg.Go(func() {
			o := small("sage")
			o.Strategy = c
			x, err := newStrategy(&site{ctx: context.Background(), dev: tensor.NewRef(), part: part, end: ends[k], opt: o, events: event.All()})
			if err != nil {
				t.Error(err)
				return
			}
			if out[k], err = meanOf(x, part, nn.Reduction{Kind: kind}, epochs); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, e := range ends {
		e.Close()
	}
	return out
}

func meanOf(x Strategy, part *partition.Part, r nn.Reduction, epochs int) (aggregated, error) {
	dev, n := tensor.NewRef(), part.Core()
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
		x.Begin(e, true)
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

// TestBNSIsRightOnAverage: over many epochs, sums over neighbours and gradients of rows have
// halo's for their mean if unbiased, however sums are normalised; else what near rows give and
// a share of what far ones add to it. With a memory they are halo's in every epoch, while
// rows stand still.
func TestBNSIsRightOnAverage(t *testing.T) {
	const keep = 0.3
	parts := cut(t, communities(t, 40, false), "random", 2)
	var shares [2]float64 // of far rows, by who receives them
	for k, part := range parts {
		l := haloLists(part)
		shares[k] = keep * bnsWeight(keep, farDegree(&l))
	}
	for _, kind := range []nn.Kind{nn.Sum, nn.Mean, nn.MeanSelf, nn.Symmetric} {
		halo := aggregate(t, parts, DefaultChoice("halo"), kind, 1)
		near := aggregate(t, parts, Choice{Name: "bns", Keep: 1e-15}, kind, 1)
		for c, epochs := range map[Choice]int{{Name: "bns", Keep: keep}: 800, {Name: "bns", Keep: keep, Unbiased: true}: 800, {Name: "bns", Keep: keep, Cached: true}: 20} {
			for k, got := range aggregate(t, parts, c, kind, epochs) {
				what := fmt.Sprintf("reduction %v, %+v, worker %d", kind, c, k)
				for i, w := range halo[k].mean {
					if !c.Cached && !c.Unbiased {
						to := k
						if i >= parts[k].Core() {
							to = 1 - k // of which the gradients come
						}
						w = near[k].mean[i] + shares[to]*(w-near[k].mean[i])
					}
					bound := 1e-6 // squares less a square lose half the digits
					if !c.Cached {
						bound += 5 * got.off[i]
					}
					if d := math.Abs(got.mean[i] - w); d > bound {
						t.Fatalf("%s: %g on average, want %g, %g apart where %g may be", what, got.mean[i], w, d, bound)
					}
					if c.Cached && got.off[i] > 1e-6 {
						t.Fatalf("%s: differs from epoch to epoch", what)
					}
				}
			}
		}
	}
}

package traintest

import (
	"math"
	"testing"

	"starling/graph"
	"starling/partition"
	"starling/train"
	"starling/wire"
)

// Batches trains on mini-batches with a worker for each part, each on a server of its own if remote is set.
func Batches(t testing.TB, parts []*partition.Part, o train.Options, batches train.BatchSettings, remote bool,
	strategy string, options ...string) *Trained {
	t.Helper()
	o.Strategy, o.Batches = Strategy(t, strategy, options...), &batches
	return Observe(t, BatchEnds(len(parts), remote), parts, Ref, o)
}

// BatchEnds are n endpoints in this process, of one server, or each of a server of its own if remote is set.
func BatchEnds(n int, remote bool) []wire.Endpoint {
	opt := wire.DefaultOptions()
	for k := range n {
		server := 0
		if remote {
			server = k
		}
		opt.ServerOf = append(opt.ServerOf, server)
	}
	return wire.NewGroup(n, opt)
}

// Ran is the result of a run, which must not fail.
func Ran(t testing.TB) func(r *train.Result, err error) *train.Result {
	return func(r *train.Result, err error) *train.Result {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
}

// SameRun compares losses and the metric with those of one worker, but for rounding.
func SameRun(t testing.TB, got, want *train.Result) {
	t.Helper()
	for e, w := range want.Loss {
		if math.Abs(got.Loss[e]-w) > 1e-9*(1+w) {
			t.Errorf("epoch %d: loss %.12f, of one worker %.12f", e, got.Loss[e], w)
			return
		}
	}
	if math.Abs(got.TestMetric-want.TestMetric) > 1e-9 || got.BestEpoch != want.BestEpoch {
		t.Errorf("test %g in epoch %d, of one worker %g in %d", got.TestMetric, got.BestEpoch, want.TestMetric,
			want.BestEpoch)
	}
}

// WithEmbeddings are options of a model whose input has learnt rows beside the features.
func WithEmbeddings(model string, d *graph.Dataset, dim int) train.Options {
	o := Options(model)
	o.Epochs, o.Model.Layers, o.Model.Norm = 3, 2, "none"
	o.Embeddings = &train.EmbeddingOptions{Dim: dim}
	o.Model.In = dim
	if d.Features != nil {
		o.Model.In += d.Features.Cols
	}
	return o
}

// CacheFor is a cache of a few rows as options, of all in turn; none of sparse features.
func CacheFor(d *graph.Dataset, i int) []string {
	if d.Features.Kind() == graph.Sparse {
		return []string{"cache=none"}
	}
	return CacheOf([]string{"none", "degree", "frequency", "s3fifo", "belady"}[i%5], "1KB")
}

// CacheOf is a cache with a budget, which none has no use for.
func CacheOf(cache, budget string) []string {
	if cache == "none" {
		return []string{"cache=none"}
	}
	return []string{"cache=" + cache, "cache_budget=" + budget}
}

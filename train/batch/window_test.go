package batch

import (
	"fmt"
	"testing"

	"starling/train"
	"starling/train/traintest"
)

// TestWindowKeepsItsBudget: edges of the batches of a window, rows of those that have theirs or that are on their way,
// the cache and in-edges take no more than the cache's budget and the rows that distdgl's batches under way have. A
// window whose length is not given takes at most windowBytes beside that, one that is given at most its edges.
func TestWindowKeepsItsBudget(t *testing.T) {
	parts := traintest.CutForServers(t, traintest.Communities(t, 400, false), "random", 3, 3)
	for _, budget := range []string{"1B", "2KB", "1MB"} {
		for _, window := range []int{0, 1, 2, 8} {
			for _, edges := range []string{"none", "100%"} {
				t.Run(fmt.Sprint(budget, window, edges), func(t *testing.T) {
					o := traintest.Options("sage")
					o.Epochs, o.Model.Layers, o.Strategy = 3, 2, traintest.Strategy(t, "lookahead")
					o.Batches = &train.BatchSettings{Sampler: "neighbour", Size: 10, Fanouts: []int{2, 2}, Threads: 2}
					ends := traintest.BatchEnds(len(parts), true)
					defer traintest.Close(ends)
					opened := make([]*Pipeline, len(parts))
					traintest.Each(len(parts), func(k int) {
						p, err := Open(traintest.Site(parts[k], ends[k], o), Setting{Roots: "owner", PullDType: "none"})
						if err == nil {
							opened[k] = p
							err = p.Prepare(CacheOptions{Cache: Belady, CacheBudget: budget, Window: window,
								Edges: edges}, p.Seeds)
						}
						if err != nil {
							t.Error(err)
						}
					})
					for _, p := range opened {
						p.checkWindow(t, budget, window == 0)
					}
					traintest.Each(len(parts), func(k int) { _ = opened[k].Store.Close() })
				})
			}
		}
	}
}

func (p *Pipeline) checkWindow(t *testing.T, text string, auto bool) {
	t.Helper()
	budget, _ := CacheBytes(text, 0)
	a, drawn, rows := p.ahead, int64(0), int64(0)
	for _, x := range a.drawn.list {
		drawn, rows = max(drawn, x.bytes), rows+p.Store.RowBytes(x.needs)
	}
	rows /= int64(len(a.drawn.list))
	_, edges := p.Store.KeptEdges()
	held := int64(a.options.Held+stagedHeld) * rows
	takes := held + int64(a.options.Window)*drawn + a.options.Bytes + edges
	may := budget + int64(underWay(p.Options.ThreadCount(), p.AtOnce()))*rows
	switch slack := takes - may; {
	case slack <= 0:
	case auto && slack <= windowBytes, !auto && slack <= int64(a.options.Window)*drawn:
	default:
		t.Errorf("%d batches of %d bytes, %d with rows of %d, a cache of %d and in-edges of %d take %d bytes of %d",
			a.options.Window, drawn, held/max(rows, 1), rows, a.options.Bytes, edges, takes, may)
	}
}

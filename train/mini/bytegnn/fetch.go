package bytegnn

import (
	"context"
	"slices"

	"starling/graph"
	"starling/store"
)

// leastRows is how many vertices a fetch has at least, unless a hop ends.
const leastRows = 256

// fetch is the rows of vertices that were found: in their place among the batch's if its memory is
// large enough for them, as it mostly is after the first.
type fetch struct {
	puller   *store.Puller
	features graph.Features
	types    []graph.Features // of a typed graph
}

// fetch brings the rows that are final and were not asked for, if they are enough or a few will do.
func (g *dag) fetch(few bool) {
	if final := g.chunks.Final(); few || final-g.fetched >= leastRows {
		g.fetchTo(final)
	}
}

// fetchTo brings the rows before one that were not asked for.
func (g *dag) fetchTo(end int) {
	from := g.fetched
	if from == end && g.active > 0 || g.sparse() || g.rows != nil || g.failed.Load() != nil {
		return
	}
	vertices := g.batch.Vertices[from:end:end]
	f := g.next()
	g.fetched = end
	width := g.place(f, from, end)
	g.left.Add(1)
	g.task("ask for rows", int64(len(vertices)*width), func() {
		if g.failed.Load() != nil {
			g.arrived()
			return
		}
		g.fail(g.pull(f, vertices))
		g.apart("wait for rows", f.puller.Wait, func() {
			g.task("take rows", int64(len(vertices)), func() {
				if g.failed.Load() == nil {
					g.fail(f.puller.Take())
				}
				g.arrived()
			})
		})
	})
}

// next is another fetch of the batch.
func (g *dag) next() *fetch {
	if g.active == len(g.fetches) {
		g.fetches = append(g.fetches, &fetch{puller: g.s.of.Store.Puller()})
	}
	f := g.fetches[g.active]
	g.active++
	g.fail(f.puller.Keep(g.by.Columns))
	return f
}

// place has rows fetched to their place among the batch's, and returns their width. Rows of a typed graph,
// which are by type, are joined later.
func (g *dag) place(f *fetch, from, end int) (width int) {
	if s := g.schema(); s != nil {
		f.types = slices.Grow(f.types[:0], len(s.Types))[:len(s.Types)]
		return 1
	}
	all := &g.batch.Pulled.Features
	width = g.s.of.Site.Part.Features.Cols
	f.features.F32, f.features.BF16 = placed(all.F32, from*width, end*width), placed(all.BF16, from*width, end*width)
	return width
}

func (g *dag) pull(f *fetch, vertices []uint32) error {
	if g.schema() != nil {
		return f.puller.AskTypes(g.batch.Pulls(), f.types, vertices)
	}
	return f.puller.AskFeatures(g.batch.Pulls(), &f.features, vertices)
}

// schema is of a typed graph, or nil.
func (g *dag) schema() *graph.Schema { return g.s.of.Site.Part.Book.Schema }

// fetchLabels brings the labels of the seed vertices.
func (g *dag) fetchLabels(seeds []uint32) {
	if g.batch.Labels == nil || g.failed.Load() != nil {
		return
	}
	g.left.Add(1)
	g.apart("labels", func(ctx context.Context) error { return g.batch.PullLabels(ctx, g.labels, seeds) }, g.arrived)
}

// fetchSparse brings sparse rows, which cannot be joined, when all vertices are known.
func (g *dag) fetchSparse(ctx context.Context) error {
	if g.failed.Load() != nil {
		return nil
	}
	return g.next().puller.Features(ctx, g.batch.Pulls(), &g.batch.Pulled.Features, g.batch.Vertices)
}

func (g *dag) sparse() bool {
	return g.schema() == nil && g.s.of.Site.Part.Features.Kind() == graph.Sparse
}

func (g *dag) join() {
	p, site, fetches := g.batch.Pulled, g.s.of.Site, g.fetches[:g.active]
	if s := g.schema(); s != nil {
		var lists [][]graph.Features
		for _, f := range fetches {
			lists = append(lists, f.types)
		}
		p.JoinTypes(s, lists)
	} else if !g.sparse() {
		f := &p.Features
		f.Rows, f.Cols = len(g.batch.Vertices), site.Part.Features.Cols
		f.F32 = joined(f.F32, fetches, func(x *graph.Features) []float32 { return x.F32 })
		f.BF16 = joined(f.BF16, fetches, func(x *graph.Features) []uint16 { return x.BF16 })
	}
	p.Normalize(site.Opt.RowNormalize)
	g.batch.Prepare()
}

// placed is part of a slice's memory; nil: it is not so large.
func placed[T any](all []T, lo, hi int) []T {
	if hi > cap(all) {
		return nil
	}
	return all[:hi][lo:hi:hi]
}

// joined is what was fetched, one after another, in the memory of all. What is in its place is not copied.
func joined[T any](all []T, fetches []*fetch, of func(*graph.Features) []T) []T {
	n := 0
	for i := range fetches {
		n += len(of(&fetches[i].features))
	}
	if cap(all) < n {
		all = make([]T, n+n/8) // the next batch may be a little larger
	}
	all, n = all[:n], 0
	for i := range fetches {
		part := of(&fetches[i].features)
		if len(part) > 0 && &part[0] != &all[n] {
			copy(all[n:], part)
		}
		n += len(part)
	}
	return all
}

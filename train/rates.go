package train

import (
	"math"
	"slices"
	"time"

	"starling/collective"
	"starling/graph"
	"starling/nn"
	"starling/rng"
	"starling/tensor"
	"starling/wire"
)

// measure is what parts of an epoch cost here, or did when the run began.
func (l *lookup) measure(model *nn.Model) (*costs, error) {
	n := model.Convs()
	v, err := l.figures("rates", 2*n+2, func() ([]float64, error) { return l.rates(model) })
	if err != nil {
		return nil, err
	}
	return l.costs(model, v[:n], v[n:2*n], v[2*n], v[2*n+1]), nil
}

// rates times a small step of the model and a short exchange, and shares the
// figures, so that all workers count with the same ones.
func (l *lookup) rates(model *nn.Model) ([]float64, error) {
	row, edge, err := l.timeStep(model)
	if err != nil {
		return nil, err
	}
	inside, between, err := l.timeExchange()
	if err != nil {
		return nil, err
	}
	mine := append(append(row, edge...), inside, between)
	for i, v := range mine {
		if math.IsNaN(v) {
			mine[i] = 0
		}
	}
	all, err := l.agree(mine...)
	if err != nil {
		return nil, err
	}
	for i := range mine { // the mean of those that could measure
		sum, n := 0.0, 0.0
		for _, v := range all {
			if v[i] > 0 {
				sum, n = sum+v[i], n+1
			}
		}
		mine[i] = sum / max(n, 1)
	}
	return mine, nil
}

// costs joins rates with what the model sends and keeps.
func (l *lookup) costs(model *nn.Model, row, edge []float64, inside, between float64) *costs {
	f := l.part.Features
	sparse := f.Indptr != nil
	size, number := int64(l.dev.RowType(l.opt.Rows).Size()), int64(l.dev.Type().Size())
	c := &costs{inside: inside, between: between, feature: int64(f.Cols) * size}
	if sparse && f.Rows > 0 {
		c.feature = 16 * f.Indptr[f.Rows] / int64(f.Rows) // index and value, there and back
	}
	in := l.opt.Model.In
	for i, t := range model.Traffic(sparse, l.opt.CacheFirst, true) {
		out := l.opt.Model.Hidden
		at := layerCost{row: row[i], edge: edge[i], traffic: l.rowTraffic(t)}
		at.transformFirst = t.Across || t.Forward.Rows > 0 && t.Forward.Rows != in
		at.kept = 3 * int64(out) * size // a layer's output, its norm's, and messages or sums
		c.layers = append(c.layers, at)
		in = out
	}
	for q, t := range collective.AllReduceSent(collective.Among(l.part.Book.Servers), l.end.Rank(), l.end.Size(), model.Size(), int(number)) {
		if l.end.Link(q) == wire.BetweenServers {
			c.fixed += between * float64(t.Bytes)
		} else {
			c.fixed += inside * float64(t.Bytes)
		}
	}
	return c
}

// rowTraffic is the bytes that a border row of a layer takes in an epoch, both ways.
func (l *lookup) rowTraffic(t nn.Traffic) (bytes int64) {
	m := &exact{site: l.site}
	for _, w := range []struct {
		nn.Width
		transfer
	}{{t.Forward, transfer{layer: t.Layer, kind: wire.Activation}}, {t.Backward, transfer{layer: t.Layer, backward: true, kind: wire.Gradient}}} {
		if w.Rows > 0 {
			bytes += m.rowBytes(w.transfer, l.dev.RowType(l.opt.Rows), w.Rows, true)
		}
		if w.scores = true; w.Scores > 0 {
			bytes += m.rowBytes(w.transfer, l.dev.Type(), w.Scores, true)
		}
	}
	return bytes
}

// timed is how many rows the small step has at most: enough not to fit the caches of
// a processor, few enough for a fraction of a second.
const timed = 8192

// timeStep is the seconds a row and an edge of each layer take in an epoch. A step
// without edges gives the rows' part, and the difference to one with edges theirs.
func (l *lookup) timeStep(model *nn.Model) (row, edge []float64, err error) {
	n := min(l.part.Core(), timed)
	row, edge = make([]float64, model.Convs()), make([]float64, model.Convs())
	g := folded(l.part.In, n)
	bare, err := l.stepSeconds(model, &graph.CSR{Indptr: make([]int64, n+1), EdgeDim: g.EdgeDim})
	if err != nil {
		return nil, nil, err
	}
	full, err := l.stepSeconds(model, g)
	for i := range row {
		if n > 0 {
			row[i] = bare[i] / float64(n)
		}
		if g.Edges() > 0 && err == nil {
			edge[i] = max(0, full[i]-bare[i]) / float64(g.Edges())
		}
	}
	return row, edge, err
}

// folded is the first n vertices of a graph with all their in-edges, from vertices
// folded into the same range: degrees and the way memory is read stay as they are.
func folded(in *graph.CSR, n int) *graph.CSR {
	g := &graph.CSR{Indptr: in.Indptr[:n+1], Indices: make([]uint32, in.Indptr[n]), EdgeDim: in.EdgeDim, EdgeFeatures: in.EdgeRows(0, in.Indptr[n])}
	if in.Weights != nil {
		g.Weights = in.Weights[:in.Indptr[n]]
	}
	for e := range g.Indices {
		g.Indices[e] = in.Indices[e] % uint32(n)
	}
	return g
}

// stepSeconds times forward and backward over a graph on the first rows, layer by
// layer; backwards takes of each layer what forwards does. All workers begin together
// and the mean of several steps counts, not the best: where workers share cores or
// memory they do so in training too.
func (l *lookup) stepSeconds(model *nn.Model, g *graph.CSR) ([]float64, error) {
	w := &stopwatch{Local: nn.NewLocal(nn.NewTopology(l.dev, g), l.opt.CacheFirst)}
	p := &nn.Pass{Dev: l.dev, Agg: w, Train: true, Key: rng.New(l.opt.Seed), Vertices: int64(g.Nodes()), Rows: l.opt.Rows, Span: w.span}
	var x nn.Input
	if g.Nodes() > 0 {
		x = input(l.dev, firstRows(l.part.Features, g.Nodes()), l.opt)
		l.step(model, w, p, x) // makes room
	}
	if _, err := l.agree(0); err != nil {
		return nil, err
	}
	w.seconds = make([]float64, model.Convs())
	var forward, all float64
	for all < 0.1 && g.Nodes() > 0 {
		f, b := l.step(model, w, p, x)
		forward, all = forward+f, all+f+b
		w.steps++
	}
	for i := range w.seconds {
		w.seconds[i] *= all / max(forward, 1e-9) / float64(max(w.steps, 1))
	}
	return w.seconds, nil
}

// step is the seconds of a forward and a backward pass.
func (l *lookup) step(model *nn.Model, w *stopwatch, p *nn.Pass, x nn.Input) (forward, backward float64) {
	w.seconds = slices.Grow(w.seconds, model.Convs())[:model.Convs()]
	start := time.Now()
	logits := model.Forward(p, x)
	forward = time.Since(start).Seconds()
	w.backward = true
	model.Backward(p, logits)
	w.backward = false
	return forward, time.Since(start).Seconds() - forward
}

// firstRows are the features of the first n vertices.
func firstRows(f *graph.Features, n int) *graph.Features {
	out := &graph.Features{Rows: n, Cols: f.Cols}
	switch f.Kind() {
	case graph.Dense:
		out.F32 = f.F32[:n*f.Cols]
	case graph.BFloat16:
		out.BF16 = f.BF16[:n*f.Cols]
	case graph.Sparse:
		out.Indptr, out.Indices, out.Values = f.Indptr[:n+1], f.Indices[:f.Indptr[n]], f.Values[:f.Indptr[n]]
	}
	return out
}

// stopwatch adds up the seconds of a model's modules by the graph layer they belong to.
type stopwatch struct {
	*nn.Local
	layer    int
	backward bool
	seconds  []float64 // of forward passes, by layer
	steps    int
}

// Rows is called by every graph layer when it begins.
func (w *stopwatch) Rows(layer int) (int, int) {
	w.layer = layer
	return w.Local.Rows(layer)
}

func (w *stopwatch) span(string) func() {
	start := time.Now()
	return func() {
		if !w.backward {
			w.seconds[w.layer] += time.Since(start).Seconds()
		}
	}
}

// exchanged is what a worker sends to time an exchange.
const exchanged = 2 << 20

// timeExchange is the seconds a byte between workers of a server and between servers,
// when all send at once; 0 where there is no such pair.
func (l *lookup) timeExchange() (inside, between float64, err error) {
	for _, far := range []bool{false, true} {
		var peers []int
		for q := range l.end.Size() {
			if q != l.end.Rank() && (l.part.Book.Server(q) != l.part.Book.Server(l.end.Rank())) == far {
				peers = append(peers, q)
			}
		}
		var rate float64
		for _, bytes := range []int{exchanged / 32, exchanged} { // the first opens windows
			if rate, err = l.timeBytes(peers, bytes); err != nil {
				return 0, 0, err
			}
		}
		if far {
			between = rate
		} else {
			inside = rate
		}
	}
	return inside, between, nil
}

// timeBytes sends bytes to some peers together, which do the same.
func (l *lookup) timeBytes(peers []int, bytes int) (float64, error) {
	out, in := make([][]byte, l.end.Size()), make([][]byte, l.end.Size())
	for _, q := range peers {
		out[q], in[q] = make([]byte, bytes/len(peers)), make([]byte, bytes/len(peers))
	}
	if _, err := l.agree(0); err != nil { // so that all begin together
		return 0, err
	}
	start := time.Now()
	if err := l.allToAll(wire.Control, out, in); err != nil || len(peers) == 0 {
		return 0, err
	}
	return time.Since(start).Seconds() / float64(bytes/len(peers)*len(peers)), nil
}

// release frees a model that was only measured.
func (l *lookup) release(m *nn.Model) {
	for _, p := range m.Params {
		l.dev.Free(p.Value)
		l.dev.Free(p.Grad)
	}
}

// budget is the memory a worker may use for copies. Without --memory-budget it is that
// of when the run began, so that one that goes on chooses as it did.
func (s *site) budget() int64 {
	if s.opt.Strategy.Budget > 0 {
		return s.opt.Strategy.Budget
	}
	list, _ := s.figures("memory", 1, func() ([]float64, error) { // never fails
		here := 0
		for q := range s.end.Size() {
			if s.end.Link(q) != wire.BetweenServers {
				here++
			}
		}
		return []float64{float64(CopyBudget(s.opt.Strategy, here))}, nil
	})
	return int64(list[0])
}

// CopyBudget is the memory that a worker, one of so many of its host, may use for copies:
// what was asked for, else its share of half of what is free; 0: nobody knows.
func CopyBudget(c Choice, workers int) int64 {
	if c.Budget > 0 {
		return c.Budget
	}
	return tensor.MemoryFree() / 2 / int64(max(workers, 1))
}

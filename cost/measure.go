package cost

import (
	"math"
	"slices"
	"time"

	"starling/graph"
	"starling/nn"
	"starling/rng"
	"starling/tensor"
)

// Cluster is what measuring needs of the other workers.
type Cluster interface {
	// Share gives every worker's numbers to all: row q of the result is worker q's. It
	// returns when all have called it.
	Share(mine ...float64) ([][]float64, error)
	// Exchange sends a number of bytes to each of some peers, which all do the same.
	Exchange(peers []int, bytes int) error
	// Peers are the other workers of the same server, or the workers of other servers.
	Peers(otherServers bool) []int
	// Now is the run's clock.
	Now() time.Time
}

// Step is the model and the part of the graph that a small step is timed on.
type Step struct {
	Dev        tensor.Device
	Model      *nn.Model
	In         *graph.CSR // in-edges of the worker's vertices
	Features   *graph.Features
	Input      func(*graph.Features) nn.Input // puts features on the device
	Rows       tensor.DType
	CacheFirst bool
	Seed       uint64
	// Typed is for a typed graph; Features and Input are not used then.
	Typed *TypedStep
}

// Measure times a small step of the model and a short exchange, and shares the figures,
// so that all workers count with the same ones.
func Measure(c Cluster, s *Step) (Rates, error) {
	row, edge, err := s.time(c)
	if err != nil {
		return Rates{}, err
	}
	inside, between, err := timeLinks(c)
	if err != nil {
		return Rates{}, err
	}
	mine := append(append(row, edge...), inside, between)
	for i, v := range mine {
		if math.IsNaN(v) {
			mine[i] = 0
		}
	}
	all, err := c.Share(mine...)
	if err != nil {
		return Rates{}, err
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
	return FromNumbers(mine).Rounded(), nil
}

// Numbers are rates as a list, and FromNumbers the other way round.
func (r Rates) Numbers() []float64 {
	return append(append(slices.Clone(r.Row), r.Edge...), r.Inside, r.Between)
}

// FromNumbers are rates of a list that Numbers made.
func FromNumbers(v []float64) Rates {
	n := len(v)/2 - 1
	return Rates{Row: v[:n], Edge: v[n : 2*n], Inside: v[2*n], Between: v[2*n+1]}
}

// timedRows is how many rows the small step has at most: enough not to fit the caches of a
// processor, few enough for a fraction of a second.
const timedRows = 8192

// time is the seconds that a row and an edge of each layer take in an epoch. A step
// without edges gives the rows' part, and the difference to one with edges theirs.
func (s *Step) time(c Cluster) (row, edge []float64, err error) {
	if s.Model.Convs() == 0 { // an mlp has no graph layers to time
		return nil, nil, nil
	}
	row, edge = make([]float64, s.Model.Convs()), make([]float64, s.Model.Convs())
	g := s.small()
	n := g.Nodes()
	bare, err := s.seconds(c, &graph.CSR{Indptr: make([]int64, n+1), EdgeDim: g.EdgeDim})
	if err != nil {
		return nil, nil, err
	}
	full, err := s.seconds(c, g)
	share := edgeShare(bare, full)
	for i := range row {
		if n > 0 {
			row[i] = bare[i] / float64(n)
		}
		if g.Edges() > 0 && err == nil {
			edge[i] = share * max(0, full[i]-bare[i]) / float64(g.Edges())
		}
	}
	return row, edge, err
}

// edgeShare is the factor that scales the differences above 0 to the sum of all differences: a difference
// below 0 is noise, and the others contain the same amount of it. Without the factor, the edges of a deep
// model cost several times what they do.
func edgeShare(bare, full []float64) float64 {
	var all, above float64
	for i := range min(len(bare), len(full)) {
		all, above = all+full[i]-bare[i], above+max(0, full[i]-bare[i])
	}
	if above == 0 {
		return 0
	}
	return max(0, all) / above
}

// folded is the first n vertices of a graph with all their in-edges, from vertices folded
// into the same range: degrees and the way memory is read stay as they are.
func folded(in *graph.CSR, n int) *graph.CSR {
	g := &graph.CSR{Indptr: in.Indptr[:n+1], Indices: make([]uint32, in.Indptr[n]), EdgeDim: in.EdgeDim,
		EdgeFeatures: in.EdgeRows(0, in.Indptr[n])}
	if in.Weights != nil {
		g.Weights = in.Weights[:in.Indptr[n]]
	}
	for e := range g.Indices {
		g.Indices[e] = in.Indices[e] % uint32(n)
	}
	return g
}

// small is the graph of the rows that are timed.
func (s *Step) small() *graph.CSR {
	n := min(s.In.Nodes(), timedRows)
	if s.Typed != nil {
		return s.Typed.fold(s.In, n)
	}
	return folded(s.In, n)
}

// ready is a pass over a small graph, and its input.
func (s *Step) ready(c Cluster, g *graph.CSR) (w *stopwatch, p *nn.Pass, x nn.Input) {
	topology := nn.NewTopology(s.Dev, g)
	w = &stopwatch{Local: nn.NewLocal(topology, s.CacheFirst), now: c.Now}
	p = &nn.Pass{Dev: s.Dev, Agg: w, Train: true, Key: rng.New(s.Seed), Vertices: int64(g.Nodes()), Rows: s.Rows,
		Span: w.span}
	switch {
	case g.Nodes() == 0:
	case s.Typed != nil:
		topology.SetTypes(s.Typed.Schema, s.Typed.picked, s.Typed.picked)
		p.Types, x = s.Typed.picked, s.Typed.input()
	default:
		x = s.Input(firstRows(s.Features, g.Nodes()))
	}
	return w, p, x
}

// seconds times forward and backward over a graph on the first rows, layer by layer;
// backward takes of each layer what forward does. All workers begin together and the mean
// of several steps counts, not the best: where workers share cores or memory they do so in
// training too.
func (s *Step) seconds(c Cluster, g *graph.CSR) ([]float64, error) {
	w, p, x := s.ready(c, g)
	if g.Nodes() > 0 {
		s.run(w, p, x) // takes the memory that others will reuse
	}
	if _, err := c.Share(0); err != nil {
		return nil, err
	}
	w.seconds = make([]float64, s.Model.Convs())
	var forward, all float64
	for (all < 0.1 || w.steps < leastSteps && all < mostSeconds) && g.Nodes() > 0 {
		f, b := s.run(w, p, x)
		forward, all = forward+f, all+f+b
		w.steps++
		if w.steps == mostSteps && all == 0 { // computing takes no time on a simulator's clock
			break
		}
	}
	for i := range w.seconds {
		w.seconds[i] *= all / max(forward, 1e-9) / float64(max(w.steps, 1))
	}
	return w.seconds, nil
}

const (
	// leastSteps: of one step of a deep model, what else the host did meanwhile may be most.
	leastSteps = 4
	// mostSeconds is enough, whatever the number of steps.
	mostSeconds = 2.0
	// mostSteps ends timing where no time seems to pass.
	mostSteps = 16
)

// run is the seconds of a forward and a backward pass.
func (s *Step) run(w *stopwatch, p *nn.Pass, x nn.Input) (forward, backward float64) {
	w.seconds = slices.Grow(w.seconds, s.Model.Convs())[:s.Model.Convs()]
	start := w.now()
	logits := s.Model.Forward(p, x)
	forward = w.now().Sub(start).Seconds()
	w.backward = true
	s.Model.Backward(p, logits)
	w.backward = false
	return forward, w.now().Sub(start).Seconds() - forward
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

// stopwatch sums the seconds of a model's modules by the graph layer they belong to.
type stopwatch struct {
	*nn.Local
	now      func() time.Time
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
	start := w.now()
	return func() {
		if !w.backward {
			w.seconds[w.layer] += w.now().Sub(start).Seconds()
		}
	}
}

const (
	// timedBytes is what a worker sends to time a link, and timedTimes how often: of one
	// transfer inside a host, waking up may be most.
	timedBytes = 1 << 20
	timedTimes = 3
)

// timeLinks is the seconds of a byte between workers of a server and between servers, when
// all send at once; 0 where there is no such pair.
func timeLinks(c Cluster) (inside, between float64, err error) {
	for _, others := range []bool{false, true} {
		var rates []float64
		for range timedTimes + 1 {
			rate, err := timeBytes(c, c.Peers(others), timedBytes)
			if err != nil {
				return 0, 0, err
			}
			rates = append(rates, rate)
		}
		rates = rates[1:] // the first opens windows and takes the memory
		slices.Sort(rates)
		if median := rates[timedTimes/2]; others {
			between = median
		} else {
			inside = median
		}
	}
	return inside, between, nil
}

// timeBytes sends bytes to some peers together, which do the same.
func timeBytes(c Cluster, peers []int, bytes int) (float64, error) {
	if _, err := c.Share(0); err != nil { // so that all begin together
		return 0, err
	}
	start, each := c.Now(), bytes/max(len(peers), 1)
	if err := c.Exchange(peers, each); err != nil || len(peers) == 0 {
		return 0, err
	}
	return c.Now().Sub(start).Seconds() / float64(each*len(peers)), nil
}

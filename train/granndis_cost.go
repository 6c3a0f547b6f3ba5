package train

import (
	"fmt"
	"math"
	"slices"

	"starling/event"
	"starling/nn"
)

// growth is how a worker's share of a server grows hop by hop, counted exactly; hop 0
// are its own vertices.
type growth struct {
	rows  []int64 // vertices of a hop
	edges []int64 // their in-edges
	far   []int64 // rows of other workers of the server that no earlier hop needs
	// Border rows of own vertices: from the same server, from others, and from others
	// by way of a worker of the same.
	inside, between, relayed int64
	// In-edges of own vertices from own ones, and from hop 1's of this worker.
	near, copied int64
}

// begin counts hop 0 and the border of the part.
func (g *growth) begin(s *surroundings) error {
	g.rows, g.edges = []int64{int64(s.part.Core())}, []int64{s.part.In.Edges()}
	var far []farRow
	for _, v := range s.part.Halo {
		far = append(far, farRow{v: v, holder: s.part.Book.Owner(v), via: -1})
	}
	_, err := s.passOn(s.first, s.last, far)
	for i := range far {
		switch {
		case far[i].via >= 0:
			g.relayed++
		case s.beyond(far[i].v):
			g.between++
		default:
			g.inside++
		}
	}
	return err
}

// add counts the hop that was found last, and the edges that led to it.
func (g *growth) add(s *surroundings) {
	n := len(s.hops)
	g.rows = append(g.rows, int64(len(s.hops[n-1].ids)))
	before := &s.hops[n-2]
	if n > 2 {
		g.edges = append(g.edges, before.in.Edges())
	}
	var far int64
	for _, u := range before.in.Indices {
		if _, own := s.own(u); !own && !s.needed[u] && s.holder(u) != s.end.Rank() {
			s.needed[u] = true
			far++
		}
	}
	g.far = append(g.far, far)
	if n == 2 {
		g.countNear(s)
	}
}

// load is what a worker has to do in a layer of an epoch.
type load struct {
	made, taken     int64 // rows that come out and go in
	edges           int64
	inside, between int64 // rows received
}

// layer is the load of layer l if k layers are preloaded.
func (g *growth) layer(k, l int) load {
	if l >= k {
		w := load{made: g.rows[0], taken: g.rows[0], edges: upTo(g.edges, 0), inside: g.inside + g.relayed, between: g.between}
		if k == 0 { // halo, where all come straight
			w.inside, w.between = g.inside, g.between+g.relayed
		}
		return w
	}
	hop := k - 1 - l
	return load{made: upTo(g.rows, hop), taken: upTo(g.rows, hop+1), edges: upTo(g.edges, hop), inside: upTo(g.far, hop)}
}

// upTo adds up hops 0 to hop; hops that are not there are empty.
func upTo(v []int64, hop int) (sum int64) {
	for _, n := range v[:min(hop+1, len(v))] {
		sum += n
	}
	return sum
}

// costs are the rates that a prediction needs, the same on all workers.
type costs struct {
	layers          []layerCost
	inside, between float64 // seconds a byte, with all workers sending at once
	fixed           float64 // seconds for what is the same whatever is preloaded
	feature         int64   // bytes of a row of features
}

// layerCost is that of a layer in an epoch, forwards and backwards.
type layerCost struct {
	row, edge      float64 // seconds
	transformFirst bool    // rows are transformed before they are added up
	traffic        int64   // bytes a border row, both ways
	kept           int64   // bytes a row that the backward pass needs
}

// seconds predicts a worker's epoch with k preloaded layers, in the spirit of the
// paper's equations 1 to 7,
//
//	Σ over layers  rows·s_row + edges·s_edge + bytes_inside·s_inside + bytes_between·s_between
//
// but with what is counted instead of degrees to the power of layers, and rates that
// are measured. Transfers count in full: how much of them hides under computation
// depends on the graph, and is little where they matter.
func (c *costs) seconds(g *growth, k int, share float64) float64 {
	t := c.fixed
	for l, at := range c.layers {
		w := g.layer(k, l)
		w.receive(g, l-k, share)
		rows := w.made
		if at.transformFirst {
			rows = w.taken
		}
		t += at.row*float64(rows) + at.edge*float64(w.edges) + float64(at.traffic)*(c.inside*float64(w.inside)+c.between*float64(w.between))
	}
	return t
}

// edgeBytes is what an edge takes on the device: near and far, there and back.
const edgeBytes = 16

// memory estimates what a worker needs with k preloaded layers: features, what the
// backward pass keeps, and a graph for every layer that has one of its own.
func (c *costs) memory(g *growth, k int) (bytes int64) {
	bytes = upTo(g.rows, k) * c.feature
	var before load
	for l, at := range c.layers {
		w := g.layer(k, l)
		bytes += w.made * at.kept
		if w != before {
			bytes += w.edges * edgeBytes
		}
		before = w
	}
	return bytes
}

// memory is what this worker needs with k preloaded layers.
func (s *surroundings) memory(k int) int64 {
	model := nn.New(s.dev, s.opt.Model, s.opt.Seed)
	defer s.release(model)
	none := make([]float64, model.Convs())
	return s.costs(model, none, none, 0, 0).memory(&s.grown, k)
}

// forecast is the predicted seconds of an epoch for each number of preloaded layers
// that was looked at, and what was made of it.
type forecast struct {
	seconds []float64 // NaN: does not fit
	best    int
	share   float64 // of the best
	memory  int64   // of the largest worker
	epochs  []float64
}

// On keeps the seconds of epochs.
func (f *forecast) On(e event.Event) {
	if e, ok := e.(event.Epoch); ok {
		f.epochs = append(f.epochs, e.Seconds)
	}
}

// verdict is prediction and measurement in one line; none without epochs.
func (f *forecast) verdict() string {
	if len(f.epochs) == 0 {
		return ""
	}
	times := f.epochs
	if len(times) > 1 {
		times = times[1:] // the first makes room for matrices
	}
	times = slices.Sorted(slices.Values(times))
	return fmt.Sprintf("granndis predicts %.3g s an epoch with %d preloaded layers (halo %.3g s); measured %.3g s",
		f.seconds[f.best], f.best, f.seconds[0], times[len(times)/2])
}

// consider takes the prediction for one more layer: the slowest worker's. It reports
// whether it is worth looking further: not where memory has run out, nor after two
// layers in a row that made it slower.
func (f *forecast) consider(seconds, share float64, fits bool) bool {
	k := len(f.seconds)
	if !fits && k > 0 {
		f.seconds = append(f.seconds, math.NaN())
		return false
	}
	f.seconds = append(f.seconds, seconds)
	if seconds < f.seconds[f.best] {
		f.best, f.share = k, share
	}
	return k-f.best < 2
}

// choose finds hops while they promise to pay, and chooses how many layers to preload.
func (s *surroundings) choose(layers int) (*forecast, error) {
	model := nn.New(s.dev, s.opt.Model, s.opt.Seed)
	c, err := s.measure(model)
	if err != nil {
		return nil, err
	}
	s.release(model)
	f := &forecast{}
	budget := s.budget()
	more := true // hops: where there are none, one layer more costs nothing to look at
	for k := range layers + 1 {
		if k > 0 && more {
			if more, err = s.next(); err != nil {
				return nil, err
			}
		}
		share, err := s.receivable(c, k)
		if err != nil {
			return nil, err
		}
		worst, fits, memory, err := s.foresee(c, k, share, budget)
		if err != nil {
			return nil, err
		}
		on := f.consider(worst, share, fits)
		s.note(f, k, memory)
		if k == f.best {
			f.memory = memory
		}
		if !on && (more || !fits) {
			break
		}
	}
	return f, nil
}

// foresee is the slowest worker's prediction, and whether all workers have the memory.
func (s *surroundings) foresee(c *costs, k int, share float64, budget int64) (worst float64, fits bool, memory int64, err error) {
	need := c.memory(&s.grown, k)
	over := 0.0
	if budget > 0 && need > budget {
		over = 1
	}
	all, err := s.agree(c.seconds(&s.grown, k, share), over, float64(need))
	fits = true
	for _, v := range all {
		worst, fits, memory = max(worst, v[0]), fits && v[1] == 0, max(memory, int64(v[2]))
	}
	return worst, fits, memory, err
}

// note tells what was predicted.
func (s *surroundings) note(f *forecast, k int, memory int64) {
	if s.end.Rank() != 0 {
		return
	}
	text := fmt.Sprintf("granndis with %d preloaded layers: %.3g s an epoch, about %s on the largest worker", k, f.seconds[k], event.Bytes(memory))
	if math.IsNaN(f.seconds[k]) {
		text = fmt.Sprintf("granndis with %d preloaded layers: about %s on the largest worker, more than there is", k, event.Bytes(memory))
	}
	s.events.On(event.Note{Minor: true, Text: text})
}

package partition

import (
	"fmt"
	"slices"
	"strings"

	"starling/event"
	"starling/graph"
	"starling/rng"
)

// Model is the network whose traffic and memory are predicted.
type Model struct {
	Name       string // gcn, sage, sage-pool, gat, gatv2, gin, film, resgcn+, ressage+, mlp, or one of typedModels
	Layers     int
	Hidden     int
	Heads      int // of attention
	In, Out    int // features and classes
	SparseIn   bool
	BatchSize  int   // of sampled training, over all workers
	Fanout     []int // neighbours per vertex, the layer of the seed vertices first
	FeatureLen int   // bytes of a feature row on the wire

	// Of typed models: types, relations, and the widths of all types together. FeatureLen is a mean over vertices.
	Types, Relations, TypeWidths int
}

// Validate names the first invalid setting.
func (m *Model) Validate() error {
	known := slices.Concat([]string{"gcn", "sage", "sage-pool", "gat", "gatv2", "gin", "film", "resgcn+", "ressage+", "mlp"},
		typedModels)
	switch {
	case !slices.Contains(known, m.Name):
		return &graph.InputError{Field: "model", Found: fmt.Sprintf("%q", m.Name), Want: "one of " +
			strings.Join(known, ", "), Fix: "the estimate of traffic is for a model that exists"}
	case m.Layers < 1 || m.Layers > 1000 || m.Hidden < 1 || m.Hidden > 1<<16 || m.Heads < 1:
		return &graph.InputError{Field: "model",
			Found: fmt.Sprintf("%s of %d with %s", event.Tally(m.Layers, "layer"), m.Hidden,
				event.Tally(m.Heads, "head")),
			Want: "1 to 1000 layers of 1 to 65536", Fix: "change layers, hidden or heads"}
	}
	return nil
}

// Plan is the predicted traffic and memory of training on a partition.
type Plan struct {
	Model  string         `json:"model"`
	Layers []LayerTraffic `json:"layers"`
	// FeatureBytes are the feature rows of all halos, fetched once before full-graph
	// training: their aggregates are kept, so the first layer then sends nothing.
	FeatureBytes  int64        `json:"feature_bytes_once"`
	GradientBytes int64        `json:"gradient_bytes"` // all-reduce of one step, all workers
	EpochBytes    int64        `json:"epoch_bytes"`    // full graph: layers and one all-reduce
	Sampled       *SampledPlan `json:"sampled,omitempty"`
	Memory        []int64      `json:"memory_bytes"` // each worker, full graph
	// Trained is what a dry run of training on the parts was for, which EpochBytes, FeatureBytes and Memory are then of;
	// "": they are estimates.
	Trained string `json:"trained,omitempty"`
}

// LayerTraffic is the exchange of one layer in an epoch, over all workers.
type LayerTraffic struct {
	Layer         int   `json:"layer"`
	Forward       int   `json:"forward_width"` // floats per row; 0: nothing is sent
	Backward      int   `json:"backward_width"`
	ForwardBytes  int64 `json:"forward_bytes"`
	BackwardBytes int64 `json:"backward_bytes"`
}

// SampledPlan is an estimate from a few sampled batches.
type SampledPlan struct {
	BatchSize   int     `json:"batch_size"`
	Fanout      []int   `json:"fanout"`
	Batches     int     `json:"batches"` // of an epoch
	RemoteShare float64 `json:"remote_share"`
	RemoteRows  int64   `json:"remote_rows"` // of an epoch
	EpochBytes  int64   `json:"epoch_bytes"` // feature rows, and one all-reduce per batch
}

// PlanFor computes the plan of a model on a partition.
func (q *Quality) PlanFor(m Model) *Plan {
	p := &Plan{Model: m.Name, Memory: make([]int64, len(q.Core))}
	if !m.SparseIn && m.convFirst() {
		p.FeatureBytes = q.CommVolume * int64(m.FeatureLen)
	}
	for l, w := range m.widths() {
		forward, backward := w.exchanged(m, l)
		t := LayerTraffic{Layer: l, Forward: forward, Backward: backward,
			ForwardBytes: 4 * int64(forward) * q.CommVolume, BackwardBytes: 4 * int64(backward) * q.CommVolume}
		p.Layers = append(p.Layers, t)
		p.EpochBytes += t.ForwardBytes + t.BackwardBytes
	}
	// A ring all-reduce sends every parameter 2(n-1) times over n workers.
	p.GradientBytes = 2 * int64(len(q.Core)-1) * 4 * m.parameters()
	p.EpochBytes += p.GradientBytes
	for k := range p.Memory {
		p.Memory[k] = m.memory(q.Core[k], q.Remote[k], q.Edges[k])
	}
	return p
}

// layerWidths of a message-passing layer.
type layerWidths struct{ in, out int }

// convFirst reports whether the first module aggregates the features themselves.
func (m *Model) convFirst() bool { return m.Name == "gcn" || m.Name == "sage" || m.Name == "gin" }

func (m *Model) residual() bool { return m.Name == "resgcn+" || m.Name == "ressage+" }

// widths of the layers that aggregate.
func (m *Model) widths() (list []layerWidths) {
	if m.Name == "mlp" {
		return nil
	}
	in := m.In
	for l := range m.Layers {
		out := m.Hidden
		if l == m.Layers-1 && !m.residual() && m.Name != "gin" {
			out = m.Out
		}
		if m.residual() || m.typed() {
			in = m.Hidden
		}
		list = append(list, layerWidths{in, out})
		in = out
	}
	return list
}

// exchanged is the width of the rows that a layer sends, as nn's sumConv decides: forward
// the narrower side, the input's if both are equal; backward the output's
// unless the input is narrower. Aggregates of constant dense features are kept, so
// such a first layer sends nothing. Layers that do more than sum send transformed
// rows, GAT one number per head beside them.
func (w layerWidths) exchanged(m Model, layer int) (forward, backward int) {
	switch {
	case m.Name == "gat":
		return w.out + m.Heads, w.out + m.Heads
	case m.Name == "gatv2" || m.Name == "film":
		return w.out, w.out
	case m.Name == "sage-pool" || m.typed():
		return w.in, w.in
	case layer == 0 && m.convFirst() && m.SparseIn:
		return w.out, w.out
	case layer == 0 && m.convFirst():
		return 0, 0
	}
	return min(w.in, w.out), min(w.in, w.out)
}

// parameters is about the number of trained weights.
func (m *Model) parameters() (n int64) {
	add := func(in, out int) { n += int64(in)*int64(out) + int64(out) }
	if m.residual() {
		add(m.In, m.Hidden)
		add(m.Hidden, m.Out)
	}
	if m.typed() { // an encoder of each type
		add(m.TypeWidths, m.Hidden)
	}
	for l, w := range m.widths() {
		add(w.in, w.out)
		switch m.Name {
		case "rgcn", "hsage", "rgat":
			n += int64(m.Relations) * int64(w.in) * int64(w.out)
		case "hgt": // keys, queries, values and a last map by type; two maps of heads by relation
			n += int64(m.Types)*4*int64(w.in)*int64(w.out) + 2*int64(m.Relations)*int64(w.out)*int64(w.out/max(m.Heads, 1))
		case "simplehgn": // rows of relations
			n += 64 * int64(m.Relations+64*m.Heads)
		case "sage", "ressage+":
			n += int64(w.in) * int64(w.out)
		case "sage-pool":
			n += int64(w.in) * int64(w.out)
			add(w.in, w.in)
		case "gat":
			n += 2 * int64(w.out)
		case "gatv2":
			n += 2 * int64(w.out)
			add(w.in, w.out)
		case "film": // three more, two of them twice as wide
			n += 5*int64(w.in)*int64(w.out) + int64(w.out)
		case "gin":
			last := m.Hidden
			if l == m.Layers-1 {
				last = m.Out
			}
			add(m.Hidden, last)
		}
	}
	return n
}

// memory is about what a worker needs for the full graph in float32: the edges in
// both directions, feature rows, per layer its output and the sums or received
// rows, gradients of the widest layer, weights with gradient and Adam's two moments.
func (m *Model) memory(core, halo, edges int64) int64 {
	n := 2*(8*(core+halo)+4*edges) + core*int64(m.FeatureLen) + 16*m.parameters()
	widest := int64(0)
	for l, w := range m.widths() {
		forward, _ := w.exchanged(*m, l)
		n += 4 * (core*int64(w.out+w.in) + halo*int64(forward))
		widest = max(widest, int64(max(w.in, w.out)))
	}
	return n + 2*4*(core+halo)*widest
}

// AddSampled adds the rows that mini-batch training would pull in an epoch, from a few
// sampled batches: a keyed permutation of the training vertices, each seed vertex
// computed by its owner.
func (p *Plan) AddSampled(g *graph.CSR, parts []uint32, train []uint32, m Model, workers int, seed uint64) {
	if len(train) == 0 || len(m.Fanout) == 0 || m.BatchSize < 1 {
		return
	}
	const tries = 4
	key := rng.New(seed).Fold(sampleStream)
	order := key.Perm(len(train))
	s := &SampledPlan{BatchSize: m.BatchSize, Fanout: m.Fanout, Batches: (len(train) + m.BatchSize - 1) / m.BatchSize}
	drawn := min(tries, s.Batches)
	var remote, all int64
	for b := range drawn {
		seeds := make([][]uint32, workers)
		for _, i := range order[b*m.BatchSize : min((b+1)*m.BatchSize, len(train))] {
			v := train[i]
			seeds[parts[v]] = append(seeds[parts[v]], v)
		}
		for k, own := range seeds {
			for v := range sampledInputs(g, own, m.Fanout, key.Fold(uint64(b))) {
				all++
				if int(parts[v]) != k {
					remote++
				}
			}
		}
	}
	s.RemoteShare = float64(remote) / float64(max(all, 1))
	s.RemoteRows = remote * int64(s.Batches) / int64(drawn)
	s.EpochBytes = s.RemoteRows*int64(m.FeatureLen) + int64(s.Batches)*p.GradientBytes
	p.Sampled = s
}

// sampledInputs are the vertices whose features a worker needs for its seed vertices.
func sampledInputs(g *graph.CSR, seeds []uint32, fanout []int, key rng.Key) map[uint32]bool {
	seen := map[uint32]bool{}
	for _, v := range seeds {
		seen[v] = true
	}
	frontier := seeds
	for l, f := range fanout {
		var next []uint32
		for _, v := range frontier {
			row, k := g.Neighbors(v), key.Fold(uint64(l)).Fold(uint64(v))
			for i := range min(f, len(row)) {
				u := row[i]
				if len(row) > f {
					u = row[k.IntN(uint64(i), len(row))]
				}
				if !seen[u] {
					seen[u] = true
					next = append(next, u)
				}
			}
		}
		// Vertices of inner layers are sampled again in the next one.
		frontier = slices.Concat(frontier, next)
	}
	return seen
}

package batch

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"starling/exchange"
	"starling/graph"
	"starling/nn"
	"starling/sample"
	"starling/store"
	"starling/tensor"
	"starling/train"
	"starling/wire"
)

// Temporal batches (--temporal): a seed vertex sees what is from before its own time, in training, when splits are
// measured, and in predictions. sample.Temporal says what is drawn; here is where times come from, and the passes
// that
// take the place of those over the whole graph, which would show every vertex all edges.

// Temporals are the values of --temporal.
var Temporals = []string{"uniform", "recent"}

// measuring is the epoch of draws that splits are measured and vertices predicted with: the same every time.
const measuring = -1

// mostRowsMeasured bounds the seeds of a batch that only goes forward.
const mostRowsMeasured = 1024

// checkTemporal refuses what a temporal run cannot have.
func (m *Options) checkTemporal(o *train.Options) error {
	flag := "--temporal " + m.Temporal
	apart := func(other, why, fix string) error { return graph.Apart(flag, other, why, fix) }
	switch {
	case !slices.Contains(Temporals, m.Temporal):
		return train.Mistake("--temporal %s: it is uniform or recent", m.Temporal)
	case m.Sampler != "neighbour":
		return apart("--sampler "+m.Sampler, "its batches show all seed vertices the same edges",
			"use --sampler neighbour")
	case m.Replace:
		return apart("--replace", "edges from before are drawn without replacement", "leave it out")
	case m.Weighted:
		return apart("--weighted", "edges from before are drawn uniformly, or the latest", "leave it out")
	case o.Pairs != nil:
		return apart("pairs of vertices", "batches of pairs see all edges but their own",
			"leave it out")
	case o.Model.Typed != nil:
		return apart("--model "+o.Model.Model, "relations are drawn without times", "leave it out")
	case o.Embeddings != nil:
		return apart("--learn-embeddings", "a learnt row is of all times", "leave one of them out")
	case o.Inductive:
		return apart("--inductive", "times say what training sees", "leave it out: no vertex sees what comes later")
	case o.Model.Norm == "batch":
		return apart("--norm batch", "the norm's means would be over seed vertices of other times",
			"use --norm layer or none")
	case o.Model.GraphLayers() == 0:
		return apart("--model "+o.Model.Model, "it looks at no edge", "leave it out")
	case len(m.Fanouts) != o.Model.GraphLayers():
		return train.Mistake("%d fanouts for a model of %d graph layers; give one per layer", len(m.Fanouts),
			o.Model.GraphLayers())
	}
	if k, ok := o.Model.Sums(); ok && k == nn.Symmetric || symmetric(o.Model.Model) {
		return apart("--model "+o.Model.Model, "it divides by the degrees of both ends of an edge, and that of "+
			"the far end at "+
			"the seed's time is not known", "use sage, gin or gat")
	}
	return m.checkWeighs(*o)
}

func symmetric(model string) bool { return model == "gcn" || model == "resgcn+" }

// Timeless refuses temporal batches, for strategies that draw otherwise.
func Timeless(o *train.Options, b *Options, _ train.Facts) error {
	if b.Temporal == "" {
		return nil
	}
	return graph.Apart(Named(o), "--temporal "+b.Temporal, "it draws vertices that several seeds share, whose "+
		"times differ",
		"use --strategy "+o.Strategy.Descriptor.Baseline)
}

// CheckTimes refuses a dataset that a temporal run cannot be of: seen are times of edges, of vertices times.
func CheckTimes(dir string, seen, times []int64, splits *graph.Splits) error {
	if times == nil || seen == nil {
		return &graph.InputError{File: dir, Field: "--temporal", Found: "no times of vertices",
			Want: "times.npy: the time of each vertex, from which on nothing is shown to it",
			Fix:  "import the table of vertices with --time COLUMN, or leave out --temporal"}
	}
	for _, set := range []struct {
		name string
		list []uint32
	}{{"training", splits.Train}, {"validation", splits.Val}, {"test", splits.Test}} {
		for _, v := range set.list {
			if times[v] == graph.NoTime {
				return &graph.InputError{File: dir, Field: "times", Found: fmt.Sprintf("no time of %s vertex %d",
					set.name, v),
					Want: "a time for every vertex of a split", Fix: "add it, or take the vertex out of the split"}
			}
		}
	}
	return nil
}

// AsOfTime is the time that a vertex is seen at: without one of its own, after all others.
func AsOfTime(t int64) int64 {
	if t == graph.NoTime {
		return math.MaxInt64
	}
	return t
}

// pastOf is the temporal sampling of a whole graph.
func pastOf(g *graph.CSR, data *graph.Dataset, mo *Options, seed uint64) *sample.Temporal {
	return &sample.Temporal{Graph: g, Past: sample.NewPast(g, data.SeenFrom(), nil), Times: data.Times,
		SeedVertices: data.Splits.Train, Size: mo.Size, Fanouts: mo.Fanouts, Recent: mo.Temporal == "recent",
		Seed: seed}
}

// temporalSteps has temporal batches of a graph that is all here sampled, and splits measured by such.
func temporalSteps(f *train.Loop, g *graph.CSR, data *graph.Dataset, mo Options) (*Steps, error) {
	if err := mo.checkTemporal(&f.Opt); err != nil {
		return nil, err
	}
	if err := CheckTimes(data.Dir, data.SeenFrom(), data.Times, &data.Splits); err != nil {
		return nil, err
	}
	n := pastOf(g, data, &mo, f.Opt.Seed)
	method, err := n.Prepare()
	if err != nil {
		return nil, err
	}
	m := OnMethod(f, method, g, data.Features, data.Labels, mo)
	host := NewHost(f, g, rowsOf(f, data.Features), nil, m.Over.(*Blocks).loops)
	s := n.TemporalSampler()
	w := &passes{dev: f.Dev, opt: &f.Opt, model: f.Model, over: blocksOf(f.Dev, g, f.X.Matrix), host: host, all: f.X,
		draw: func(b *Batch, seeds []uint32, times []int64) error {
			s.SampleAt(&b.Batch, seeds, times, measuring, 0)
			return nil
		}}
	f.Outputs = func() (tensor.Matrix, error) {
		return w.measured(g.Nodes(), &data.Splits, func(v uint32) (uint32, int64) { return v, data.Times[v] })
	}
	return m, nil
}

// rowsOf are features as a run takes them.
func rowsOf(f *train.Loop, features *graph.Features) *graph.Features {
	if f.Opt.RowNormalize && features.Kind() == graph.Sparse {
		return features.RowNormalize()
	}
	return features
}

// passes go forward over temporal batches of any vertices.
type passes struct {
	dev   tensor.Device
	opt   *train.Options
	model *nn.Model
	over  *Blocks
	host  *Host
	all   nn.Input // of all vertices, where they are here
	// draw fills a batch with the blocks of some seeds, and brings their rows.
	draw  func(b *Batch, seeds []uint32, times []int64) error
	batch Batch
}

// measured are the outputs of the vertices of splits as rows of a matrix of n, the others zeros.
func (w *passes) measured(n int, splits *graph.Splits, seed func(v uint32) (uint32, int64)) (tensor.Matrix, error) {
	list := slices.Concat(splits.Train, splits.Val, splits.Test)
	width := w.opt.Model.Out
	rows := make([]float64, n*width)
	if _, err := w.each(list, 0, seed, func(v uint32, row []float64) { copy(rows[int(v)*width:], row) }); err != nil {
		return tensor.Matrix{}, err
	}
	out := w.dev.New(w.dev.Type(), n, width)
	w.dev.Upload(out, rows)
	return out, w.dev.Err()
}

// each gives do what the model computes for some vertices, each of which seed gives as the sampler knows it, with its
// time; but for the last leftOut stages.
func (w *passes) each(list []uint32, leftOut int, seed func(v uint32) (uint32, int64),
	do func(v uint32, row []float64)) (width int, err error) {
	for some := range slices.Chunk(list, mostRowsMeasured) {
		var seeds []uint32
		var times []int64
		for _, v := range some {
			s, t := seed(v)
			seeds, times = append(seeds, s), append(times, AsOfTime(t))
		}
		b := &w.batch
		b.Host = w.host
		if err := w.draw(b, seeds, times); err != nil {
			return 0, err
		}
		b.Prepare()
		rows, cols := w.forward(b, leftOut)
		if err := w.dev.Err(); err != nil {
			return 0, err
		}
		for i, v := range some {
			do(v, rows[i*cols:(i+1)*cols])
		}
		width = cols
	}
	return width, nil
}

// forward is a batch's rows after all stages but the last leftOut.
func (w *passes) forward(b *Batch, leftOut int) (rows []float64, cols int) {
	w.over.Begin(b)
	defer w.over.End()
	x := b.input(w.dev, w.all)
	p := &nn.Pass{Dev: w.dev, Agg: w.over, Fewer: true, Rows: w.opt.Rows, IDs: tensor.Indices(w.dev, b.ids()),
		Key: passKey(w.opt.Seed, 0, 0)}
	y := x
	for i := range w.model.Stages() - leftOut {
		next := w.model.Stage(p, i, y)
		if i > 0 {
			w.dev.Free(y.Matrix)
		}
		y = nn.Input{Matrix: next}
	}
	b.freeInput(w.dev, x)
	cols = y.Matrix.Cols
	rows = make([]float64, y.Matrix.Rows*cols)
	w.dev.Download(rows, y.Matrix)
	w.dev.Free(y.Matrix)
	return rows, cols
}

// trainingTimes are the times of all training vertices, by number, which workers learn from each other.
func trainingTimes(s *exchange.Setup) (map[uint32]int64, error) {
	p := s.W.Part
	if err := CheckTimes(p.Dir, p.SeenFrom, p.Times, &p.Splits); err != nil {
		return nil, err
	}
	var mine []byte
	for _, v := range p.Splits.Train {
		mine = binary.LittleEndian.AppendUint64(mine, uint64(s.W.Global(v)))
		mine = binary.LittleEndian.AppendUint64(mine, uint64(p.Times[v]))
	}
	lists, err := s.TellServer(0, s.W.End.Size(), mine)
	if err != nil {
		return nil, err
	}
	times := map[uint32]int64{}
	for q, b := range lists {
		if len(b)%16 != 0 {
			return nil, fmt.Errorf("worker %d tells of times in %d bytes", q, len(b))
		}
		for at := range slices.Chunk(b, 16) {
			v := binary.LittleEndian.Uint64(at)
			if v >= uint64(p.Book.Nodes) || p.Book.Owner(uint32(v)) != q {
				return nil, fmt.Errorf("worker %d tells of the time of vertex %d, which it does not have", q, v)
			}
			times[uint32(v)] = int64(binary.LittleEndian.Uint64(at[8:]))
		}
	}
	return times, nil
}

// temporal is the store's sampler of temporal batches.
func (p *Pipeline) temporal() *store.TemporalSampler {
	return p.Store.TemporalSampler(p.Options.Fanouts, p.Options.Temporal == "recent", p.Site.Opt.Seed)
}

// temporalShare draws for the worker's seed vertices what each sees at its time.
type temporalShare struct {
	*store.TemporalSampler
	of    Seeds
	times map[uint32]int64
}

func (m *temporalShare) Fill(ctx context.Context, b *sample.Batch, known *store.Known, epoch, number int) (bool,
	error) {
	seeds := m.of.Seeds(epoch, number)
	times := make([]int64, len(seeds))
	for i, v := range seeds {
		t, ok := m.times[v]
		if !ok {
			return false, fmt.Errorf("vertex %d is a seed, and no worker told its time", v)
		}
		times[i] = t
	}
	err := m.Sample(ctx, b, known, seeds, times, epoch, number)
	b.Scale = m.of.Scale()
	return true, err
}

// asOf measures the splits of several workers by temporal batches, each worker those of its own vertices.
type asOf struct {
	p *Pipeline
	// expected is what a measurement sends.
	expected Plan
}

// Join learns what a measurement will send.
func (t *asOf) Join(p *Pipeline) error {
	t.p = p
	return nil
}

// Prepare draws a few of the batches that are measured.
func (t *asOf) Prepare(p *Pipeline) error {
	part := p.Site.Part
	list := slices.Concat(part.Splits.Train, part.Splits.Val, part.Splits.Test)
	batches := (len(list) + mostRowsMeasured - 1) / mostRowsMeasured
	perBatch := make([][]store.Traffic, p.Setup.W.End.Size())
	s := p.temporal()
	var b sample.Batch
	var known store.Known
	for i := range min(batches, plannedBatches) {
		if i == min(batches, plannedBatches)-1 {
			i = batches - 1
		}
		seeds, times := t.seeds(list[i*mostRowsMeasured : min((i+1)*mostRowsMeasured, len(list))])
		if err := s.Sample(p.Site.Ctx, &b, &known, seeds, times, measuring, 0); err != nil {
			return err
		}
		for q, x := range s.Traffic(&b) {
			perBatch[q] = append(perBatch[q], x)
		}
	}
	return t.swap(perBatch, batches)
}

// swap adds what this worker sends to others when splits are measured: requests, and what they expect of it.
func (t *asOf) swap(perBatch [][]store.Traffic, batches int) error {
	setup := t.p.Setup
	of := func(q int, kind func(store.Traffic) int64) Estimate {
		return perBatches(valuesOf(perBatch[q], kind), batches)
	}
	out := make([][]byte, len(perBatch))
	for q := range perBatch {
		edges, rows := of(q, answered[0]), of(q, answered[1])
		out[q], _ = binary.Append(nil, binary.LittleEndian, [2]float64{edges.Mean, rows.Mean})
	}
	in, err := setup.Swap(wire.Control, out)
	if err != nil {
		return err
	}
	for q, b := range in {
		var v [2]float64
		if n, err := binary.Decode(b, binary.LittleEndian, v[:]); err != nil || n != len(b) {
			return fmt.Errorf("worker %d tells what it expects in %d bytes, expected %d", q, len(b), 8*len(v))
		}
		if q == setup.W.End.Rank() {
			continue
		}
		requests := of(q, func(x store.Traffic) int64 { return x.Requests })
		t.expected.Drawn.Add(setup.W.Class(wire.Topology, -1, q), Estimate{Mean: requests.Mean + v[0]})
		t.expected.Drawn.Add(setup.W.Class(wire.Feature, -1, q), Estimate{Mean: v[1]})
	}
	return nil
}

// seeds are some of the part's vertices as seeds.
func (t *asOf) seeds(list []uint32) (numbers []uint32, times []int64) {
	part := t.p.Site.Part
	for _, v := range list {
		numbers, times = append(numbers, t.p.Setup.W.Global(v)), append(times, AsOfTime(part.Times[v]))
	}
	return numbers, times
}

// Measure has the loop measure splits by temporal batches.
func (t *asOf) Measure(f *train.Loop) {
	w, part := t.p.passes(f.Model, NewHost(f, t.p.Site.Part.In, t.p.Site.Part.Features, nil, t.p.Loops), f.X),
		t.p.Site.Part
	f.Outputs = func() (tensor.Matrix, error) {
		return w.measured(part.Core(), &part.Splits, func(v uint32) (uint32, int64) {
			return t.p.Setup.W.Global(v), part.Times[v]
		})
	}
}

// passes go forward over batches that are drawn and pulled from their owners.
func (p *Pipeline) passes(model *nn.Model, host *Host, all nn.Input) *passes {
	s, puller, o := p.temporal(), p.Store.Puller(), &p.Site.Opt
	return &passes{dev: p.Site.Dev, opt: o, model: model, over: NewBlocks(p.Site.Dev, p.Loops, all.Matrix),
		host: host,
		all:  all, batch: Batch{Pulled: &Pulled{}}, draw: func(b *Batch, seeds []uint32, times []int64) error {
			err := s.Sample(p.Site.Ctx, &b.Batch, &b.Pulled.Known, seeds, times, measuring, 0)
			if err != nil {
				return err
			}
			return b.Pull(p.Site.Ctx, puller, nil, o.RowNormalize)
		}}
}

// Plan replaces the passes over the whole graph by what temporal batches are expected to send.
func (t *asOf) Plan(p *wire.Plan, _ *nn.Model) {
	for class := range p.Measure {
		if class.Kind != wire.Control {
			delete(p.Measure, class)
		}
	}
	clear(p.OnceMeasured)
	p.Measure.AddAll(t.expected.Drawn.bytes, 1)
}

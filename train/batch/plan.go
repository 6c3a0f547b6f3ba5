package batch

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"starling/collective"
	"starling/event"
	"starling/exchange"
	"starling/sample"
	"starling/store"
	"starling/train"
	"starling/wire"
)

// Batches that are drawn before training: to know what batches cost, and to choose the
// rows that a cache keeps. An epoch of a dry run has dryBatches: they differ by a few percent, and all workers draw
// theirs. For one that has a seed vertex they draw mostDryTries.
const (
	plannedBatches = 8
	CountedBatches = 64
	dryBatches     = 2
	mostDryTries   = 32
)

// probe draws batches of seeds in an epoch and gives each to f; any: some worker has a seed vertex of it.
func (p *Pipeline) probe(seeds Seeds, epoch int, numbers []int,
	f func(m Sampler, b *sample.Batch, known *store.Known, any bool)) error {
	m := p.NewSampler(seeds)
	var b sample.Batch
	var known store.Known
	for _, number := range numbers {
		any, err := m.Fill(p.Site.Ctx, &b, &known, epoch, number)
		if err != nil {
			return err
		}
		f(m, &b, &known, any)
	}
	return nil
}

// upTo are the first n numbers.
func upTo(n int) (numbers []int) {
	for i := range n {
		numbers = append(numbers, i)
	}
	return numbers
}

// planned are the batches that say what an epoch costs, in a dry run too: the first few, and the last, which may be
// smaller than the others.
func (p *Pipeline) planned() []int {
	numbers := upTo(min(plannedBatches, p.all))
	if len(numbers) > 0 {
		numbers[len(numbers)-1] = p.all - 1
	}
	return numbers
}

// frequencies count how often the batches of seeds need vertices.
func (p *Pipeline) frequencies(seeds Seeds) (map[uint32]float64, error) {
	count := map[uint32]float64{}
	numbers := upTo(min(CountedBatches, p.steps))
	err := p.probe(seeds, 0, numbers, func(_ Sampler, b *sample.Batch, _ *store.Known, _ bool) {
		for _, v := range b.Vertices {
			count[v]++
		}
	})
	return count, err
}

// fillCache makes the cache that was asked for, for the batches of seeds.
func (p *Pipeline) fillCache(o *CacheOptions, seeds Seeds) (err error) {
	bytes, policy := o.bytes(p.Store), o.Policy(p.computed(seeds))
	rows := p.Store.CacheRows(bytes)
	var scores map[uint32]float64
	switch {
	case policy == Belady:
		return p.lookAhead(o, seeds)
	case policy == "none" || rows == 0:
		return nil
	case policy == "s3fifo":
		p.Store.UseS3FIFOWithin(bytes)
		return nil
	case policy == "degree":
		scores = p.Store.HaloDegrees()
	case p.Store.AllInPlace(): // nothing to keep, and so nothing to count
		return nil
	case policy == Probability:
		if scores, err = p.probabilities(seeds.(expecting), rows); err != nil {
			return err
		}
	default:
		if scores, err = p.frequencies(seeds); err != nil {
			return err
		}
	}
	return p.Store.UseStaticWithin(p.Site.Ctx, bytes, scores)
}

// Plan is what this worker is expected to send for batches.
type Plan struct {
	Drawn Expected // in an epoch
	// Redundancy of the workers' shares of a batch: their rows over the distinct ones; 0: unknown.
	Redundancy float64
	// empty is the share of batches that no worker has a seed vertex of.
	empty float64
}

// Traffic is what a batch costs, by owner of what is drawn and pulled.
type Traffic func(m Sampler, b *sample.Batch, known *store.Known) []store.Traffic

// Expect draws a few batches and learns from other workers what this one will send for theirs:
// requests of its own, and edges and rows that they ask for.
func (p *Pipeline) Expect(traffic Traffic) (*Plan, error) {
	return p.ExpectOf(traffic, func(_ Sampler, b *sample.Batch) []uint32 { return b.Vertices })
}

// ExpectOf is the same where redundancy is of vertices that a share of a batch says.
func (p *Pipeline) ExpectOf(traffic Traffic, shared func(m Sampler, b *sample.Batch) []uint32) (*Plan, error) {
	empty := 0.0
	out, err := p.ExpectFrom(func(epoch int, numbers []int, add func([]uint32, []store.Traffic)) error {
		drawn, none := 0, 0
		of := func(m Sampler, b *sample.Batch, known *store.Known, any bool) {
			if drawn++; !any {
				none++
			}
			add(shared(m, b), traffic(m, b, known))
		}
		defer func() { empty = float64(none) / float64(max(drawn, 1)) }()
		if p.ahead != nil {
			return p.ahead.drawn.planned(p, of)
		}
		return p.probe(p.Seeds, epoch, numbers, of)
	})
	if err == nil {
		out.empty = empty
	}
	return out, err
}

// HasEmpty says which share of batches no worker has a seed vertex of.
func (x *Plan) HasEmpty(share float64) { x.empty = share }

// ExpectFrom is the same with batches that draw draws, whose vertices and costs, by owner, it gives
// to add.
func (p *Pipeline) ExpectFrom(draw func(epoch int, numbers []int, add func(vertices []uint32,
	batch []store.Traffic)) error) (*Plan, error) {
	perBatch := make([][]store.Traffic, p.Setup.W.End.Size()) // by owner
	var first []uint32                                        // vertices of one batch
	// Of another epoch than the cache was chosen by, which knows the first too well.
	err := draw(1, p.planned(), func(vertices []uint32, batch []store.Traffic) {
		if len(perBatch[0]) == 0 {
			first = slices.Clone(vertices)
		}
		for q, t := range batch {
			perBatch[q] = append(perBatch[q], t)
		}
	})
	if err != nil {
		return nil, err
	}
	out := &Plan{}
	if out.Redundancy, err = measureRedundancy(p.Setup, first); err != nil {
		return nil, err
	}
	return out, p.swapExpected(out, perBatch)
}

// valuesOf are the bytes of a kind in batches.
func valuesOf(batches []store.Traffic, kind func(store.Traffic) int64) []float64 {
	values := make([]float64, len(batches))
	for i, t := range batches {
		values[i] = float64(kind(t))
	}
	return values
}

// answered are the kinds of bytes that owners send back.
var answered = [...]func(store.Traffic) int64{
	func(t store.Traffic) int64 { return t.Edges },
	func(t store.Traffic) int64 { return t.Rows },
	func(t store.Traffic) int64 { return t.Embeddings },
}

// swapExpected adds what this worker sends to others: what it asks for, and the answers that they expect.
func (p *Pipeline) swapExpected(to *Plan, perBatch [][]store.Traffic) error {
	setup := p.Setup
	out, before, once := make([][]byte, len(perBatch)), p.Store.Traffic(), p.Store.Once()
	took := p.ahead.took(len(perBatch))
	for q, batches := range perBatch {
		before[q].Add(once[q])
		before[q] = before[q].Since(took[q])
		numbers := []float64{float64(before[q].Edges), float64(before[q].Rows)}
		for _, kind := range answered {
			e := p.PerEpoch(valuesOf(batches, kind))
			numbers = append(numbers, e.Mean, e.Variance)
		}
		out[q], _ = binary.Append(nil, binary.LittleEndian, numbers)
	}
	in, err := setup.Swap(wire.Control, out)
	if err != nil {
		return err
	}
	for q, b := range in {
		var v [8]float64
		if n, err := binary.Decode(b, binary.LittleEndian, v[:]); err != nil || n != len(b) {
			return fmt.Errorf("worker %d tells what it expects in %d bytes, expected %d", q, len(b), 8*len(v))
		}
		if q == setup.W.End.Rank() {
			continue
		}
		add := func(kind wire.Kind, e Estimate) { to.Drawn.Add(setup.W.Class(kind, -1, q), e) }
		setup.Sent.Add(setup.W.Class(wire.Topology, -1, q), before[q].Requests+int64(v[0]))
		setup.Sent.Add(setup.W.Class(wire.Feature, -1, q), int64(v[1]))
		add(wire.Topology, p.PerEpoch(valuesOf(perBatch[q], func(t store.Traffic) int64 { return t.Requests })))
		add(wire.Topology, Estimate{v[2], v[3]})
		add(wire.Feature, Estimate{v[4], v[5]})
		if p.input != nil {
			add(wire.Embedding, p.PerEpoch(valuesOf(perBatch[q], func(t store.Traffic) int64 { return t.Pushed })))
			add(wire.Embedding, Estimate{v[6], v[7]})
		}
	}
	return nil
}

// measureRedundancy has the owners of vertices count how often the workers need each for one batch.
func measureRedundancy(setup *exchange.Setup, vertices []uint32) (float64, error) {
	out := make([][]byte, setup.W.End.Size())
	for _, v := range vertices {
		q := setup.W.Part.Book.Owner(v)
		out[q] = binary.LittleEndian.AppendUint32(out[q], v)
	}
	in, err := setup.Swap(wire.Topology, out)
	if err != nil {
		return 0, err
	}
	seen, needed := map[uint32]bool{}, 0
	for _, b := range in {
		for _, v := range exchange.Numbers(b) {
			seen[v] = true
			needed++
		}
	}
	all, err := setup.Share(float64(needed), float64(len(seen)))
	sum := [2]float64{}
	for _, v := range all {
		sum[0], sum[1] = sum[0]+v[0], sum[1]+v[1]
	}
	if sum[1] == 0 {
		return 0, err
	}
	return sum[0] / sum[1], err
}

// Traffic is what drawing a batch sends, pulling its rows and labels, and learning its input.
func (p *Pipeline) Traffic(m Sampler, b *sample.Batch, _ *store.Known) []store.Traffic {
	t := m.Traffic(b)
	if p.task == nil {
		p.Store.AddLabels(t, b.Vertices[:Outputs(b)])
	}
	if p.input != nil {
		p.input.AddSteps(t, [][]uint32{b.Vertices})
	}
	return t
}

// Estimate is of a number per epoch.
type Estimate struct{ Mean, Variance float64 }

// Times is the estimate of something that is each of some bytes.
func (e Estimate) Times(bytes int) Estimate {
	return Estimate{e.Mean * float64(bytes), e.Variance * float64(bytes) * float64(bytes)}
}

// Expected is bytes per epoch by class, and the uncertainty of all together.
type Expected struct {
	bytes wire.Bytes
	total Estimate
}

// Add adds an estimate of bytes.
func (x *Expected) Add(c wire.Class, e Estimate) {
	if x.bytes == nil {
		x.bytes = wire.Bytes{}
	}
	x.bytes.Add(c, int64(math.Round(e.Mean)))
	x.total.Mean, x.total.Variance = x.total.Mean+e.Mean, x.total.Variance+e.Variance
}

// deviation is relative.
func (x *Expected) deviation() float64 {
	if x.total.Mean == 0 {
		return 0
	}
	return math.Sqrt(x.total.Variance) / x.total.Mean
}

// PerEpoch is what an epoch of B batches is expected to take, from the values of the n-1 first and of the last: the
// mean of the first times B-1, which is off by (B-1)·s/√(n-1) and an epoch by itself by √B·s, and the last.
func (p *Pipeline) PerEpoch(values []float64) Estimate { return perBatches(values, p.all) }

// perBatches is the same for any number of batches.
func perBatches(values []float64, batches int) Estimate {
	n, all := len(values), float64(batches)
	if n < 2 {
		return Estimate{Mean: sumOf(values)}
	}
	first := float64(n - 1)
	mean, alike := sumOf(values[:n-1])/first, values[:n-1]
	if n == 2 { // the last tells how much they differ, though it may be smaller
		alike = values
	}
	v := variance(alike) * all
	if n < batches {
		v += variance(alike) * (all - 1) * (all - 1) / first
	}
	return Estimate{Mean: mean*(all-1) + values[n-1], Variance: v}
}

func sumOf(values []float64) (sum float64) {
	for _, v := range values {
		sum += v
	}
	return sum
}

// variance is of values that are drawn alike, at least two.
func variance(values []float64) (sum float64) {
	n := float64(len(values))
	mean := sumOf(values) / n
	for _, v := range values {
		sum += (v - mean) * (v - mean) / (n - 1)
	}
	return sum
}

// PlanSums adds an all-reduce of some numbers.
func PlanSums(into wire.Bytes, end wire.Endpoint, count int) {
	for q, t := range collective.AllReduceSent(collective.Ordered, end.Rank(), end.Size(), count, 8) {
		into.Add(wire.Class{Kind: wire.Control, Layer: -1, Link: end.Link(q)}, t.Bytes)
	}
}

// rowCounts are the rows that this worker's batches pulled.
func rowCounts(s *store.Store, redundancy float64) train.RowCounts {
	needed, remote, cached := s.Rows()
	return train.RowCounts{Needed: needed, Remote: remote, Cached: cached, Requests: s.Requests(),
		Redundancy: redundancy}
}

// reportRows says where rows came from.
func (p *Pipeline) reportRows(redundancy float64) {
	r := rowCounts(p.Store, redundancy)
	if r.Needed == 0 || p.Site.End.Rank() > 0 {
		return
	}
	text := fmt.Sprintf("other hosts own %.1f%% of the %s of features that worker 0's batches needed",
		100*float64(r.Remote)/float64(r.Needed), event.Counted(r.Needed, "row"))
	if r.Cached > 0 {
		text += fmt.Sprintf("; the cache had %.1f%% of these", 100*float64(r.Cached)/float64(r.Remote))
	}
	if drawn, kept := p.Store.Draws(); kept > 0 {
		vertices, bytes := p.Store.KeptEdges()
		text += fmt.Sprintf("; %.1f%% of their vertices' draws needed no trip, by the in-edges of %s in %.1f MiB",
			100*float64(kept)/float64(drawn), event.Counted(int64(vertices), "vertex"), float64(bytes)/(1<<20))
	}
	if redundancy > 0 {
		text += fmt.Sprintf("; the workers' shares of a batch need each row %.2f times", redundancy)
	}
	p.Site.Events.On(event.Note{Minor: true, Text: text})
	if asked := p.shared.asked.Load(); asked > 0 {
		p.Site.Events.On(event.Note{Minor: true, Text: fmt.Sprintf("worker 0 asked for %s to know the "+
			"probabilities of ladies; its own destinations have %.1f%% of them", event.Counted(asked, "in-edge"),
			100*float64(p.shared.needed.Load())/float64(asked))})
	}
}

package mini

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"starling/event"
	"starling/exchange"
	"starling/sample"
	"starling/store"
	"starling/train"
	"starling/wire"
)

// How many batches are drawn before training: to know what batches cost, and to choose the
// rows that a cache keeps. An epoch of a dry run has dryBatches: they differ by a few percent, and all workers draw
// theirs.
const (
	plannedBatches = 8
	CountedBatches = 64
	dryBatches     = 2
)

// probe draws batches of an epoch and gives each to f.
func (d *distributed) probe(epoch, most int,
	f func(m remoteSampler, b *sample.Batch, known *store.Known)) error {
	m := d.newSampler()
	var b sample.Batch
	var known store.Known
	for number := range min(most, d.steps()) {
		if _, err := m.sample(d.site.Ctx, &b, &known, epoch, number); err != nil {
			return err
		}
		f(m, &b, &known)
	}
	return nil
}

// frequencies count how often batches need vertices.
func (d *distributed) frequencies() (map[uint32]float64, error) {
	count := map[uint32]float64{}
	err := d.probe(0, CountedBatches, func(_ remoteSampler, b *sample.Batch, _ *store.Known) {
		for _, v := range b.Vertices {
			count[v]++
		}
	})
	return count, err
}

// fillCache makes the cache that was asked for.
func (d *distributed) fillCache(o *CacheOptions) (err error) {
	rows := d.store.CacheRows(o.bytes())
	var scores map[uint32]float64
	switch {
	case o.Cache == "none" || rows == 0:
		return nil
	case o.Cache == "s3fifo":
		d.store.UseS3FIFO(rows)
		return nil
	case o.Cache == "degree":
		scores = d.store.HaloDegrees()
	default:
		if scores, err = d.frequencies(); err != nil {
			return err
		}
	}
	return d.store.UseStatic(d.site.Ctx, rows, scores)
}

// estimate is one of a kind of bytes per epoch.
type estimate struct{ mean, variance float64 }

// kinds of a batch's bytes: those that this worker sends to an owner, requests and gradients of
// embeddings, and those that the owner sends back.
const (
	requests = iota
	pushed
	edgeBytes
	rowBytes
	embeddingBytes
	kinds
)

func kindsOf(t store.Traffic) [kinds]float64 {
	return [kinds]float64{float64(t.Requests), float64(t.Pushed), float64(t.Edges), float64(t.Rows),
		float64(t.Embeddings)}
}

// expect draws a few batches and learns from other workers what this one will send for theirs:
// requests of its own, and edges and rows that they ask for.
func (d *distributed) expect(setup *exchange.Setup,
	traffic func(m remoteSampler, b *sample.Batch, known *store.Known) []store.Traffic) error {
	return d.expectFrom(setup, func(epoch, most int, add func([]uint32, []store.Traffic)) error {
		return d.probe(epoch, most, func(m remoteSampler, b *sample.Batch, known *store.Known) {
			add(b.Vertices, traffic(m, b, known))
		})
	})
}

// expectFrom is the same with batches that draw draws, of which it gives to add the vertices and what
// they cost, by owner.
func (d *distributed) expectFrom(setup *exchange.Setup,
	draw func(epoch, most int, add func(vertices []uint32, batch []store.Traffic)) error) error {
	perBatch := make([][][kinds]float64, setup.W.End.Size()) // by owner
	var first []uint32                                       // vertices of one batch
	// Of another epoch than the cache was chosen by, which knows the first too well.
	err := draw(1, plannedBatches, func(vertices []uint32, batch []store.Traffic) {
		if len(perBatch[0]) == 0 {
			first = slices.Clone(vertices)
		}
		for q, t := range batch {
			perBatch[q] = append(perBatch[q], kindsOf(t))
		}
	})
	if err != nil {
		return err
	}
	if err := d.measureRedundancy(setup, first); err != nil {
		return err
	}
	out, before := make([][]byte, len(perBatch)), d.store.Traffic()
	for q, batches := range perBatch {
		told := []float64{float64(before[q].Edges), float64(before[q].Rows)}
		for kind := edgeBytes; kind < kinds; kind++ {
			e := d.perEpoch(batches, kind)
			told = append(told, e.mean, e.variance)
		}
		out[q], _ = binary.Append(nil, binary.LittleEndian, told)
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
		add := func(kind wire.Kind, e estimate) { d.drawn.add(setup.W.Class(kind, -1, q), e) }
		setup.Sent.Add(setup.W.Class(wire.Topology, -1, q), before[q].Requests+int64(v[0]))
		setup.Sent.Add(setup.W.Class(wire.Feature, -1, q), int64(v[1]))
		add(wire.Topology, d.perEpoch(perBatch[q], requests))
		add(wire.Topology, estimate{v[2], v[3]})
		add(wire.Feature, estimate{v[4], v[5]})
		if d.embeddings != nil {
			add(wire.Embedding, d.perEpoch(perBatch[q], pushed))
			add(wire.Embedding, estimate{v[6], v[7]})
		}
	}
	return nil
}

// measureRedundancy has the owners of vertices count how often the workers need each for one batch.
func (d *distributed) measureRedundancy(setup *exchange.Setup, vertices []uint32) error {
	out := make([][]byte, setup.W.End.Size())
	for _, v := range vertices {
		q := d.site.Part.Book.Owner(v)
		out[q] = binary.LittleEndian.AppendUint32(out[q], v)
	}
	in, err := setup.Swap(wire.Topology, out)
	if err != nil {
		return err
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
	if sum[1] > 0 {
		d.redundancy = sum[0] / sum[1]
	}
	return err
}

// allTraffic is that of drawing a batch, of pulling its rows and labels, and of its embeddings.
func (d *distributed) allTraffic(m remoteSampler, b *sample.Batch, _ *store.Known) []store.Traffic {
	t := m.Traffic(b)
	if d.pairs == nil {
		d.store.AddLabels(t, b.Vertices[:outputs(b)])
	}
	if d.embeddings != nil {
		d.embeddings.AddStep(t, b.Vertices, d.embeddings.async)
	}
	return t
}

// expected is bytes per epoch by class, and of all together how uncertain they are.
type expected struct {
	bytes wire.Bytes
	total estimate
}

func (x *expected) add(c wire.Class, e estimate) {
	if x.bytes == nil {
		x.bytes = wire.Bytes{}
	}
	x.bytes.Add(c, int64(math.Round(e.mean)))
	x.total.mean, x.total.variance = x.total.mean+e.mean, x.total.variance+e.variance
}

// deviation is relative.
func (x *expected) deviation() float64 {
	if x.total.mean == 0 {
		return 0
	}
	return math.Sqrt(x.total.variance) / x.total.mean
}

// perEpoch is what an epoch is expected to take, from some of its batches: the mean of n
// batches times all B, which is off by B·s/√n and an epoch by itself by √B·s.
func (d *distributed) perEpoch(batches [][kinds]float64, kind int) (e estimate) {
	n, all := float64(len(batches)), float64(d.all)
	if n == 0 {
		return e
	}
	for _, b := range batches {
		e.mean += b[kind] / n
	}
	for _, b := range batches {
		e.variance += (b[kind] - e.mean) * (b[kind] - e.mean) / max(n-1, 1)
	}
	e.mean, e.variance = e.mean*all, e.variance*(all*all/n+all)
	return e
}

// RowCounts are of the rows that this worker's batches needed.
func (d *distributed) RowCounts() train.RowCounts {
	needed, remote, cached := d.store.Rows()
	return train.RowCounts{Needed: needed, Remote: remote, Cached: cached, Requests: d.store.Requests(),
		Redundancy: d.redundancy}
}

// reportRows says where rows came from.
func (d *distributed) reportRows() {
	r := d.RowCounts()
	if r.Needed == 0 || d.site.End.Rank() > 0 {
		return
	}
	text := fmt.Sprintf("other hosts own %.1f%% of the %d rows of features that worker 0's batches needed",
		100*float64(r.Remote)/float64(r.Needed), r.Needed)
	if r.Cached > 0 {
		text += fmt.Sprintf("; the cache had %.1f%% of these", 100*float64(r.Cached)/float64(r.Remote))
	}
	if d.redundancy > 0 {
		text += fmt.Sprintf("; the workers' shares of a batch need each row %.2f times", d.redundancy)
	}
	d.site.Events.On(event.Note{Minor: true, Text: text})
	if asked := d.shared.asked.Load(); asked > 0 {
		d.site.Events.On(event.Note{Minor: true, Text: fmt.Sprintf("worker 0 asked for %d in-edges to know the "+
			"probabilities of ladies; its own destinations have %.1f%% of them", asked,
			100*float64(d.shared.needed.Load())/float64(asked))})
	}
}

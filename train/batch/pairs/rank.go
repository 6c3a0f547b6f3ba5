package pairs

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"starling/coflow"
	"starling/collective"
	"starling/event"
	"starling/exchange"
	"starling/nn"
	"starling/sample"
	"starling/store"
	"starling/tensor"
	"starling/train"
	"starling/train/batch"
	"starling/wire"
)

// Evaluation of link prediction on several workers: pairs that are held out and their negatives
// are sample.Ranked's, each scored by the worker that its pair belongs to. Workers compute the
// rows of their vertices layer by layer, give each other the rows that pairs need, and share
// scores, of which all compute the same area under the curve.

// rankedPairs are this worker's of a set, by number in the partition.
type rankedPairs struct {
	u, v           []uint32
	againstU, notV []uint32
	kept, other    []uint32
	ends           []uint32
	k              int // 0: all pairs are ranked among those that they share, of which these are this worker's
	sharedU        []uint32
	sharedV        []uint32
	first, total   int // of the pairs of all workers, in the order of workers
	// sharedFirst and sharedTotal are the same of shared ones.
	sharedFirst, sharedTotal int
	rows, rankRows           *rowExchange
}

// pairEvaluation is what is measured.
type pairEvaluation struct {
	val, test *rankedPairs
}

// evaluated draws what all pairs of a set are compared with. index is a pair's position in the
// list of one worker.
func (b *pairBatches) evaluated(setup *exchange.Setup, u, v, index []uint32, set string) (*rankedPairs, error) {
	t, ctx := &b.parts.vertices, setup.W.Ctx
	r := &rankedPairs{u: u, v: v, k: b.opt.RankNegatives}
	key := sample.RankedKey(b.seed, set)
	var list []store.Negative
	for i := range u {
		own := key.Fold(uint64(index[i]))
		r.againstU = append(r.againstU, t.numbers[own.IntN(0, len(t.ids))])
		kept, other := sample.KeptEnd(own, 1, u[i], v[i])
		r.kept, r.other = append(r.kept, kept), append(r.other, other)
		list = append(list, store.Negative{Kept: r.againstU[i], Key: own, Count: 1},
			store.Negative{Kept: kept, Key: own, First: 1, Count: r.k})
	}
	r.notV, r.ends = make([]uint32, len(u)), make([]uint32, r.k*len(u))
	err := b.store.Negatives(ctx, coflow.Preparing, rankNegatives, list, func(i int, numbers []uint32) {
		if i%2 == 0 {
			r.notV[i/2] = numbers[0]
		} else {
			copy(r.ends[i/2*r.k:], numbers)
		}
	})
	if err != nil {
		return nil, err
	}
	return r, r.join(setup)
}

// listed are this worker's of pairs that are given: those that begin at its vertices.
func (b *pairBatches) listed(setup *exchange.Setup, l *sample.Listed, set string) (*rankedPairs, error) {
	t, r := &b.parts.vertices, &rankedPairs{k: l.K}
	key := sample.RankedKey(b.seed, set)
	var list []store.Negative
	for i, id := range l.U {
		if !b.has(id) {
			continue
		}
		own := key.Fold(uint64(i))
		r.u, r.v = append(r.u, t.numbers[id]), append(r.v, t.numbers[l.V[i]])
		r.againstU = append(r.againstU, t.numbers[own.IntN(0, len(t.ids))])
		for _, w := range l.Ends[i*l.K : (i+1)*l.K] {
			r.ends = append(r.ends, t.numbers[w])
		}
		list = append(list, store.Negative{Kept: r.againstU[len(list)], Key: own, Count: 1})
	}
	for i, id := range l.Shared.U {
		if b.has(id) {
			r.sharedU, r.sharedV = append(r.sharedU, t.numbers[id]), append(r.sharedV, t.numbers[l.Shared.V[i]])
		}
	}
	r.kept, r.other, r.notV = slices.Clone(r.u), slices.Clone(r.v), make([]uint32, len(r.u))
	err := b.store.Negatives(setup.W.Ctx, coflow.Preparing, rankNegatives, list, func(i int, numbers []uint32) {
		r.notV[i] = numbers[0]
	})
	if err == nil {
		err = r.join(setup)
	}
	if err == nil && (r.total != l.Len() || r.sharedTotal != l.Shared.Len()) {
		err = fmt.Errorf("workers have %d pairs of %d that are listed, and %d shared candidates of %d: did all of "+
			"them read the same file?", r.total, l.Len(), r.sharedTotal, l.Shared.Len())
	}
	return r, err
}

// has reports whether a vertex is this worker's.
func (b *pairBatches) has(id uint32) bool {
	return b.parts.part.Book.Owner(b.parts.vertices.numbers[id]) == b.parts.rank
}

// join learns how many pairs there are, and which rows are needed.
func (r *rankedPairs) join(setup *exchange.Setup) error {
	var err error
	if r.first, r.total, err = countOf(setup, r.u); err != nil {
		return err
	}
	if r.k == 0 {
		if r.sharedFirst, r.sharedTotal, err = countOf(setup, r.sharedU); err != nil {
			return err
		}
	}
	if r.rows, err = newRowExchange(setup, r.u, r.v, r.againstU, r.notV); err != nil {
		return err
	}
	r.rankRows, err = newRowExchange(setup, r.kept, r.other, r.ends, r.sharedU, r.sharedV)
	return err
}

// countOf is how many entries the lists of all workers have, and those of the workers before this one.
func countOf(setup *exchange.Setup, mine []uint32) (first, total int, err error) {
	counts, err := setup.Share(float64(len(mine)))
	for q, c := range counts {
		if q < setup.W.End.Rank() {
			first += int(c[0])
		}
		total += int(c[0])
	}
	return first, total, err
}

// rowExchange brings rows of vertices wherever they are.
type rowExchange struct {
	need []uint32   // ascending, by number in the partition
	give [][]uint32 // own rows that each worker needs, by local number
	from []int      // where those of each worker begin in need
}

// newRowExchange tells owners which rows are needed, and turns lists of vertices into rows of
// what bring returns.
func newRowExchange(setup *exchange.Setup, lists ...[]uint32) (*rowExchange, error) {
	x, book := &rowExchange{}, setup.W.Part.Book
	for _, l := range lists {
		x.need = append(x.need, l...)
	}
	slices.Sort(x.need)
	x.need = slices.Clone(slices.Compact(x.need))
	out := make([][]byte, book.Parts)
	for q := range book.Parts {
		at, _ := slices.BinarySearch(x.need, uint32(book.Offsets[q]))
		x.from = append(x.from, at)
	}
	x.from = append(x.from, len(x.need))
	for q := range out {
		for _, v := range x.need[x.from[q]:x.from[q+1]] {
			out[q] = binary.LittleEndian.AppendUint32(out[q], v)
		}
	}
	in, err := setup.Swap(wire.Topology, out)
	if err != nil {
		return nil, err
	}
	first, core := uint32(book.Offsets[setup.W.End.Rank()]), uint32(setup.W.Part.Core())
	for q, b := range in {
		rows := exchange.Numbers(b)
		for i, v := range rows {
			if rows[i] = v - first; rows[i] >= core {
				return nil, fmt.Errorf("worker %d needs the row of vertex %d of worker %d", q, v, setup.W.End.Rank())
			}
		}
		x.give = append(x.give, rows)
	}
	for _, l := range lists {
		for i, v := range l {
			at, _ := slices.BinarySearch(x.need, v)
			l[i] = uint32(at)
		}
	}
	return x, nil
}

// plan is what bring sends.
func (x *rowExchange) plan(into wire.Bytes, s *train.Site, cols int) {
	for q, rows := range x.give {
		if q != s.End.Rank() {
			into.Add(wire.Class{Kind: wire.Activation, Layer: -1, Link: s.End.Link(q)},
				int64(len(rows)*cols*s.Dev.Type().Size()))
		}
	}
}

// bring returns the rows that are needed, of which z are the worker's own.
func (x *rowExchange) bring(ctx context.Context, end wire.Endpoint, dev tensor.Device, z tensor.Matrix,
	epoch int) (tensor.Matrix, error) {
	out, in, each := make([][]byte, len(x.give)), make([][]byte, len(x.give)), z.Cols*dev.Type().Size()
	for q, rows := range x.give {
		out[q], in[q] = packRows(dev, z, rows), make([]byte, (x.from[q+1]-x.from[q])*each)
	}
	id := coflow.ID{Epoch: uint32(epoch), Batch: 1 << 30, Layer: -1, Type: coflow.Bulk}
	if err := collective.New(end).AllToAll(ctx, id, wire.Activation, out, in); err != nil {
		return tensor.Matrix{}, err
	}
	all := dev.New(dev.Type(), len(x.need), z.Cols)
	for q, b := range in {
		if len(b) > 0 {
			dev.Upload(all.Slice(x.from[q], x.from[q+1]), unpackNumbers(b, dev.Type().Size()))
		}
	}
	return all, nil
}

// packRows is some rows as bytes.
func packRows(dev tensor.Device, z tensor.Matrix, rows []uint32) (b []byte) {
	if len(rows) == 0 {
		return nil
	}
	some := dev.Scratch(z.Type(), len(rows), z.Cols)
	dev.GatherRows(some, z, tensor.Indices(dev, rows))
	numbers := make([]float64, len(rows)*z.Cols)
	dev.Download(numbers, some)
	dev.Free(some)
	for _, n := range numbers {
		b = batch.AppendNumber(b, n, dev.Type().Size())
	}
	return b
}

func unpackNumbers(b []byte, size int) []float64 {
	out := make([]float64, len(b)/size)
	for i := range out {
		if size == 8 {
			out[i] = math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:]))
		} else {
			out[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:])))
		}
	}
	return out
}

// prepareRanked draws what is measured: pairs that are held out, or of walks that no epoch draws.
func (b *pairBatches) prepareRanked(setup *exchange.Setup) (e *pairEvaluation, err error) {
	e = &pairEvaluation{}
	if b.opt.Walks > 0 {
		e.val, err = b.evaluatedWalks(setup)
		return e, err
	}
	for _, set := range []struct {
		name  string
		share float64
		to    **rankedPairs
		pairs *ownPairs
		list  *sample.Listed
	}{{"val", b.opt.ValEdges, &e.val, &b.parts.pairs[sample.ValEdges], b.opt.Lists.Of(sample.ValEdges)},
		{"test", b.opt.TestEdges, &e.test, &b.parts.pairs[sample.TestEdges], b.opt.Lists.Of(sample.TestEdges)}} {
		if set.list != nil {
			if *set.to, err = b.listed(setup, set.list, set.name); err != nil {
				return nil, err
			}
		}
		if b.opt.Lists != nil || set.share == 0 {
			continue
		}
		if *set.to, err = b.evaluated(setup, set.pairs.u, set.pairs.v, set.pairs.index, set.name); err != nil {
			return nil, err
		}
		if (*set.to).total == 0 {
			return nil, train.Mistake("a share of %g of the edges holds out none for %s; give larger --val-edges and "+
				"--test-edges, or another seed", set.share, set.name)
		}
	}
	return e, nil
}

// MostEvaluated bounds the walks that unsupervised training is evaluated on.
const MostEvaluated = 10000

// evaluatedWalks are walks from vertices of evenly spaced ids, of an epoch that no run has.
func (b *pairBatches) evaluatedWalks(setup *exchange.Setup) (*rankedPairs, error) {
	t, first := &b.parts.vertices, uint32(b.parts.part.Book.Offsets[b.parts.rank])
	var start []uint32
	for id := 0; id < len(t.ids); id += 1 + len(t.ids)/MostEvaluated {
		if n := t.numbers[id]; n-first < uint32(b.parts.part.Core()) {
			start = append(start, n)
		}
	}
	met, err := b.walk(setup.W.Ctx, coflow.Preparing, -1, start, make([]int, len(start)))
	if err != nil {
		return nil, err
	}
	var u, v []uint32
	var ok []byte
	for i := range start {
		if met[i] != start[i] {
			u, v = append(u, start[i]), append(v, met[i])
			ok = binary.LittleEndian.AppendUint32(ok, t.ids[start[i]])
		}
	}
	lists, err := setup.TellServer(0, setup.W.End.Size(), ok)
	if err != nil {
		return nil, err
	}
	all := exchange.Numbers(slices.Concat(lists...))
	if slices.Sort(all); len(all) == 0 {
		return nil, train.Mistake("no walk reaches another vertex: the graph has hardly any edges")
	}
	index := make([]uint32, len(u))
	for i, n := range u {
		at, _ := slices.BinarySearch(all, t.ids[n])
		index[i] = uint32(at)
	}
	return b.evaluated(setup, u, v, index, "val")
}

// Plan adds what evaluation sends beyond the rows of layers.
func (t *task) Plan(p *wire.Plan, m *nn.Model) {
	e, site, cols := t.evaluation, t.p.Site, m.Config.Out
	for _, r := range []*rankedPairs{e.val, e.test} {
		if r != nil {
			r.planMetric(p.Measure, site, cols)
		}
	}
	if on := e.ranked(); on != nil && !site.MemoryOnly { // at the best weights
		p.OnceMeasured.AddAll(t.p.Measure.Plan(m).Measure, 1)
		on.rows.plan(p.OnceMeasured, site, cols)
		batch.PlanSums(p.OnceMeasured, site.End, 2*on.total)
		on.rankRows.plan(p.OnceMeasured, site, cols)
		batch.PlanSums(p.OnceMeasured, site.End, on.total+on.sharedTotal)
	}
}

// planMetric is what the metric that the run is judged by sends.
func (r *rankedPairs) planMetric(into wire.Bytes, site *train.Site, cols int) {
	if train.OfRanks(site.Opt.Metric) {
		r.rankRows.plan(into, site, cols)
		batch.PlanSums(into, site.End, r.total+r.sharedTotal)
		return
	}
	r.rows.plan(into, site, cols)
	batch.PlanSums(into, site.End, 2*r.total)
}

// ranked is the set that is ranked at the end.
func (e *pairEvaluation) ranked() *rankedPairs {
	if e.test != nil {
		return e.test
	}
	return e.val
}

// measure takes the metric of both sets.
func (t *task) measure(e *event.Epoch) error {
	l := t.links
	end := l.Span("step")("evaluate")
	defer end()
	z := l.AllRows(e.Epoch)
	defer l.Dev.Free(z)
	if err := t.p.Measure.Err(); err != nil {
		return err
	}
	e.Measured, e.Train = true, math.NaN()
	for _, set := range []struct {
		of *rankedPairs
		to *float64
	}{{t.evaluation.val, &e.Val}, {t.evaluation.test, &e.Test}} {
		value, err := t.value(z, set.of, e.Epoch)
		if err != nil {
			return err
		}
		*set.to = value
	}
	l.Remember(e)
	return nil
}

// value is what the run is judged by, of a set.
func (t *task) value(z tensor.Matrix, r *rankedPairs, epoch int) (float64, error) {
	metric := t.links.MetricName()
	switch {
	case r == nil:
		return math.NaN(), nil
	case train.OfRanks(metric):
		m, err := t.ranksMetrics(z, r, epoch)
		return m[metric], err
	}
	return t.scoresMetric(z, r, epoch, metric)
}

// scoresMetric is a metric of the scores of a set's pairs and of as many others.
func (t *task) scoresMetric(z tensor.Matrix, r *rankedPairs, epoch int, metric string) (float64, error) {
	l := t.links
	rows, err := r.rows.bring(t.p.Site.Ctx, t.p.Site.End, l.Dev, z, epoch)
	if err != nil {
		return 0, err
	}
	defer l.Dev.Free(rows)
	all := make([]float64, 2*r.total)
	copy(all[r.first:], l.Scores(rows, r.u, r.v))
	copy(all[r.total+r.first:], l.Scores(rows, r.againstU, r.notV))
	if err := l.Peers.AllReduce(epoch, 0, all); err != nil {
		return 0, err
	}
	return train.PairsMetric(metric, all[:r.total], all[r.total:]), nil
}

// ranksMetrics are the metrics of ranks of a set.
func (t *task) ranksMetrics(z tensor.Matrix, on *rankedPairs, epoch int) (map[string]float64, error) {
	l := t.links
	rows, err := on.rankRows.bring(t.p.Site.Ctx, t.p.Site.End, l.Dev, z, epoch)
	if err != nil {
		return nil, err
	}
	defer l.Dev.Free(rows)
	if on.k == 0 {
		scores := make([]float64, on.total+on.sharedTotal)
		copy(scores[on.first:], l.Scores(rows, on.kept, on.other))
		copy(scores[on.total+on.sharedFirst:], l.Scores(rows, on.sharedU, on.sharedV))
		if err := l.Peers.AllReduce(epoch, 0, scores); err != nil {
			return nil, err
		}
		_, m := train.SharedRanks(scores[:on.total], scores[on.total:])
		return m, nil
	}
	ranks := make([]float64, on.total)
	copy(ranks[on.first:], train.Ranks(l.Scores(rows, on.kept, on.other), l.ScoresOfEnds(rows, on.kept, on.ends, on.k),
		on.k))
	if err := l.Peers.AllReduce(epoch, 0, ranks); err != nil {
		return nil, err
	}
	return train.RankMeasures(ranks, on.k), nil
}

// Rank adds all that is measured of the test pairs, or of the validation pairs where there are
// no others, at the best weights.
func (t *task) Rank(f *train.Loop, r *train.Result, _ func() error) error {
	l, on := t.links, t.evaluation.ranked()
	if r.Best == nil || on == nil {
		return nil
	}
	if err := f.Model.Load(f.Dev, r.Best); err != nil {
		return err
	}
	z := l.AllRows(max(r.BestEpoch, 0))
	defer f.Dev.Free(z)
	if err := t.p.Measure.Err(); err != nil {
		return err
	}
	area, err := t.scoresMetric(z, on, f.State.Epoch, "auc")
	if err != nil {
		return err
	}
	if r.Measures, err = t.ranksMetrics(z, on, f.State.Epoch); err != nil {
		return err
	}
	r.Measures["auc"] = area
	return nil
}

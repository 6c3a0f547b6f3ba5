package train

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/sample"
	"starling/tensor"
)

// Link prediction on relations of a typed graph, over the whole graph (PairOptions.Relations):
//
//	positives   the edges u → v of a relation that are not held out, each once
//	negatives   u → w, with w of the type of v, drawn anew in every epoch
//	messages    pass over all edges but those that are held out, and their edges of the reverse relation
//
// A pair belongs to the worker that owns its source, which knows all edges of the source. Its destination may be
// anywhere, and with as many negatives as pairs about every vertex of that type is one: so all workers bring each other
// the final rows of the destinations' types, and return their gradients (relation_rows.go).

// LinkRelations trains on relations in this process. opt.Pairs says on which, and what is held out.
func LinkRelations(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt Options,
	events event.Listener) (*Result, error) {
	r, err := NewRelationLinks(dev, data, opt, events)
	if err != nil {
		return nil, err
	}
	return r.Run(ctx, data)
}

// DryRunRelations is the memory dry run of LinkRelations.
func DryRunRelations(ctx context.Context, dev tensor.Device, data *graph.Dataset, opt Options,
	events event.Listener) (*Needs, error) {
	r, err := NewRelationLinks(dev, data, DryOptions(opt), events)
	if err != nil {
		return nil, err
	}
	return r.DryRun(ctx, data)
}

// NewRelationLinks finds the pairs of relations, and puts the rest of the graph and the features on the device.
func NewRelationLinks(dev tensor.Device, data *graph.Dataset, opt Options, events event.Listener) (*RelationLinks,
	error) {
	if err := checkRelations(&opt, data.Meta.Schema); err != nil {
		return nil, err
	}
	if events == nil {
		events = event.All()
	}
	if err := data.Graph.CheckLocal(); err != nil {
		return nil, err
	}
	r, err := newRelations(data.Meta.Schema, &opt)
	if err != nil {
		return nil, err
	}
	if err := r.findInGraph(data.Graph); err != nil {
		return nil, err
	}
	f, err := NewLoop(dev, r.wholeGraph(dev, data, opt), Alone{}, opt, events)
	if err != nil {
		return nil, err
	}
	r.on(f)
	return r, nil
}

// Run trains, and ranks at the best weights.
func (r *RelationLinks) Run(ctx context.Context, data *graph.Dataset) (*Result, error) {
	result, unsaved := r.train(ctx, data)
	if result == nil {
		return nil, unsaved
	}
	err := errors.Join(r.rank(result), unsaved)
	if r.Learnt != nil && result.Best != nil {
		result.Best = append(slices.Clip(result.Best), r.Learnt.Rows(r.Dev)...)
	}
	return result, err
}

// DryRun trains on a device that takes memory alone.
func (r *RelationLinks) DryRun(ctx context.Context, data *graph.Dataset) (*Needs, error) {
	result, err := r.train(ctx, data)
	if err != nil {
		return nil, err
	}
	return &Needs{Parameters: result.Parameters, Ranking: r.rankingBytes()}, nil
}

func (r *RelationLinks) train(ctx context.Context, data *graph.Dataset) (*Result, error) {
	f := r.Loop
	f.Events.On(event.Started{Dataset: data.Meta.Name, Model: f.Opt.Model.Model, Strategy: "none", Workers: 1,
		Vertices: f.Vertices, Edges: data.Graph.Edges(), Parameters: f.Model.Size(), Learnt: f.LearntNumbers(),
		FirstEpoch: f.State.Epoch, Epochs: f.Opt.Epochs, Metric: f.metric.Name})
	return f.Run(ctx)
}

// rankingBytes is what ranking takes of the host: destinations that pairs are ranked among, and their scores.
func (r *RelationLinks) rankingBytes() (bytes int64) {
	for _, p := range r.pairs {
		if set := r.ranked(); set != 0 {
			k := r.opt.RankNegatives
			if l := p.lists[set]; l != nil {
				k = l.k
				bytes += 16 * int64(len(l.shared.row))
			}
			bytes += 16 * int64(len(p.sets[set].row)) * int64(k)
		}
	}
	return bytes
}

// checkRelations refuses what pairs of relations cannot be.
func checkRelations(o *Options, s *graph.Schema) error {
	p := o.Pairs
	switch {
	case s == nil || o.Model.Typed == nil:
		return fmt.Errorf("relations are of a typed graph, and this one has no types")
	case p == nil || len(p.Relations) == 0:
		return fmt.Errorf("no relation to learn from")
	case o.Model.Decoder == "":
		return fmt.Errorf("a model without a decoder cannot score pairs")
	case p.Walks > 0 || p.Local:
		return fmt.Errorf("pairs of a relation are its edges, and negatives are drawn of all vertices of a type")
	case p.PerPair < 1:
		return fmt.Errorf("%d negatives per pair: there must be one or more", p.PerPair)
	case o.Inductive:
		return fmt.Errorf("inductive training is of vertices; pairs are held out instead")
	}
	return nil
}

// wholeGraph is the share of the only worker.
func (r *RelationLinks) wholeGraph(dev tensor.Device, data *graph.Dataset, opt Options) Share {
	same := func(v uint32) uint32 { return v }
	r.Graph = r.sets.Kept(data.Graph, same, same)
	topology, runs := nn.NewTopology(dev, r.Graph), r.schema.AllRuns()
	topology.SetTypes(r.schema, runs, runs)
	on := local{nn.NewLocal(topology, opt.CacheFirst)}
	return Share{X: nn.Input{Typed: typedInput(dev, runs, data.TypeFeatures, nil, r.schema, opt)}, Task: pairTask{},
		Types: runs, Schema: r.schema, Vertices: int64(data.Graph.Nodes()), TrainOn: on, MeasureOn: on}
}

// RelationLinks is a loop's training on pairs of relations.
type RelationLinks struct {
	*Links
	// Graph is what messages pass over, on one worker.
	Graph  *graph.CSR
	schema *graph.Schema
	opt    *PairOptions
	sets   *sample.RelationSets
	pairs  []*relationPairs
	rows   *destinations // nil: there is one worker, which has all rows
	// batches: workers learn from the pairs in batches.
	batches bool

	left, right []uint32 // of a step
}

func newRelations(s *graph.Schema, opt *Options) (*RelationLinks, error) {
	p := opt.Pairs
	sets, err := p.relationSets(s, opt.Seed)
	if err != nil {
		return nil, err
	}
	r := &RelationLinks{schema: s, opt: p, sets: sets, batches: opt.Batches != nil}
	for _, relation := range p.Relations {
		r.pairs = append(r.pairs, &relationPairs{relation: relation, name: s.RelationName(relation), seed: opt.Seed})
	}
	return r, nil
}

// relationSets are the edges that are held out of a typed graph.
func (o *PairOptions) relationSets(s *graph.Schema, seed uint64) (*sample.RelationSets, error) {
	switch {
	case o.Lists == nil:
		return sample.NewRelationSets(s, o.Relations, o.ValEdges, o.TestEdges, seed)
	case len(o.Relations) > 1:
		return nil, Mistake("pairs with candidates are of one relation, and %d are to be predicted", len(o.Relations))
	}
	return sample.ListedRelationSets(s, o.Relations[0], o.Lists)
}

// on makes a loop train on pairs.
func (r *RelationLinks) on(f *Loop) {
	r.Links = LinksOn(f, r.linkOptions())
	f.TrainEpoch, f.Measure = r.epoch, r.measure
}

// linkOptions are how a step learns from pairs that are drawn.
func (r *RelationLinks) linkOptions() LinkOptions {
	return LinkOptions{PerPair: r.opt.PerPair, NegativeOptions: r.opt.NegativeOptions}
}

// epoch is one step over the whole graph and all pairs.
func (r *RelationLinks) epoch(epoch int, lr float64) (float64, error) {
	f := r.Loop
	p := f.Pass(f.TrainOn, true, epoch)
	f.Model.ZeroGrad(f.Dev)
	f.Learnt.zeroGrad(f.Dev)
	end := f.Span("step")("forward")
	z := f.forward(p)
	end()
	dz, loss, err := r.gradient(p, z, epoch)
	if err != nil {
		return 0, err
	}
	grads, err := f.Peers.Gradients(epoch, 0, f.Model.Params)
	if err != nil {
		return 0, err
	}
	grads.Ready(f.Model.DecoderParams())
	p.Span, p.Ready = f.Span("backward"), grads.Ready
	end = f.Span("step")("backward")
	f.backward(p, dz)
	end()
	if err := f.TrainOn.Err(); err != nil {
		return 0, err
	}
	end = f.Span("step")("update")
	defer end()
	sum := []float64{loss}
	if err := f.Waiting("gradients", func() error {
		return errors.Join(grads.Wait(), f.Peers.AllReduce(epoch, 0, sum))
	}); err != nil {
		return 0, err
	}
	f.Optim.Step(lr)
	f.Learnt.step(lr)
	return sum[0], nil
}

// gradient returns the gradient of the rows z, which it frees, and this worker's loss.
func (r *RelationLinks) gradient(p *nn.Pass, z tensor.Matrix, epoch int) (dz tensor.Matrix, loss float64, err error) {
	own, made := r.own(z)
	all, err := r.rows.bring(r.Loop, own, epoch, training)
	if err != nil {
		return dz, 0, err
	}
	dall := r.Dev.New(all.Type(), all.Rows, all.Cols)
	positives := 0
	for _, pairs := range r.pairs {
		positives += pairs.total[sample.TrainEdges]
	}
	for i, pairs := range r.pairs {
		n := r.draw(pairs, epoch)
		r.Model.Decoder.Relation(i)
		left, right := r.hardest(all, r.left, r.right, n)
		losses := r.losses(len(left), all.Cols)
		r.learn(p, all, dall, losses, left, right, n, r.Scale(positives))
		loss += nn.TakeLoss(r.Dev, losses)
	}
	if r.rows != nil {
		r.Dev.Free(all)
	}
	if dz, err = r.rows.reverse(r.Loop, dall, own.Rows, epoch); err != nil {
		return dz, 0, err
	}
	if made {
		r.Dev.Free(own)
		dz = r.stored(dz, z)
	}
	r.Dev.Free(z)
	return dz, loss, nil
}

// Sources are the pairs to learn from, of one worker.
func (r *RelationLinks) Sources() (list []sample.RelationSource) {
	for _, p := range r.pairs {
		pairs := &p.sets[sample.TrainEdges]
		list = append(list, sample.RelationSource{Relation: p.relation, Pairs: sample.Pairs{U: pairs.u, V: pairs.v},
			Negative: func(epoch, i, k int) uint32 {
				return p.negatives.Of(epoch, pairs.u[i], pairs.v[i], k, pairs.row[i])
			}, Negatives: p.negatives, Rows: pairs.row})
	}
	return list
}

// Backward is Links.Backward for a batch of pairs of relations.
func (r *RelationLinks) Backward(p *nn.Pass, z tensor.Matrix, b *sample.Batch,
	scale float64) (dz, losses tensor.Matrix) {
	end := r.Span("step")("pairs")
	defer end()
	own, made := r.own(z)
	dz, losses = r.Dev.New(own.Type(), own.Rows, own.Cols), r.Dev.New(tensor.F64, r.lossRows(b, z.Cols), 2)
	from, at := 0, 0
	for i, list := range b.Relations {
		rows := pieces(list.End-from, z.Cols)
		r.Model.Decoder.Relation(i)
		left, right := r.hardest(own, b.Left[from:list.End], b.Right[from:list.End], list.Positives)
		r.learn(p, own, dz, losses.Slice(at, at+rows), left, right, list.Positives, scale)
		from, at = list.End, at+rows
	}
	if made {
		r.Dev.Free(own)
		dz = r.stored(dz, z)
	}
	return dz, losses
}

// lossRows is how many rows the losses of a batch have.
func (r *RelationLinks) lossRows(b *sample.Batch, cols int) (rows int) {
	from := 0
	for _, list := range b.Relations {
		rows, from = rows+pieces(list.End-from, cols), list.End
	}
	return max(rows, 1)
}

// draw lists the positives of a relation and their negatives, by rows. It returns how many positives there are.
func (r *RelationLinks) draw(p *relationPairs, epoch int) int {
	list := &p.sets[sample.TrainEdges]
	r.left = append(r.left[:0], list.row...)
	r.right = r.right[:0]
	for _, v := range list.v {
		r.right = append(r.right, r.rows.place(v))
	}
	for i, row := range list.row {
		for k := range r.opt.Candidates() {
			r.left = append(r.left, row)
			r.right = append(r.right, r.rows.place(p.negatives.Of(epoch, list.u[i], list.v[i], k, row)))
		}
	}
	return len(list.row)
}

// measure takes the metric of both sets.
func (r *RelationLinks) measure(e *event.Epoch) error {
	end := r.Span("step")("evaluate")
	defer end()
	z, err := r.allRows(e.Epoch, measuring)
	if err != nil {
		return err
	}
	defer r.Dev.Free(z)
	e.Measured, e.Train, e.Val, e.Test = true, math.NaN(), math.NaN(), math.NaN()
	if r.opt.Has(sample.ValEdges) {
		e.Val, err = r.mean(z, sample.ValEdges, e.Epoch)
	}
	if r.opt.Has(sample.TestEdges) && err == nil {
		e.Test, err = r.mean(z, sample.TestEdges, e.Epoch)
	}
	if err == nil {
		r.Remember(e)
	}
	return err
}

// mean is the mean over relations of what the run is judged by.
func (r *RelationLinks) mean(z tensor.Matrix, set, epoch int) (mean float64, err error) {
	for i := range r.pairs {
		value, err := r.value(z, i, set, epoch)
		if err != nil {
			return 0, err
		}
		mean += value / float64(len(r.pairs))
	}
	return mean, nil
}

// allRows are all rows that pairs have, at the present weights; the caller frees them.
func (r *RelationLinks) allRows(epoch int, in phase) (tensor.Matrix, error) {
	z := r.AllRows(epoch)
	if err := r.MeasureOn.Err(); err != nil {
		return z, err
	}
	all, err := r.rows.bring(r.Loop, z, epoch, in)
	if err == nil && r.rows != nil {
		r.Dev.Free(z)
	}
	return all, err
}

// value is what the run is judged by, of a relation's pairs of a set.
func (r *RelationLinks) value(z tensor.Matrix, i, set, epoch int) (float64, error) {
	if !OfRanks(r.metric.Name) {
		return r.scoresMetric(z, i, set, epoch, r.metric.Name)
	}
	m, err := r.ranksMetrics(z, i, set, epoch)
	return m[r.metric.Name], err
}

// scoresMetric is a metric of the scores of a relation's pairs of a set and of as many others.
func (r *RelationLinks) scoresMetric(z tensor.Matrix, i, set, epoch int, metric string) (float64, error) {
	p := r.pairs[i]
	r.Model.Decoder.Relation(i)
	list, total := &p.sets[set], p.total[set]
	all := make([]float64, 2*total)
	copy(all[p.first[set]:], r.Scores(z, list.row, r.places(list.v)))
	copy(all[total+p.first[set]:], r.Scores(z, list.row, r.places(p.against(set))))
	if err := r.Peers.AllReduce(epoch, 0, all); err != nil {
		return 0, err
	}
	return PairsMetric(metric, all[:total], all[total:]), nil
}

// places are the rows of destinations.
func (r *RelationLinks) places(ids []uint32) []uint32 {
	out := make([]uint32, len(ids))
	for i, v := range ids {
		out[i] = r.rows.place(v)
	}
	return out
}

// ranked is the set that is ranked at the end; 0: none.
func (r *RelationLinks) ranked() int {
	switch {
	case r.opt.Has(sample.TestEdges):
		return sample.TestEdges
	case r.opt.Has(sample.ValEdges):
		return sample.ValEdges
	}
	return 0
}

// rank adds what is measured of every relation's test pairs, or of validation pairs where there are no others, at the
// best weights. With several relations their means have the plain names.
func (r *RelationLinks) rank(result *Result) error {
	set := r.ranked()
	if set == 0 || result.Best == nil {
		return nil
	}
	if err := r.Model.Load(r.Dev, result.Best); err != nil {
		return err
	}
	if err := r.Learnt.loadBest(r.Dev); err != nil {
		return err
	}
	z, err := r.allRows(max(result.BestEpoch, 0), atBest)
	if err != nil {
		return err
	}
	defer r.Dev.Free(z)
	result.Measures = map[string]float64{}
	for i, p := range r.pairs {
		m, err := r.rankRelation(z, i, set)
		if err != nil {
			return err
		}
		for name, value := range m {
			result.Measures[name] += value / float64(len(r.pairs))
			if len(r.pairs) > 1 {
				result.Measures[name+" of "+p.name] = value
			}
		}
	}
	return nil
}

func (r *RelationLinks) rankRelation(z tensor.Matrix, i, set int) (map[string]float64, error) {
	area, err := r.scoresMetric(z, i, set, r.State.Epoch, "auc")
	if err != nil {
		return nil, err
	}
	m, err := r.ranksMetrics(z, i, set, r.State.Epoch)
	if err == nil {
		m["auc"] = area
	}
	return m, err
}

// ranksMetrics are the metrics of ranks of a relation's pairs of a set.
func (r *RelationLinks) ranksMetrics(z tensor.Matrix, i, set, epoch int) (map[string]float64, error) {
	p := r.pairs[i]
	r.Model.Decoder.Relation(i)
	list := &p.sets[set]
	ends, k := p.ends(set, r.opt.RankNegatives)
	numbers, scores := make([]float64, p.rankNumbers(set)), r.Scores(z, list.row, r.places(list.v))
	if k == 0 {
		among := p.lists[set]
		copy(numbers[p.first[set]:], scores)
		copy(numbers[p.total[set]+among.first:], r.Scores(z, among.shared.row, r.places(among.shared.v)))
	} else {
		copy(numbers[p.first[set]:], Ranks(scores, r.ScoresOfEnds(z, list.row, r.places(ends), k), k))
	}
	if err := r.Peers.AllReduce(epoch, 0, numbers); err != nil {
		return nil, err
	}
	if k == 0 {
		_, m := SharedRanks(numbers[:p.total[set]], numbers[p.total[set]:])
		return m, nil
	}
	return RankMeasures(numbers, k), nil
}

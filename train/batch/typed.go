package batch

import (
	"context"
	"fmt"

	"starling/graph"
	"starling/nn"
	"starling/sample"
	"starling/tensor"
	"starling/train"
)

// Batches of a typed graph: blocks have the relations of edges, rows are of types, each with features of its own width.

// typedSteps has batches of a typed graph that is all here sampled.
func typedSteps(ctx context.Context, f *train.Loop, g *graph.CSR, data *graph.Dataset, mo Options) (*Steps, error) {
	if mo.Sampler != "neighbour" {
		return nil, fmt.Errorf("--sampler %s knows no relations; use neighbour on a typed graph", mo.Sampler)
	}
	schema := data.Meta.Schema
	n := &sample.Neighbour{
		Graph:        g,
		SeedVertices: data.Splits.Train,
		Size:         mo.Size,
		Fanouts:      mo.Fanouts,
		Replace:      mo.Replace,
		Weighted:     mo.Weighted,
		Seed:         f.Opt.Seed,
		Types:        &sample.Types{Schema: schema, Fanouts: mo.RelationFanouts, TypeOf: schema.TypeOf},
	}
	method, err := n.Prepare()
	if err != nil {
		return nil, err
	}
	return OnTypes(f, method, g, data.Labels, mo)
}

// OnTypes is OnMethod for a typed graph, whose types without features have learnt rows. The loop must know how it
// measures.
func OnTypes(f *train.Loop, method sample.Method, g *graph.CSR, labels *graph.Labels, mo Options) (*Steps, error) {
	m := OnMethod(f, method, g, &graph.Features{}, labels, mo)
	if l := learntAlone(f, mo.ThreadCount()); l != nil {
		if err := checkLearnt(f.Opt.Resume); err != nil {
			return nil, err
		}
		l.Measure(f)
		m.input, f.TrainOn = l, keeping{f.TrainOn, l}
	}
	return m, nil
}

// types are the types of the batch's rows; nil: the graph has none.
func (r *Batch) types() []graph.Run {
	if r.schema == nil {
		return nil
	}
	return r.schema.Runs(r.ids())
}

// Begin makes place for rows of a typed graph; nil: it has no types.
func (p *Pulled) Begin(s *graph.Schema) {
	if s != nil && p.Types == nil {
		p.Types = make([]graph.Features, len(s.Types))
	}
}

func (p *Pulled) normalizeTypes(wanted bool) {
	for t := range p.Types {
		f := &p.Types[t]
		if wanted && f.Cols > 0 {
			f = f.RowNormalize()
		}
		p.normalizedTypes = append(p.normalizedTypes, f)
	}
}

// TakeTypes copies the rows of vertices, by type, from others, which have them at some places among those of their
// type.
func (p *Pulled) TakeTypes(from *Pulled, vertices []uint32, at map[uint32]uint32, typeOf func(v uint32) int) {
	lists := make([][]uint32, len(p.Types))
	for _, v := range vertices {
		lists[typeOf(v)] = append(lists[typeOf(v)], v)
	}
	for t, rows := range from.normalizedTypes {
		if p.Types[t].Rows = len(lists[t]); rows.Cols > 0 {
			takeRows(&p.Types[t], rows, lists[t], func(v uint32) int { return int(at[v]) })
		}
	}
	p.Normalize(false) // they are already, where the run wants that
}

// JoinTypes makes the rows of lists of vertices, by type, the rows of all of them one after the other.
func (p *Pulled) JoinTypes(s *graph.Schema, lists [][]graph.Features) {
	p.Begin(s)
	for t := range p.Types {
		to := &p.Types[t]
		to.Rows, to.F32, to.BF16 = 0, to.F32[:0], to.BF16[:0]
		for _, list := range lists {
			from := &list[t]
			if to.Rows += from.Rows; from.Rows > 0 {
				to.Cols = from.Cols
				to.F32, to.BF16 = append(to.F32, from.F32...), append(to.BF16, from.BF16...)
			}
		}
	}
}

// typedInput puts the rows of the batch's vertices on the device, by type.
func (r *Batch) typedInput(dev tensor.Device, all *nn.TypedInput) nn.Input {
	x := &nn.TypedInput{Runs: r.types(), X: make([]tensor.Matrix, len(all.X)), Learnt: all.Learnt}
	if r.Pulled != nil {
		r.pulledRows(dev, x)
	} else {
		r.gatherRows(dev, x, all)
	}
	return nn.Input{Typed: x}
}

// pulledRows are rows that came from owners, which are in the order of the batch's vertices.
func (r *Batch) pulledRows(dev tensor.Device, x *nn.TypedInput) {
	for t, f := range r.Pulled.normalizedTypes {
		if f.Rows == 0 || f.Cols == 0 {
			continue
		}
		var host any = f.F32
		if f.Kind() == graph.BFloat16 {
			host = f.BF16
		}
		if x.X[t] = dev.FromHost(f.Rows, f.Cols, host); x.X[t].Type() != r.rowType {
			other := dev.Scratch(r.rowType, f.Rows, f.Cols)
			dev.Copy(other, x.X[t])
			x.X[t], r.typed = other, append(r.typed, other)
		}
	}
}

// gatherRows are rows of a graph that is all here.
func (r *Batch) gatherRows(dev tensor.Device, x, all *nn.TypedInput) {
	rows := make([][]uint32, len(all.X))
	ids := r.ids()
	for _, run := range x.Runs {
		first := uint32(r.schema.Types[run.Type].First)
		for _, v := range ids[run.Lo:run.Hi] {
			rows[run.Type] = append(rows[run.Type], v-first)
		}
	}
	for t, list := range rows {
		if all.X[t].IsZero() {
			continue
		}
		x.X[t] = dev.Scratch(all.X[t].Type(), len(list), all.X[t].Cols)
		dev.GatherRows(x.X[t], all.X[t], tensor.Indices(dev, list))
		r.typed = append(r.typed, x.X[t])
	}
}

func (r *Batch) freeTypes(dev tensor.Device) {
	for _, m := range r.typed {
		dev.Free(m)
	}
	r.typed = r.typed[:0]
}

// checkTyped refuses what batches of a typed graph do not go together with.
func checkTyped(o *train.Options, b *Options, _ train.Facts) error {
	const typed = "a typed graph"
	switch {
	case o.Model.Typed == nil:
		return nil
	case b.Sampler != "neighbour":
		return graph.Apart("--sampler "+b.Sampler, typed, "it knows no relations", "use --sampler neighbour")
	case b.Weighted:
		return graph.Apart("--weighted", typed, "its edges have relations instead of weights", "leave it out")
	case o.Pairs != nil && len(o.Pairs.Relations) == 0:
		return graph.Apart("pairs of vertices", typed, "its pairs are edges of a relation", "use --task link with the "+
			"relation as --target")
	case o.Embeddings != nil:
		return graph.Apart("--learn-embeddings", typed, "types without features have learnt rows already",
			"leave it out")
	case o.Inductive:
		return graph.Apart("--inductive", typed, "training vertices are of one type, and no edges may be left between "+
			"them", "leave it out")
	}
	return nil
}

// beginTyped puts the blocks of a typed batch on the device, by relation.
func (a *Blocks) beginTyped() {
	b := a.batch
	ids := b.ids()
	for i := range b.Blocks {
		x := &b.Blocks[i]
		in := &graph.CSR{Indptr: x.Indptr, Indices: x.Indices, Relations: x.Relations}
		t := nn.NewPart(a.dev, in, x.Src, nil, nil, true)
		t.SetTypes(b.schema, b.schema.Runs(ids[:x.Dst]), b.schema.Runs(ids[:x.Src]))
		a.typed = append(a.typed, t.Edges(nn.Form{Related: true}).Related)
	}
}

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
	for t, x := range f.X.Typed.Learnt {
		if x != nil {
			return nil, fmt.Errorf(
				"type %q has no features: its rows are learnt by --mode full only",
				schema.Types[t].Name,
			)
		}
	}
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
	m := OnMethod(f, method, g, &graph.Features{}, data.Labels, mo)
	return m, nil
}

// types are the types of the batch's rows; nil: the graph has none.
func (r *Batch) types() []graph.Run {
	if r.schema == nil {
		return nil
	}
	return r.schema.Runs(r.ids())
}

// typedInput gathers the features of the batch's vertices, by type.
func (r *Batch) typedInput(dev tensor.Device, all *nn.TypedInput) nn.Input {
	x := &nn.TypedInput{Runs: r.types(), X: make([]tensor.Matrix, len(all.X)), Learnt: all.Learnt}
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
	}
	return nn.Input{Typed: x}
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

package traintest

import (
	"testing"

	"starling/graph"
	"starling/nn"
	"starling/rng"
	"starling/sample"
	"starling/train"
)

// Typed is a small typed graph: items, which have classes; users without features; tags of another width; and shops,
// which nothing leads to. A tag that an item "has" is of its class, one that it "lacks" is not: who does not tell the
// two relations apart learns nothing from them.
func Typed(t testing.TB, items int) *graph.Dataset {
	t.Helper()
	const classes = 4
	key := rng.New(19)
	users, tags, shops := items/2, 40, 5
	s := &graph.Schema{Types: []graph.VertexType{
		{Name: "item", Count: int64(items), Features: &graph.FeatureMeta{Kind: graph.Dense, Dim: 6}},
		{Name: "user", First: int64(items), Count: int64(users)},
		{
			Name:     "tag",
			First:    int64(items + users),
			Count:    int64(tags),
			Features: &graph.FeatureMeta{Kind: graph.Dense, Dim: classes},
		},
		{Name: "a shop", First: int64(items + users + tags), Count: int64(shops),
			Features: &graph.FeatureMeta{Kind: graph.BFloat16, Dim: 3}}},
		Relations: []graph.Relation{
			{Source: 1, Name: "likes", Target: 0, Reverse: "liked_by"},
			{Source: 2, Name: "has", Target: 0, Reverse: "of"},
			{Source: 2, Name: "lacks", Target: 0},
			{
				Source: 3,
				Name:   "sells",
				Target: 0,
			},
			{Source: 0, Name: "liked_by", Target: 1, Reverse: "likes"},
			{Source: 1, Name: "knows", Target: 1},
			{Source: 0, Name: "of", Target: 2, Reverse: "has"},
		}}
	old := s.SortRelations()
	number := make([]uint16, len(old))
	for now, was := range old {
		number[was] = uint16(now)
	}
	var src, dst []uint32
	var kind []uint16
	add := func(relation, u, v int) {
		src, dst = append(src, uint32(s.Types[s.Relations[number[relation]].Source].First)+uint32(u)),
			append(dst, uint32(s.Types[s.Relations[number[relation]].Target].First)+uint32(v))
		kind = append(kind, number[relation])
	}
	class := make([]int32, items)
	for v := range items {
		class[v] = int32(key.IntN(uint64(v), classes))
		draw := key.Fold(uint64(v) + 1)
		for i := range 3 {
			tag := draw.IntN(uint64(i), tags/classes)*classes + int(class[v])
			add(1, tag, v)
			add(6, v, tag)
			add(
				2,
				draw.IntN(
					uint64(10+i),
					tags/classes,
				)*classes+(int(class[v])+1+draw.IntN(uint64(20+i), classes-1))%classes,
				v,
			)
		}
		if user := draw.IntN(30, users); v%3 > 0 {
			add(0, user, v)
			add(4, v, user)
			add(5, draw.IntN(31, users), user)
		}
		if v%7 == 0 {
			add(3, draw.IntN(32, shops), v)
		}
	}
	n := items + users + tags + shops
	g, err := graph.FromTypedEdges(n, src, dst, kind)
	if err != nil {
		t.Fatal(err)
	}
	d := &graph.Dataset{Graph: g, Labels: &graph.Labels{Classes: classes, Class: make([]int32, n)}, Target: "item",
		TypeFeatures: make([]*graph.Features, len(s.Types))}
	for v := range d.Labels.Class {
		d.Labels.Class[v] = -1
	}
	copy(d.Labels.Class, class)
	d.Meta.Schema, d.Meta.Name, d.Meta.Nodes, d.Meta.Edges = s, "typed", int64(n), g.Edges()
	d.Meta.Task, d.Meta.Classes = graph.SingleLabel, classes
	noise := func(f *graph.Features, k uint64) *graph.Features {
		f.F32 = make([]float32, f.Rows*f.Cols)
		for i := range f.F32 {
			f.F32[i] = float32(key.Fold(k).Normal(uint64(i)))
		}
		return f
	}
	d.TypeFeatures[0] = noise(&graph.Features{Rows: items, Cols: 6}, 1e6)
	d.TypeFeatures[2] = noise(&graph.Features{Rows: tags, Cols: classes}, 2e6)
	for i := range tags {
		d.TypeFeatures[2].F32[i*classes+i%classes] += 3
	}
	d.TypeFeatures[3] = Rounded(noise(&graph.Features{Rows: shops, Cols: 3}, 3e6))
	for v := range uint32(items) {
		split := []*[]uint32{&d.Splits.Train, &d.Splits.Train, &d.Splits.Val, &d.Splits.Test}[v%4]
		*split = append(*split, v)
	}
	return d
}

// Featured gives every type of a typed graph features.
func Featured(d *graph.Dataset) *graph.Dataset {
	key := rng.New(23)
	for t, f := range d.TypeFeatures {
		if f != nil {
			continue
		}
		typ := &d.Meta.Schema.Types[t]
		f = &graph.Features{Rows: int(typ.Count), Cols: 5, F32: make([]float32, typ.Count*5)}
		for i := range f.F32 {
			f.F32[i] = float32(key.Normal(uint64(i)))
		}
		d.TypeFeatures[t], typ.Features = f, &graph.FeatureMeta{Kind: graph.Dense, Dim: 5}
	}
	return d
}

// TypedOptions are for a short run of a typed model.
func TypedOptions(d *graph.Dataset, model string) train.Options {
	o := Options(model)
	o.Epochs, o.EvalEvery = 6, 3
	o.Model.In, o.Model.Out, o.Model.Typed = 0, d.Labels.Classes, nn.TypedOf(d.Meta.Schema)
	o.Model.Typed.Outputs = []int{d.Meta.Schema.Type(d.Target)}
	if nn.HasHeads(model) {
		o.Model.AttentionDropout = 0.3
	}
	return o
}

// RelationOptions are for a short run of a typed model that learns to tell the edges of relations.
func RelationOptions(d *graph.Dataset, model, decoder string, names ...string) train.Options {
	o := TypedOptions(d, model)
	var relations []int
	for _, name := range names {
		relations = append(relations, d.Meta.Schema.RelationOf(name))
	}
	o.Model.Out, o.Model.Decoder, o.Model.Typed.Scored, o.Model.Typed.Outputs = 8, decoder, relations, nil
	o.Pairs = &train.PairOptions{ValEdges: 0.1, TestEdges: 0.2, PerPair: 2, Avoid: true, RankNegatives: 9,
		Relations: relations}
	return o
}

// LinkRelations is train.LinkRelations, which must succeed.
func LinkRelations(t testing.TB, d *graph.Dataset, o train.Options) *train.Result {
	t.Helper()
	r, err := train.LinkRelations(t.Context(), Ref(), d, o, nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// WithoutHeldOut is a graph of which training on relations knows the same: without half of the edges that are held out.
func WithoutHeldOut(t testing.TB, d *graph.Dataset, o train.Options) *graph.Dataset {
	t.Helper()
	sets, err := sample.NewRelationSets(d.Meta.Schema, o.Pairs.Relations, o.Pairs.ValEdges, o.Pairs.TestEdges, o.Seed)
	if err != nil {
		t.Fatal(err)
	}
	var src, dst []uint32
	var relation []uint16
	g := d.Graph
	for v := range uint32(g.Nodes()) {
		for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
			u, r := g.Indices[e], g.Relations[e]
			if sets.Of(int(r), u, v) == sample.TrainEdges || (u+v)%2 == 0 {
				src, dst, relation = append(src, u), append(dst, v), append(relation, r)
			}
		}
	}
	other := *d
	if other.Graph, err = graph.FromTypedEdges(g.Nodes(), src, dst, relation); err != nil {
		t.Fatal(err)
	}
	return &other
}

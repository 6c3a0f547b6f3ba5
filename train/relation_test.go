package train_test

import (
	"math"
	"strings"
	"testing"

	"starling/graph"
	"starling/train"
	"starling/train/traintest"
)

// TestRelationLinksFindEdges: with every decoder a model tells held-out edges of a relation from others, and measures
// each relation by itself. (By a dot product "has" and "lacks", which exclude each other, would be one.)
func TestRelationLinksFindEdges(t *testing.T) {
	d := traintest.Typed(t, 100)
	for decoder, relations := range map[string][]string{"dot": {"tag has item"}, "distmult": {"has", "lacks"},
		"mlp": {"has", "of"}} {
		o := traintest.RelationOptions(d, "rgcn", decoder, relations...)
		o.Epochs, o.EvalEvery, o.Optim.LR, o.Pairs.RankNegatives = 60, 20, 0.02, 30
		r := traintest.LinkRelations(t, d, o)
		if r.Loss[len(r.Loss)-1] >= r.Loss[0] || r.Metric != "auc" {
			t.Errorf("%s: metric %s, losses %v", decoder, r.Metric, r.Loss)
		}
		m, suffix := r.Measures, ""
		if len(relations) > 1 {
			suffix = " of tag has item"
		}
		if m["auc"+suffix] < 0.7 || m["mrr"+suffix] < 0.15 || m["hits@10"+suffix] < m["hits@1"+suffix] {
			t.Errorf("%s: %v", decoder, m)
		}
		mean := (m["mrr of tag has item"] + m["mrr of tag lacks item"]) / 2
		if decoder == "distmult" && math.Abs(m["mrr"]-mean) > 1e-12 {
			t.Errorf("mrr %g is not the relations' mean %g", m["mrr"], mean)
		}
	}
}

// TestRelationLinksDoNotSeeHeldOutEdges: without half of the edges that are held out, and of their reverses, training
// is the same to the bit.
func TestRelationLinksDoNotSeeHeldOutEdges(t *testing.T) {
	d := traintest.Typed(t, 60)
	o := traintest.RelationOptions(d, "hsage", "dot", "tag has item")
	o.Pairs.Avoid = false // else a vertex is drawn again where there is an edge
	want := traintest.LinkRelations(t, d, o)
	other := traintest.WithoutHeldOut(t, d, o)
	if other.Graph.Edges() >= d.Graph.Edges() {
		t.Fatal("nothing is held out")
	}
	traintest.SameButTest(t, traintest.LinkRelations(t, other, o), want)
}

// TestRelationLinksResume: a run in two parts has the bits of one, with rows that are learnt.
func TestRelationLinksResume(t *testing.T) {
	d := traintest.Typed(t, 40)
	o := traintest.RelationOptions(d, "rgcn", "distmult", "likes")
	o.Pairs.ValEdges = 0.2
	traintest.ResumesLinks(t, o, func(o train.Options) *train.Result { return traintest.LinkRelations(t, d, o) })
}

// TestRelationLinksRefuse what has no meaning.
func TestRelationLinksRefuse(t *testing.T) {
	d := traintest.Typed(t, 30)
	for want, change := range map[string]func(d *graph.Dataset, o *train.Options){
		"no relation":         func(_ *graph.Dataset, o *train.Options) { o.Pairs.Relations = nil },
		"without a decoder":   func(_ *graph.Dataset, o *train.Options) { o.Model.Decoder = "" },
		"has no types":        func(d *graph.Dataset, _ *train.Options) { d.Meta.Schema = nil },
		"its edges":           func(_ *graph.Dataset, o *train.Options) { o.Pairs.Walks = 1 },
		"negatives per pair":  func(_ *graph.Dataset, o *train.Options) { o.Pairs.PerPair = 0 },
		"leave some to learn": func(_ *graph.Dataset, o *train.Options) { o.Pairs.ValEdges = 1 },
		"hold out":            func(_ *graph.Dataset, o *train.Options) { o.Pairs.ValEdges = 1e-9 },
		"relation 99":         func(_ *graph.Dataset, o *train.Options) { o.Pairs.Relations = []int{99} },
	} {
		other, o := *d, traintest.RelationOptions(d, "rgcn", "dot", "likes")
		change(&other, &o)
		if _, err := train.LinkRelations(t.Context(), traintest.Ref(), &other, o, nil); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}

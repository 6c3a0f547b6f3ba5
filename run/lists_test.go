package run

import (
	"context"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"starling/graph"
	"starling/nn"
	"starling/predict"
	"starling/rng"
	"starling/sample"
	"starling/setup"
	"starling/setup/setuptest"
	"starling/spec"
)

// pairFiles writes files of candidates: of n pairs from [0, sources) to [0, targets), each with 12 of its own, and of
// the same pairs with 60 that they share. taken reports which pairs must not be among them.
func pairFiles(t *testing.T, n int, sources, targets uint32, taken func(u, v uint32) bool) (own, shared string) {
	t.Helper()
	dir, draw, at := t.TempDir(), rng.New(7), 0
	next := func(below uint32) int64 { at++; return int64(draw.IntN(uint64(at), int(below))) }
	var rows, edge, negatives []int64
	for len(edge) < 2*n {
		u, v := next(sources), next(targets)
		if taken(uint32(u), uint32(v)) {
			continue
		}
		rows, edge = append(rows, u, v), append(edge, u, v)
		for range 12 {
			rows = append(rows, next(targets))
		}
	}
	for range 60 {
		negatives = append(negatives, next(sources), next(targets))
	}
	own = filepath.Join(dir, "own.npy")
	if err := graph.WriteNPY(own, rows, int64(n), 14); err != nil {
		t.Fatal(err)
	}
	return own, packNPZ(t, filepath.Join(dir, "shared.npz"), map[string][]int64{"edge": edge, "edge_neg": negatives},
		map[string][]int64{"edge": {int64(n), 2}, "edge_neg": {60, 2}})
}

// linkedIn reports which pairs of an untyped dataset are edges, in any direction, or loops.
func linkedIn(t *testing.T, dir string) func(u, v uint32) bool {
	t.Helper()
	d, err := graph.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	edges := map[[2]uint32]bool{}
	for v := range uint32(d.Graph.Nodes()) {
		for _, u := range d.Graph.Neighbors(v) {
			edges[[2]uint32{u, v}], edges[[2]uint32{v, u}] = true, true
		}
	}
	return func(u, v uint32) bool { return u == v || edges[[2]uint32{u, v}] }
}

// TestTrainOnLists: epochs are judged on the pairs and candidates of files. At the best weights their MRR and hits@k are
// those that predict finds, where none of the pairs is an edge.
func TestTrainOnLists(t *testing.T) {
	dir := setuptest.Block(t, nil)
	own, shared := pairFiles(t, 50, 300, 300, linkedIn(t, dir))
	for file, metric := range map[string]string{own: "hits@3", shared: "hits@20"} {
		for _, mode := range []string{"link full", "link mini"} {
			s := pairSpecs(dir)[mode]
			s.Pairs.RankNegatives = spec.Default().Pairs.RankNegatives
			s.Pairs.ValCandidates, s.Pairs.TestCandidates = file, file
			s.Training.Epochs, s.Machine.DType, s.Output.Dir = 3, "f64", filepath.Join(t.TempDir(), "run")
			s.Objective.Metric = metric
			r := trained(t, s, nil)
			p, err := predict.Run(t.Context(), predict.Options{Run: s.Output.Dir, Dataset: dir, What: "scores",
				Candidates: file, Out: filepath.Join(t.TempDir(), "ranks.npy")})
			if err != nil {
				t.Fatal(err)
			}
			name := strings.TrimPrefix(metric, "hits@")
			if r.Metric != metric || math.Abs(float64(*r.MRR-p.Ranked.MRR)) > 1e-6 ||
				math.Abs(float64(r.Hits[name]-p.Ranked.Hits[name])) > 1e-6 || r.TestAccuracy != r.Hits[name] ||
				math.Abs(float64(r.ValAccuracy[r.BestEpoch]-r.TestAccuracy)) > 1e-12 {
				t.Errorf("%s, %s: MRR %v, %v; predict %+v", file, mode, *r.MRR, r.Hits, p.Ranked)
			}
		}
	}
}

// TestListsOnWorkers: two workers find on pairs of files what one does, and send what was planned but for the edges that
// batches leave out.
func TestListsOnWorkers(t *testing.T) {
	block, typed := setuptest.Block(t, nil), setuptest.Typed(t)
	blockOwn, blockShared := pairFiles(t, 50, 300, 300, func(uint32, uint32) bool { return false })
	const relation = "author writes paper"
	sources, targets := sizes(t, typed, relation)
	own, shared := pairFiles(t, 50, sources, targets, func(uint32, uint32) bool { return false })
	mini := pairSpecs(block)["link mini"]
	full := setuptest.QuickTyped(typed, "hsage")
	full.Task, full.Target = nn.TaskLink, relation
	batches := full
	batches.Mode, batches.Batches.Size, batches.Batches.Fanout = "mini", 64, "4,4"
	for _, c := range []struct {
		name string
		spec spec.Spec
		file string
	}{{"mini, own", mini, blockOwn}, {"mini, shared", mini, blockShared}, {"relation, own", full, own},
		{"relation, shared", full, shared}, {"relation in batches", batches, own}} {
		s := c.spec
		s.Training.Epochs, s.Machine.DType, s.Pairs.RankNegatives = 3, "f64", spec.Default().Pairs.RankNegatives
		s.Pairs.ValCandidates, s.Pairs.TestCandidates = c.file, c.file
		one := trained(t, s, nil)
		s.Cluster.Workers, s.Cluster.InProcess = 2, true
		two := trained(t, s, nil)
		if one.Metric != "mrr" || !(*one.MRR > 0) || math.Abs(float64(*two.MRR-*one.MRR)) > 1e-9 ||
			math.Abs(float64(*two.AUC-*one.AUC)) > 1e-9 || two.BestEpoch != one.BestEpoch ||
			math.Abs(float64(two.Loss[2]-one.Loss[2])) > 1e-9 {
			t.Errorf("%s: MRR %v, AUC %v, %v; of one worker %v, %v, %v", c.name, *two.MRR, *two.AUC, two.Loss, *one.MRR,
				*one.AUC, one.Loss)
		}
		for k, x := range one.Hits {
			if math.Abs(float64(two.Hits[k]-x)) > 1e-9 {
				t.Errorf("%s: hits@%s %v, of one worker %v", c.name, k, two.Hits[k], x)
			}
		}
		s.Objective.Metric = "auc" // of which other tests compare all bytes
		if auc := trained(t, s, nil); two.Bytes.Planned-two.Bytes.Total != auc.Bytes.Planned-auc.Bytes.Total {
			t.Errorf("%s: planned %d bytes and sent %d; by AUC %d and %d", c.name, two.Bytes.Planned, two.Bytes.Total,
				auc.Bytes.Planned, auc.Bytes.Total)
		}
		if !strings.HasPrefix(c.name, "mini") && s.Mode == "full" && two.Bytes.Planned != two.Bytes.Total {
			t.Errorf("%s: planned %d bytes and sent %d", c.name, two.Bytes.Planned, two.Bytes.Total)
		}
	}
}

// TestCandidatesOfRelations: predict ranks pairs of a relation among candidates as the run that learnt it did, by names of
// the types of its ends, and refuses pairs of other types.
func TestCandidatesOfRelations(t *testing.T) {
	dir := setuptest.Typed(t)
	const relation = "author writes paper"
	d, err := graph.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	at := d.Meta.Schema.RelationOf(relation)
	rel := &d.Meta.Schema.Relations[at]
	source, target := &d.Meta.Schema.Types[rel.Source], &d.Meta.Schema.Types[rel.Target]
	linked := func(u, v uint32) bool {
		v += uint32(target.First)
		lo, hi := d.Graph.Relation(v, at)
		return slices.Contains(d.Graph.Indices[lo:hi], u+uint32(source.First))
	}
	own, shared := pairFiles(t, 40, uint32(source.Count), uint32(target.Count), linked)
	for _, file := range []string{own, shared} {
		s := setuptest.QuickTyped(dir, "hsage")
		s.Task, s.Target, s.Training.Epochs, s.Output.Dir = nn.TaskLink, relation, 3, filepath.Join(t.TempDir(), "run")
		s.Pairs.ValCandidates, s.Pairs.TestCandidates, s.Pairs.Decoder = file, file, "distmult"
		r := trained(t, s, nil)
		o := predict.Options{Run: s.Output.Dir, Dataset: dir, What: "scores", Candidates: file, Relation: relation,
			Out: filepath.Join(t.TempDir(), "ranks.npy")}
		p, err := predict.Run(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if math.Abs(float64(*r.MRR-p.Ranked.MRR)) > 1e-5 || math.Abs(float64(r.Hits["10"]-p.Ranked.Hits["10"])) > 1e-5 ||
			p.Ranked.Edges != 0 {
			t.Errorf("%s: predict has %+v, the run MRR %v, %v", file, p.Ranked, *r.MRR, r.Hits)
		}
		far := filepath.Join(t.TempDir(), "far.npy")
		if err := graph.WriteNPY(far, []int64{source.Count, 0, 1}, 1, 3); err != nil {
			t.Fatal(err)
		}
		o.Candidates, o.Out = far, filepath.Join(t.TempDir(), "ranks.npy")
		if _, err := predict.Run(t.Context(), o); !setuptest.IsMistake(err, "by their names before import") {
			t.Error("a source of another type:", err)
		}
		o.Candidates, o.Relation = file, "paper cites paper"
		if _, err := predict.Run(t.Context(), o); !setuptest.IsMistake(err, "--relation") {
			t.Error("a relation that is not learnt:", err)
		}
	}
}

// sizes are how many vertices a relation's ends have.
func sizes(t *testing.T, dir, relation string) (sources, targets uint32) {
	t.Helper()
	m, err := graph.ReadMeta(dir)
	if err != nil {
		t.Fatal(err)
	}
	for r := range m.Schema.Relations {
		if m.Schema.RelationName(r) == relation {
			rel := &m.Schema.Relations[r]
			return uint32(m.Schema.Types[rel.Source].Count), uint32(m.Schema.Types[rel.Target].Count)
		}
	}
	t.Fatal("no relation ", relation)
	return 0, 0
}

// TestListedEdgesAreHeldOut: messages pass over no edge of a file, in either direction, and training has none.
func TestListedEdgesAreHeldOut(t *testing.T) {
	dir := setuptest.Block(t, nil)
	linked := linkedIn(t, dir)
	own, shared := pairFiles(t, 20, 300, 300, func(u, v uint32) bool { return u == v || !linked(u, v) })
	for _, file := range []string{own, shared} {
		s := pairSpecs(dir)["link full"]
		s.Pairs.ValCandidates = file
		d, err := graph.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		l, err := setup.EdgePairs(t.Context(), &s, d)
		if err != nil || l.Test != nil || l.Val.Len() != 20 {
			t.Fatalf("%+v, %v", l, err)
		}
		left := map[[2]uint32]bool{}
		for v := range uint32(l.Graph.Nodes()) {
			for _, u := range l.Graph.Neighbors(v) {
				left[[2]uint32{u, v}], left[[2]uint32{v, u}] = true, true
			}
		}
		pairs := l.Pairs.(*sample.Edges).Pairs
		for i := range pairs.U {
			left[[2]uint32{pairs.U[i], pairs.V[i]}], left[[2]uint32{pairs.V[i], pairs.U[i]}] = true, true
		}
		for i, u := range l.Val.U {
			if left[[2]uint32{u, l.Val.V[i]}] {
				t.Errorf("%s: %d to %d is left in the graph or learnt", file, u, l.Val.V[i])
			}
		}
		if l.Graph.Edges() >= d.Graph.Edges() || l.Graph.Edges() < d.Graph.Edges()-60 {
			t.Errorf("%d of %d edges are left", l.Graph.Edges(), d.Graph.Edges())
		}
	}
}

// TestListsRefuse: files and settings that do not go together get one sentence before training.
func TestListsRefuse(t *testing.T) {
	dir, typed := setuptest.Block(t, nil), setuptest.Typed(t)
	own, shared := pairFiles(t, 9, 300, 300, func(uint32, uint32) bool { return false })
	far, _ := pairFiles(t, 9, 1<<20, 300, func(uint32, uint32) bool { return false })
	odd := packNPZ(t, filepath.Join(t.TempDir(), "odd.npz"),
		map[string][]int64{"source": {1, 2}, "target": {3, 4}, "target_neg": {5, 6, 7}},
		map[string][]int64{"source": {2}, "target": {2}, "target_neg": {3, 1}})
	relations := setuptest.QuickTyped(typed, "hsage")
	relations.Task, relations.Target = nn.TaskLink, "author writes paper;paper cites paper"
	link := pairSpecs(dir)["link full"]
	link.Pairs.RankNegatives = spec.Default().Pairs.RankNegatives
	for _, c := range []struct {
		want string
		of   spec.Spec
		set  func(s *spec.Spec)
	}{
		{"--val-candidates", setuptest.Quick(dir), func(s *spec.Spec) { s.Pairs.ValCandidates = own }},
		{"--test-candidates", pairSpecs(dir)["unsupervised full"], func(s *spec.Spec) { s.Pairs.TestCandidates = own }},
		{"--rank-negatives", link, func(s *spec.Spec) { s.Pairs.ValCandidates, s.Pairs.RankNegatives = own, 7 }},
		{"--val-edges", link, func(s *spec.Spec) { s.Pairs.ValCandidates, s.Pairs.ValEdges = own, 0.2 }},
		{"--split", link, func(s *spec.Spec) { s.Pairs.ValCandidates, s.Pairs.Split = own, "time:0.7,0.8" }},
		{"--patience", link, func(s *spec.Spec) { s.Pairs.TestCandidates, s.Training.Patience = own, 3 }},
		{"--metric", link, func(s *spec.Spec) { s.Pairs.ValCandidates, s.Objective.Metric = own, "hits@50" }},
		{"--metric", link, func(s *spec.Spec) { s.Pairs.ValCandidates, s.Objective.Metric = own, "hits@100" }},
		{"--metric", link, func(s *spec.Spec) { s.Pairs.ValCandidates, s.Objective.Metric = shared, "hits@3" }},
		{"--metric", link, func(s *spec.Spec) { s.Objective.Metric = "hits@50" }},
		{"by their names before import", link, func(s *spec.Spec) { s.Pairs.ValCandidates = far }},
		{"a row per pair", link, func(s *spec.Spec) { s.Pairs.TestCandidates = odd }},
		{"no such file", link, func(s *spec.Spec) { s.Pairs.TestCandidates = "none.npz" }},
		{"one relation", relations, func(s *spec.Spec) { s.Pairs.ValCandidates = own }},
	} {
		for _, workers := range []int{1, 2} {
			s := c.of
			s.Output.Dir = filepath.Join(t.TempDir(), "run")
			if c.set(&s); workers > 1 {
				s.Cluster.Workers, s.Cluster.InProcess = workers, true
				if s.Mode = "mini"; s.Batches.Size == 0 {
					s.Batches.Size = 100
				}
			}
			_, err := Train(context.Background(), s, nil)
			if !setuptest.IsMistake(err, c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("%d workers: %v, want %q", workers, err, c.want)
			}
			if m, _ := filepath.Glob(s.Output.Dir + "*"); len(m) > 0 {
				t.Errorf("%s: %v is written", c.want, m)
			}
		}
	}
}

package setup

import (
	"fmt"
	"strings"

	"starling/dataset"
	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/spec"
)

// NoFeatures is the error of a graph that has none.
func NoFeatures(dir string) error {
	return &graph.InputError{File: dir, Found: "no features", Want: "a dataset with features",
		Fix: "import it with --features FILE, or with --features-from " + orList(dataset.FeatureSources()) +
			", which makes them from the structure; or learn rows of vertices: --mode mini --learn-embeddings 64"}
}

// noLabels is the error of a dataset without labels, or without a training split, where the task needs them.
func noLabels(dir, what string) error {
	return &graph.InputError{File: dir, Found: "no " + what, Want: "a dataset with labels and a training split",
		Fix: "import it with them (--labels FILE, --splits FILE), or learn from edges alone: --task link or --task unsupervised"}
}

func orList(words []string) string {
	return strings.Join(words[:len(words)-1], ", ") + " or " + words[len(words)-1]
}

// CheckWeights refuses weights that the model cannot take.
func CheckWeights(s *spec.Spec, g *graph.CSR) error {
	if s.Model.Name != "gcn" && s.Model.Name != "resgcn+" {
		return nil
	}
	if least := g.LeastWeight(); least < 0 {
		return &graph.InputError{File: s.Dataset, Field: "weights", Found: fmt.Sprint(least),
			Want: "weights of 0 or more for --model " + s.Model.Name + ", which divides by the root of their sum",
			Fix:  "use --model sage or gin, or import the graph without --weights"}
	}
	return nil
}

// NoteEdges says what a run does not look at of the edges: their weights, or their features, edgeDim of each.
func NoteEdges(s *spec.Spec, weighted bool, edgeDim int, events event.Listener) {
	if edgeDim > 0 && !s.Model.EdgeFeatures {
		noteEdgeFeatures(s.Model.Name, edgeDim, events)
	}
	if !s.Model.EdgeFeatures {
		edgeDim = 0
	}
	if weighted && !s.Batches.Weighted && !nn.UsesWeights(s.Model.Name, edgeDim) {
		events.On(event.Note{Text: "warning: --model " + s.Model.Name +
			" does not look at the weights of edges, which this graph has; gcn, sage and gin do"})
	}
}

func noteEdgeFeatures(model string, dim int, events event.Listener) {
	use := "--edge-features uses them"
	if !nn.UsesEdges(model) {
		use = "--model gat, gatv2 and gin use them with --edge-features"
	}
	events.On(event.Note{Text: fmt.Sprintf("warning: --model %s ignores the features of edges, %s per edge; %s", model,
		event.Counted(dim, "number"), use)})
}

// NotePulled says that settings of rows that other hosts send have no effect where there are none. They are no mistake:
// the same command is for one host and for many.
func NotePulled(s *spec.Spec, events event.Listener) {
	if RemoteWorkers(s) || s.Cluster.Servers > 1 {
		return
	}
	for _, name := range []string{"cache", "pull_dtype"} {
		if value, ok := s.Settings[name]; ok && value != "none" {
			events.On(event.Note{Text: fmt.Sprintf("warning: --%s %v has no effect here: all workers are on this host and "+
				"read each other's rows in place; --servers groups them as hosts would be", strings.ReplaceAll(name, "_", "-"), value)})
		}
	}
}

package generate

import (
	"fmt"
	"slices"
	"strings"

	"starling/dataset"
	"starling/graph"
)

// Params describes a graph to generate. Start from DefaultParams or Like.
type Params struct {
	Name     string
	Nodes    int64
	Edges    int64 // directed edges to store, about; an undirected edge counts twice
	Directed bool  // otherwise every edge has its reverse
	Features int   // dimension; 0: none
	BFloat16 bool  // store features as bfloat16
	// EdgeFeatures is the number of features per edge; 0: none.
	EdgeFeatures int
	Classes      int // 0: no labels
	// Task is what the labels are for, one of Tasks.
	Task   string
	Signal float64
	Seed   uint64

	// Shares of the vertices in each split; what is left over is in none.
	Train, Val, Test float64

	// The block model only.
	Communities int     // 0: one per class
	Homophily   float64 // share of edges inside a class
	Exponent    float64 // of the power law of degrees; above 2
	MaxDegree   float64 // 0: chosen from the size

	// R-MAT only: the probabilities of three quadrants; the fourth has the rest to 1.
	A, B, C float64

	typed *typedShape // of a typed graph, see LikeTyped

	Notes     []string
	Overwrite bool
	Progress  dataset.Progress
}

// DefaultParams are parameters every kind accepts: 100,000 vertices of average
// degree 20.
func DefaultParams() Params {
	return Params{
		Nodes: 100_000, Edges: 2_000_000, Features: 128, Classes: 16, Task: Classify, Signal: 1.5,
		Train: 0.6, Val: 0.2, Test: 0.2, Seed: 1,
		Homophily: 0.7, Exponent: 2.5,
		A: 0.57, B: 0.19, C: 0.19,
	}
}

// DiskBytes is about the size of the dataset on disk; 0 if the parameters are invalid.
func (p Params) DiskBytes() int64 {
	if p.validate() != nil {
		return 0
	}
	each := 4 // bytes per feature
	if p.BFloat16 {
		each = 2
	}
	if p.typed != nil {
		return p.typedBytes(int64(each))
	}
	label := 4
	if p.Task == Multilabel {
		label = p.Classes
	}
	return p.Nodes*int64(8+label+each*p.Features) + p.Edges*int64(4+4*p.EdgeFeatures)
}

func badParam(field, found, want string) error {
	return &graph.InputError{Field: "--" + field, Found: found, Want: want}
}

func (p Params) validate() error {
	if p.typed != nil {
		return p.validateTyped()
	}
	switch {
	case p.Nodes < 1 || p.Nodes > graph.MaxNodes:
		return badParam("nodes", fmt.Sprint(p.Nodes), "1 to 2^32-1")
	case p.Edges < 0 || p.Edges > graph.MaxEdges/2:
		return badParam("edges", fmt.Sprint(p.Edges), "0 to 2^41")
	case float64(p.Edges) > 0.5*float64(p.Nodes)*float64(p.Nodes-1):
		return badParam("edges", fmt.Sprintf("%d with --nodes %d", p.Edges, p.Nodes),
			"at most half of all pairs of vertices")
	case p.Features < 0 || p.Features > 1<<20:
		return badParam("features", fmt.Sprint(p.Features), "0 to 2^20")
	case p.EdgeFeatures < 0 || p.EdgeFeatures > 1<<16:
		return badParam("edge-feature-width", fmt.Sprint(p.EdgeFeatures), "0 to 2^16")
	case p.Classes < 0 || p.Classes > 1<<16 || int64(p.Classes) > p.Nodes:
		return badParam("classes", fmt.Sprint(p.Classes), "0 to 65536, and no more than vertices")
	case !slices.Contains(Tasks(), p.Task):
		return badParam("task", fmt.Sprintf("%q", p.Task), strings.Join(Tasks(), ", "))
	case p.Task != Classify && p.Classes == 0:
		return badParam("task", p.Task+" without classes", "classes above 0, which labels are made of")
	case !(p.Signal >= 0 && p.Signal <= 1e6):
		return badParam("signal", fmt.Sprint(p.Signal), "0 to a million")
	}
	return dataset.CheckFractions(p.Train, p.Val, p.Test)
}

// describe is what meta.json keeps of the parameters: enough to draw the graph again.
func (p Params) describe(kind string) string {
	s := fmt.Sprintf("generate %s --nodes %d --edges %d --features %d --classes %d --signal %g --seed %d --train %g --val %g --test %g",
		kind, p.Nodes, p.Edges, p.Features, p.Classes, p.Signal, p.Seed, p.Train, p.Val, p.Test)
	switch kind {
	case "sbm":
		s += fmt.Sprintf(" --communities %d --homophily %g --exponent %g --max-degree %g", p.Communities, p.Homophily,
			p.Exponent, p.MaxDegree)
	case "rmat":
		s += fmt.Sprintf(" --a %g --b %g --c %g", p.A, p.B, p.C)
	}
	if p.Task != Classify {
		s += " --task " + p.Task
	}
	if p.EdgeFeatures > 0 {
		s += fmt.Sprintf(" --edge-feature-width %d", p.EdgeFeatures)
	}
	if p.Directed {
		s += " --directed"
	}
	return s
}

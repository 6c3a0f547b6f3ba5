package partition

import (
	"context"
	"fmt"
	"strings"

	"starling/event"
	"starling/graph"
)

// entry describes a method.
type entry struct {
	name   string
	method Method
	about  string
	// balance is what the method balances by default; the splits
	// in it are left out if the dataset has none.
	balance string
	// seeded methods draw at random: another seed gives another partition.
	seeded bool
	// cheap methods are run beside the chosen one for comparison.
	cheap bool
}

// trainingBalance is what the methods that minimise the cut balance by default. A worker's
// time grows with its edges: balanced by vertices alone, one part of a power-law graph gets
// nearly all of them. In mini-batches it grows with its training vertices, and that of measuring with those of the
// other splits: DistDGL (§4.1.2) balances all three. On shapes of products, reddit and arxiv that costs 0.0 to 1.3% of
// the cut in 4 and 8 parts, on cora, which has 17 to 35 training vertices per part, 19 and 11%.
const trainingBalance = "vertices:0.1,edges:0.2,train:0.1,val:0.1,test:0.1"

// streams are the methods that read the edges vertex by vertex, several times.
var streams = map[string]func(p *Problem) *stream{"ldg": ldg, "fennel": fennel}

// Streams tells whether a method reads the edges in order, with only the assignment in memory.
func Streams(method string) bool { return streams[method] != nil }

// entries in the order of --help: from the simplest to the best.
func entries() []entry {
	return []entry{
		{"random", Random, "shuffled and assigned round-robin; the baseline", "vertices", true, true},
		{"hash", Hash, "by a hash of the vertex number", "vertices", true, true},
		{"chunk", Chunk, "ranges of consecutive vertices with equal numbers of edges", "edges", false, true},
		{"ldg", LDG, "streaming, linear deterministic greedy, then refined", "vertices", false, true},
		{"fennel", Fennel, "streaming, Fennel, then refined", "vertices", false, true},
		{"bytegnn", ByteGNN, "neighbourhood blocks of training, validation and test vertices",
			"vertices,train,val,test", false, false},
		{"multilevel", Multilevel, "coarsen, cut, refine: the fewest bytes", trainingBalance, true, false},
		{"g3", G3, "multilevel, then swaps until remote vertices are even", "vertices,edges:0.1", true, false},
		{"metis", Metis, "the system's libmetis, if it is installed", trainingBalance, true, false},
		{"kaminpar", KaMinPar, "the Python package kaminpar, if it is installed; kaminpar:strong and so on: its presets", trainingBalance, true, false},
		{"ptscotch", PTScotch, "PT-Scotch under mpirun, if both are installed", trainingBalance, false, false},
	}
}

// Names lists the methods.
func Names() []string {
	var names []string
	for _, e := range entries() {
		names = append(names, e.name)
	}
	return names
}

// About is a line on what a method does.
func About(name string) string {
	e, _ := find(name)
	return e.about
}

func find(name string) (entry, error) {
	for _, e := range entries() {
		if e.name == WithoutPreset(name) {
			if e.name != name {
				e.name, e.method = name, kaminparBy(name[len(e.name)+1:])
			}
			return e, nil
		}
	}
	return entry{}, &graph.InputError{Field: "method", Found: fmt.Sprintf("%q", name), Want: "one of " +
		strings.Join(Names(), ", "), Fix: "choose one of these"}
}

// By partitions with the named method. Every part gets at least one vertex. A
// constraint that cannot be met is an Unbalanced error, and the parts
// beside it are the best found.
func By(ctx context.Context, method string, p *Problem) ([]uint32, error) {
	e, err := find(method)
	if err != nil {
		return nil, err
	}
	if err := p.check(); err != nil {
		return nil, err
	}
	if !e.cheap && p.Graph.Edges() > graph.MaxLocalEdges {
		return nil, &graph.InputError{Field: "method", Found: fmt.Sprintf("%s for %s", method, event.Tally(p.Graph.Edges(), "edge")),
			Want: "a method that streams, as all do that can take 2^32 edges or more", Fix: "use --method fennel or ldg"}
	}
	if p.Parts == 1 {
		return make([]uint32, p.Graph.Nodes()), nil
	}
	parts, err := e.method(ctx, p)
	if u, ok := err.(*Unbalanced); ok {
		parts = u.Parts
	}
	if parts != nil {
		fillEmpty(p, parts)
	}
	return parts, err
}

func (p *Problem) check() error {
	n := p.Graph.Nodes()
	if p.Parts < 1 || p.Parts > n || p.Parts > MaxParts {
		return &graph.InputError{Field: "parts", Found: fmt.Sprint(p.Parts),
			Want: fmt.Sprintf("1 to %d, so that every part has a vertex", min(n, MaxParts)),
			Fix:  "ask for fewer parts"}
	}
	for _, c := range p.Constraints {
		if c.Weight != nil && len(c.Weight) != n {
			return fmt.Errorf("constraint %q has %s for %s", c.Name, event.Tally(len(c.Weight), "weight"),
				event.Tally(n, "vertex"))
		}
	}
	return nil
}

// MaxParts bounds the parts of one partition.
const MaxParts = 1 << 16

// fillEmpty gives every part without a vertex one from the part with most. This happens
// with small graphs in many parts; a worker needs at least one vertex.
func fillEmpty(p *Problem, parts []uint32) {
	size := make([]int, p.Parts)
	for _, k := range parts {
		size[k]++
	}
	for k := range size {
		if size[k] > 0 {
			continue
		}
		most := 0
		for j := range size {
			if size[j] > size[most] {
				most = j
			}
		}
		for v := len(parts) - 1; ; v-- {
			if int(parts[v]) == most {
				parts[v] = uint32(k)
				break
			}
		}
		size[most]--
		size[k]++
	}
}

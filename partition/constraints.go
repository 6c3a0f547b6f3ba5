package partition

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"starling/graph"
)

// DefaultTolerance is the tolerance of a constraint that sets none.
const DefaultTolerance = 0.05

// ConstraintNames are what parts can be balanced by.
var ConstraintNames = []string{"vertices", "edges", "train", "val", "test", "features", "types"}

// ParseConstraints reads a list such as "vertices:0.05,edges:0.1,train" and takes
// the weights from the dataset: one per vertex, in-degrees, membership of a split,
// feature bytes. A name without a number has the default tolerance. "types" stands for a constraint per vertex type.
func ParseConstraints(text string, d *graph.Dataset) ([]Constraint, error) {
	var out []Constraint
	seen := map[string]bool{}
	for item := range strings.SplitSeq(text, ",") {
		name, number, has := strings.Cut(strings.TrimSpace(item), ":")
		c := Constraint{Name: name, Tolerance: DefaultTolerance}
		if has {
			t, err := strconv.ParseFloat(number, 64)
			if err != nil || !(t >= 0) || t > 1e6 {
				return nil, badBalance(item, "a tolerance from 0, such as vertices:0.05")
			}
			c.Tolerance = t
		}
		if seen[name] {
			return nil, badBalance(item, "each name once")
		}
		seen[name] = true
		list, err := c.expand(d)
		if err != nil {
			return nil, err
		}
		out = append(out, list...)
	}
	return out, nil
}

func badBalance(found, want string) error {
	return &graph.InputError{Field: "balance", Found: fmt.Sprintf("%q", found), Want: want,
		Fix: "list names of " + strings.Join(ConstraintNames, ", ") + ", each with a tolerance if you like"}
}

// weights of the vertices under a named constraint; nil: one each.
func weights(name string, d *graph.Dataset) ([]uint32, error) {
	switch name {
	case "vertices":
		return nil, nil
	case "edges":
		return degreeWeights(d.Graph), nil
	case "train":
		return splitWeights(name, d, d.Splits.Train)
	case "val":
		return splitWeights(name, d, d.Splits.Val)
	case "test":
		return splitWeights(name, d, d.Splits.Test)
	case "features":
		return featureWeights(d)
	}
	return nil, badBalance(name, "a name it knows")
}

func degreeWeights(g *graph.CSR) []uint32 {
	w := make([]uint32, g.Nodes())
	for v := range w {
		w[v] = uint32(g.Indptr[v+1] - g.Indptr[v])
	}
	return w
}

func splitWeights(name string, d *graph.Dataset, ids []uint32) ([]uint32, error) {
	if len(ids) == 0 {
		return nil, &graph.InputError{File: d.Dir, Field: "balance", Found: name, Want: "a split that the dataset has",
			Fix: "leave it out, or make the dataset with such a split"}
	}
	w := make([]uint32, d.Graph.Nodes())
	for _, v := range ids {
		w[v] = 1
	}
	return w, nil
}

// featureWeights are bytes; dense rows are equal, so they weigh one each.
func featureWeights(d *graph.Dataset) ([]uint32, error) {
	f := d.Features
	switch {
	case f == nil:
		return nil, &graph.InputError{File: d.Dir, Field: "balance", Found: "features",
			Want: "a dataset with features", Fix: "leave it out"}
	case f.Kind() != graph.Sparse:
		return nil, nil
	}
	w := make([]uint32, f.Rows)
	for v := range w {
		w[v] = uint32(min(8*(f.Indptr[v+1]-f.Indptr[v])+8, math.MaxUint32))
	}
	return w, nil
}

// constraints of a problem: those it has, or vertices alone.
func (p *Problem) constraints() []Constraint {
	if len(p.Constraints) > 0 {
		return p.Constraints
	}
	return []Constraint{{Name: "vertices", Tolerance: DefaultTolerance}}
}

// Limit is the most a part may weigh: the mean and its tolerance, but never less
// than the mean rounded up, which whole vertices need.
func (c *Constraint) Limit(total int64, parts int) int64 {
	mean := float64(total) / float64(parts)
	return max(int64(math.Floor(mean*(1+c.Tolerance)+1e-9)), (total+int64(parts)-1)/int64(parts))
}

// Total is the weight of n vertices.
func (c *Constraint) Total(n int) int64 {
	if c.Weight == nil {
		return int64(n)
	}
	var sum int64
	for _, w := range c.Weight {
		sum += int64(w)
	}
	return sum
}

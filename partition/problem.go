package partition

import (
	"context"
	"fmt"

	"starling/graph"
)

// Problem is a graph to partition.
type Problem struct {
	Graph *graph.CSR // in-edges; methods that need it see it as undirected
	// Symmetric says that every edge is known to have its reverse; otherwise methods that need
	// to know check all edges.
	Symmetric bool
	Parts     int
	// Seed keys every random choice. The result depends on it and on the problem,
	// never on the number of threads.
	Seed    uint64
	Threads int // 0: all cores
	// Objective is what methods that optimise minimise.
	Objective Objective
	// Constraints are to be balanced at once. None means vertices alone, within 5%.
	Constraints []Constraint
	// Splits are for methods that look at training, validation and test vertices.
	Splits graph.Splits
	// Tries is how many partitions multilevel makes and combines; 0: one.
	Tries int
	// Passes is how often a streaming method reads the edges; 0: its default.
	Passes int
	// Refine is how many passes refine what a streaming method has found; 0: none.
	Refine int
	// Hops is how far bytegnn's blocks reach, one per layer of the model; 0: two.
	Hops int
	// Limits, if set, gets how the limits were met.
	Limits *Limits
	// Scanned, if set, is called by methods that stream when they have read the rows of vertices lo to hi-1.
	Scanned func(lo, hi int)
	// Progress, if set, is called with the state of a stage.
	Progress func(stage string, done, total int64)
}

// Limits says how a method met the limits of the constraints.
type Limits struct {
	// Folded: the constraints were one weight per vertex to the method, the sum of what it has of each.
	Folded bool `json:"folded"`
	// Repaired is how many vertices were then moved out of parts over a limit, or exchanged for that.
	Repaired int64 `json:"repaired"`
}

// Objective is what a partition minimises.
type Objective uint8

const (
	// Cut: undirected edges between parts.
	Cut Objective = iota
	// Volume: the sum over parts of the remote vertices they need.
	Volume
)

// Constraint asks that no part weighs more than (1+Tolerance) times the mean.
type Constraint struct {
	Name string
	// Weight of each vertex; nil: one each.
	Weight    []uint32
	Tolerance float64
}

// Of is the weight of a vertex.
func (c *Constraint) Of(v int) int64 {
	if c.Weight == nil {
		return 1
	}
	return int64(c.Weight[v])
}

// Method partitions a graph: the part of each vertex, in 0..Parts-1.
type Method func(ctx context.Context, p *Problem) ([]uint32, error)

// Unbalanced is the error of a method that could not meet a constraint. The
// partition is the best one found.
type Unbalanced struct {
	Constraint string
	Heaviest   float64 // the heaviest part over the mean
	Allowed    float64
	Parts      []uint32
}

func (e *Unbalanced) Error() string {
	return fmt.Sprintf("constraint %q cannot be met: the heaviest part is %.3f times the mean, at most %.3f was asked for; allow more, or ask for fewer parts",
		e.Constraint, e.Heaviest, e.Allowed)
}

// Is makes an impossible constraint a user's mistake.
func (e *Unbalanced) Is(target error) bool { return target == graph.ErrInput }

func (p *Problem) report(stage string, done, total int64) {
	if p.Progress != nil {
		p.Progress(stage, done, total)
	}
}

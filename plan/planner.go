package plan

import (
	"starling/cost"
	"starling/nn"
	"starling/partition"
	"starling/sample"
	"starling/setup"
	"starling/spec"
	"starling/train"
)

// planner predicts choices on the parts of one cut.
type planner struct {
	*Options
	known    *cost.Known
	parts    *setup.Parts
	open     []*partition.Part
	method   string // "": the only one
	slowness float64
	memory   int64 // of a worker; 0: unknown
	rates    cost.Rates
	done     map[string]*dryRunOf // dry runs, by what tells them apart
	traffic  map[string][]nn.Traffic
	crossing float64 // of links between many servers, that are used at once
	all      []way
	caches   map[string]*cached // by policy and what else decides
	accesses map[string][]*sample.Access
}

// dryRunOf is a dry run that several candidates share: what differs between them follows from its counts.
type dryRunOf struct {
	demands  []cost.Demand
	settings train.Settings // that were decided for it
	err      error
}

// featureDim is how wide rows of features are; 0: there are none.
func (p *planner) featureDim() int {
	if f := p.parts.Book.Features; f != nil {
		return f.Dim
	}
	return 0
}

// cached is what a cache does to the bytes of workers.
type cached struct {
	left  []float64 // by owner: the share of the rows that others ask it for
	saved []float64 // by worker: rows of a batch that it does not ask for
	rows  []int64   // that it keeps
	width int64     // bytes of a row
}

// way is how the runs of a plan compute and send, whatever their strategy.
type way struct {
	flags    string // of training, beside those that were given
	set      func(s *spec.Spec)
	computes *cost.Compute // at these rates; nil: at the plan's
	memory   int64         // of a worker; 0: the plan's
	links    int           // that a server has to each other
}

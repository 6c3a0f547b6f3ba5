// Package switchgnn is SwitchGNN: the network multicasts rows and adds them up.
package switchgnn

import (
	"bytes"
	"os"
	"slices"

	"starling/disk"
	"starling/exchange"
	"starling/graph"
	"starling/innet"
	"starling/nn"
	"starling/train"
	"starling/train/site"
)

// Strategy is SwitchGNN (Li et al., "Accelerating Distributed Graph Learning by Using
// Collaborative In-Network Multicast and Aggregation", USENIX ATC 2025). A layer's sums over
// neighbours on other servers are made by a switch:
//
//	y_v = A_local·z + A_server·z + f_v · Σ_{u → v, other server} g_u·z_u
//
// where a reduction's factors g_u are applied at the source and f_v at the destination, so
// that the switch only adds. Each boundary vertex leaves its worker once per block, whatever
// the number of workers that need it, and each destination receives one sum per block
// (package innet). Backward the same happens along reversed edges. Inside a server rows
// travel as halo's do.
//
// Sums are of 32-bit fixed point, with an exponent that workers agree on in every exchange:
// the result is the same as halo's within innet.Bound.
var Strategy = train.Describe(train.Descriptor{
	Name: "switchgnn", Mode: train.FullGraph,
	Untyped: "weights differ by relation, and a switch can only add rows",
	Paper: &train.Paper{Title: "SwitchGNN, Li et al., ATC 2025",
		Claim: "traffic -94% with unlimited switch memory, -81% with 100 MB; epoch time up to -74%, over BNS-GCN " +
			"with p=1 on 128 simulated workers",
		Why: "the switch here is a process that shares the hosts' cores, not a Tofino at line rate; with few workers " +
			"few parts need the same vertex"},
	Exact: "yes, to the resolution of fixed point", Sends: "every boundary row once to a switch, which sends sums",
	Overlap: train.Overlap{Rows: 0.1, Gradients: 0.3},
	UseWhen: "there is a switch that adds; or to see what one would save",
	Check:   check,
}, options{SwitchMemory: "100MiB", SwitchUnits: 8, SwitchOrder: "bfs", SwitchBlocks: "auto"}, build)

type options struct {
	Switch          string `json:"switch" resume:"free" omit:"default" help:"address of a running starling switch; none: the run starts one on its own host"`
	SwitchTokenFile string `json:"switch_token_file" resume:"free" omit:"default" help:"file with the secret of the switch; needed beyond 127.0.0.1"`
	SwitchMemory    string `json:"switch_memory" resume:"free" help:"memory for aggregators of the switch that the run starts, such as 100MiB"`
	SwitchUnits     int    `json:"switch_units" resume:"free" help:"most 128-byte units of a row in a packet, 1 to 11; hardware has 1"`
	SwitchOrder     string `json:"switch_order" resume:"free" omit:"default" help:"order in which rows leave: bfs, breadth first with more neighbours first, or random, to see what that order gains"`
	SwitchBlocks    string `json:"switch_blocks" resume:"free" omit:"default" help:"how edges are divided into blocks that fit the switch: cut, the paper's, parts of a cut and of what it cut; grid, groups of destinations and of sources; auto, by which fewer rows and sums pass the switch"`
}

// Needs is what a run must have.
func (o *options) Needs() string { return "a switch that adds (--switch)" }

// Validate checks sizes.
func (o *options) Validate() error {
	if _, err := o.memory(); err != nil {
		return err
	}
	if o.SwitchOrder != "bfs" && o.SwitchOrder != "random" {
		return train.Mistake("--switch-order is %q; it must be bfs or random", o.SwitchOrder)
	}
	if !slices.Contains(innet.Divisions, innet.Division(o.SwitchBlocks)) {
		return train.Mistake("--switch-blocks is %q; it must be cut, grid or auto", o.SwitchBlocks)
	}
	if o.SwitchUnits < 1 || o.SwitchUnits > innet.MaxUnits {
		return train.Mistake("--switch-units is %d; it must be from 1 to %d", o.SwitchUnits, innet.MaxUnits)
	}
	return o.private()
}

func (o *options) memory() (int64, error) {
	b := exchange.BudgetOption{MemoryBudget: o.SwitchMemory}
	if err := b.Validate(); err != nil {
		return 0, train.Mistake("--switch-memory is %q; it must be a size such as 100MiB", o.SwitchMemory)
	}
	return b.Bytes(), nil
}

func (o *options) token() ([]byte, error) {
	if o.SwitchTokenFile == "" {
		return nil, nil
	}
	if err := o.private(); err != nil {
		return nil, err
	}
	token, err := os.ReadFile(o.SwitchTokenFile)
	if err != nil {
		return nil, train.Mistake("--switch-token-file: %v", err)
	}
	return bytes.TrimSpace(token), nil
}

// private refuses a token that other users can read. The file of a worker on another host is looked at there.
func (o *options) private() error {
	if err := disk.CheckPrivate(o.SwitchTokenFile); err != nil {
		return train.Mistake("--switch-token-file: %v", err)
	}
	return nil
}

// check refuses what a switch that can only add cannot do.
func check(o *train.Options, f train.Facts) error {
	const name, other = "--strategy switchgnn", "use gcn, sage or gin, or another --strategy"
	switch m := &o.Model; {
	case m.Attends():
		return graph.Apart(name, "--model "+m.Model, "its attention weighs every edge, and a switch can only add rows",
			other)
	case m.Model == "sage-pool":
		return graph.Apart(name, "--model sage-pool", "it takes maxima over neighbours, and a switch can only add rows",
			other)
	case m.Model == "film":
		return graph.Apart(name, "--model film", "it computes something per edge, and a switch can only add rows",
			other)
	case m.EdgeDim > 0:
		return graph.Apart(name, "--edge-features", "messages are made per edge, and a switch can only add rows",
			"leave them out, or use another --strategy")
	case f.Weighted:
		return graph.Apart(name, "a graph whose edges have weights", "a switch can only add rows",
			"use another --strategy")
	}
	return nil
}

func build(s *train.Site, o options) (train.Strategy, error) {
	w := site.Worker(s, exchange.DefaultRows, exchange.RelayOption{})
	if s.Alone {
		return nil, train.Unplanned("which rows pass the switch together")
	}
	w.NoCopies = true
	x := &strategy{w: w, setup: exchange.NewSetup(w), applied: map[nn.Reduction]bool{}}
	if err := x.prepare(o); err != nil {
		x.close()
		return nil, err
	}
	return x, nil
}

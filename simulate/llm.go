package simulate

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"

	"starling/event"
	"starling/graph"
	"starling/netsim"
	"starling/netsim/llm"
	"starling/report"
	"starling/spec"
)

// LLMOptions say which iterations of LLM training are simulated. 0 and "" leave what the model has.
type LLMOptions struct {
	Models, Schedulers                 []string
	GPUs                               []int
	Rates                              []string // of a server's links
	Links                              int
	PP, TP, EP, VirtualStages, Layers  int
	Microbatch, Microbatches, Sequence int
	Topology                           string
	TeraFLOPS, Inside                  float64 // per GPU; GB/s inside a server
	Piece                              string
	Parallel                           int // simulations at a time
	llm.Options
}

// DefaultLLM compares Hermod with the paper's baselines on the paper's network.
func DefaultLLM() LLMOptions {
	o := llm.DefaultOptions()
	return LLMOptions{Models: []string{"mixtral-8x22b"}, Schedulers: []string{"fifo", "lina", "hermod"},
		GPUs: []int{o.GPUs}, Rates: []string{"100Gbps"}, Links: 1, TeraFLOPS: o.FLOPS / 1e12, Inside: o.Inside / 1e9,
		Piece: "64MiB", Parallel: runtime.NumCPU(), Options: o}
}

// LLMTable is what simulations found.
type LLMTable struct {
	Rows []LLMRow `json:"rows"`
}

// LLMRow is one simulation.
type LLMRow struct {
	*llm.Result
	Rate string  `json:"rate"`
	Over float64 `json:"speedup"` // over the first scheduler of its model, GPUs and rate
}

// LLM runs all simulations, several at a time; done is called after each.
func LLM(ctx context.Context, o LLMOptions, done func(LLMRow)) (*LLMTable, error) {
	all, rates, err := o.simulations()
	if err != nil {
		return nil, err
	}
	t := &LLMTable{Rows: make([]LLMRow, len(all))}
	errs := make([]error, len(all))
	places := make(chan struct{}, max(1, o.Parallel))
	var wait sync.WaitGroup
	for i := range all {
		places <- struct{}{}
		wait.Go(func() {
			defer func() { <-places }()
			if errs[i] = ctx.Err(); errs[i] != nil {
				return
			}
			t.Rows[i].Rate = rates[i]
			if t.Rows[i].Result, errs[i] = llm.Simulate(all[i]); errs[i] == nil {
				done(t.Rows[i])
			}
		})
	}
	wait.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	for i := range t.Rows {
		first := &t.Rows[i-i%len(o.Schedulers)]
		t.Rows[i].Over = first.Seconds / t.Rows[i].Seconds
	}
	return t, nil
}

// simulations are one per model, number of GPUs, rate and scheduler, and the rate of each.
func (o *LLMOptions) simulations() (all []llm.Options, rates []string, err error) {
	for _, name := range o.Models {
		for _, gpus := range o.GPUs {
			for _, rate := range o.Rates {
				for _, scheduler := range o.Schedulers {
					one, err := o.one(name, gpus, rate, scheduler)
					if err != nil {
						return nil, nil, err
					}
					all, rates = append(all, one), append(rates, rate)
				}
			}
		}
	}
	return all, rates, nil
}

func (o *LLMOptions) one(name string, gpus int, rate, scheduler string) (one llm.Options, err error) {
	one = o.Options
	if one.Model, err = llm.Named(name); err != nil {
		return one, spec.Mistake("--model", fmt.Sprintf("%q", name), "one of "+strings.Join(llm.Names(), ", "), "")
	}
	if one.Policy, err = llm.PolicyNamed(scheduler); err != nil {
		return one, spec.Mistake("--scheduler", fmt.Sprintf("%q", scheduler), "one of "+
			strings.Join(llm.PolicyNames(), ", "), "")
	}
	for _, x := range []struct {
		to    *int
		value int
	}{{&one.PP, o.PP}, {&one.TP, o.TP}, {&one.EP, o.EP}, {&one.Layers, o.Layers}, {&one.Microbatch, o.Microbatch},
		{&one.Sequence, o.Sequence}, {&one.Microbatches, o.Microbatches}, {&one.VirtualStages, o.VirtualStages}} {
		if x.value != 0 {
			*x.to = x.value
		}
	}
	one.GPUs, one.FLOPS, one.Inside = gpus, o.TeraFLOPS*1e12, o.Inside*1e9
	if !slices.Contains(llm.Placements(), one.Placement) {
		return one, spec.Mistake("--placement", fmt.Sprintf("%q", one.Placement), "one of "+
			strings.Join(llm.Placements(), ", "), "")
	}
	if one.Piece, err = netsim.ParseBytes(o.Piece); err != nil {
		return one, spec.Mistake("--piece", fmt.Sprintf("%q", o.Piece), "a size", "for example 64MiB")
	}
	return one, o.network(&one, rate)
}

func (o *LLMOptions) network(one *llm.Options, rate string) (err error) {
	if o.Topology != "" {
		if one.Topology, err = netsim.ReadTopology(o.Topology); err != nil {
			return spec.Mistake("--topology", graph.Sentence(err.Error()), "a network", "docs/simulator.md lists them")
		}
		return nil
	}
	r, err := netsim.ParseRate(rate)
	if err != nil {
		return spec.Mistake("--rate", fmt.Sprintf("%q", rate), "a rate", "for example 100Gbps")
	}
	one.Topology = one.Network(r, o.Links)
	return nil
}

// JSON writes the rows.
func (t *LLMTable) JSON(path string, stdout io.Writer) error {
	return report.WriteJSON(t, path, stdout)
}

// String is a table.
func (t *LLMTable) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-14s %5s %8s  %-17s %12s %12s %8s %10s\n", "model", "GPUs", "link", "scheduler", "iteration",
		"tokens/s", "speed-up", "computing")
	for i := range t.Rows {
		b.WriteString(t.Rows[i].String())
	}
	return b.String()
}

// String is the row in its table.
func (r LLMRow) String() string {
	over := "-"
	if r.Over > 0 {
		over = fmt.Sprintf("%.2fx", r.Over)
	}
	line := fmt.Sprintf("%-14s %5d %8s  %-17s %12s %12s %8s %9.0f%%", r.Model, r.Result.GPUs, r.Rate, r.Scheduler,
		report.Seconds(r.Seconds), event.Count(int64(r.Tokens)), over, 100*r.Computing)
	if c := r.Core; c != nil {
		line += fmt.Sprintf("  %.1f coflows at a spine, at most %d", c.Mean, c.Most)
		if q := c.Queued; q != nil {
			line += fmt.Sprintf("; two or more in %.1f%% of its ports' queues, and %.1f%% of a leaf's", 100*q.Core.Shared,
				100*q.Leaf.Shared)
		}
	}
	return line + "\n"
}

// LLMModels and LLMSchedulers are the names that there are.
func LLMModels() []string { return llm.Names() }

// LLMSchedulers are the orders of transfers that can be compared.
func LLMSchedulers() []string { return llm.PolicyNames() }

package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"starling/cost"
	"starling/graph"
	"starling/spec"
	"starling/train"
)

// Options say what to plan for.
type Options struct {
	spec.Spec
	Rate, Delay  string   // of links between servers; "": as measured
	Sharing      int      // workers on one machine; 0: as on one server
	Memory       string   // of a worker; "": what is free here, shared
	RatesFile    string   // "": this user's
	Measure      bool     // the rates again
	Approximate  bool     // may be picked
	Ways         bool     // also the GPUs and networks of this host that were not asked for
	Partitioners []string // to try with a dataset
	Strategies   []string // only these, as comparisons write them; none: all with the options that plans try
	Links        LinkOptions
	All          bool // choices are printed, with what was left out and why
	HTML         string
	Given        []string // flags of training as they were given, for commands

	slowness float64           // of the model's steps, where a test gives it
	links    []cost.ServerLink // that the file has
	given    train.Settings    // of strategies: each choice takes those that are for it
}

// Default is a plan without any flag.
func Default() Options { return Options{Spec: spec.Default()} }

// complete checks the settings that a plan is for.
func (o *Options) complete() error {
	o.given, o.Settings = o.Settings, nil
	if err := cmp.Or(o.CheckValues(), o.Complete()); err != nil {
		return err
	}
	of := o.Spec
	of.Settings = o.given
	o.Settings = of.ForStrategy(o.Strategy).Settings
	if err := o.checkSettings(); err != nil {
		return err
	}
	if o.Cluster.Workers < 2 {
		return spec.Mistake("--workers", fmt.Sprint(o.Cluster.Workers), "how many workers to plan for",
			"for example --workers 4 --servers 2, or a partition folder")
	}
	if o.Cluster.Servers < 2 && (o.Rate != "" || o.Delay != "") {
		return graph.Apart("--rate", fmt.Sprintf("all %d workers on one server", o.Cluster.Workers),
			"it is the rate of links between servers, and there are none", "group the workers with --servers, or leave it out")
	}
	if o.Sharing == 0 {
		o.Sharing = o.Cluster.Workers / max(o.Cluster.Servers, 1)
	}
	if o.Sharing < 1 || o.Sharing > o.Cluster.Workers {
		return spec.Mistake("--sharing", fmt.Sprint(o.Sharing), fmt.Sprintf("1 to %d workers per machine",
			o.Cluster.Workers), "")
	}
	return nil
}

// checkSettings refuses values that no strategy takes, and options that none of the mode has.
func (o *Options) checkSettings() error {
	if err := train.CheckSettings(o.given); err != nil {
		return err
	}
	for _, option := range train.AllOptions() {
		of := func(name string) bool { return slices.Contains(train.NamesOf(train.Mode(o.Mode)), name) }
		if _, given := o.given[option.Name]; given && !slices.ContainsFunc(option.Strategies, of) {
			return graph.Apart(option.Flag(), "--mode "+o.Mode, "a setting without effect", "it is only for --strategy "+
				strings.Join(option.Strategies, ", "))
		}
	}
	return nil
}

// methods are how the dataset is cut; one empty: it is a partition already.
func (o *Options) methods() []string {
	switch {
	case o.PartitionFolder() != "":
		return []string{""}
	case len(o.Partitioners) > 0:
		return o.Partitioners
	}
	return []string{o.Cluster.Partitioner}
}

// LinkOptions say that the hosts of a run measure the links between them: a process on each joins the plan.
type LinkOptions struct {
	Measure   bool   // wait for workers, and let them measure
	Listen    string // where they join; "": any port of 127.0.0.1
	TokenFile string
	TLS       string
	Insecure  bool
	Timeout   int // seconds until all must have joined
}

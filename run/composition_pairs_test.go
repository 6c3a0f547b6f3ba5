package run

import (
	"slices"

	"starling/coflow"
	"starling/nn"
	"starling/partition"
	"starling/spec"
	"starling/train"
)

// What goes together: the dimensions in which runs differ, and for every pair of their values whether a run may
// have both. The spec's validation answers all of it by the strategies' descriptors: nothing is listed here that
// they do not say.

// dimension is something that runs differ in.
type dimension struct {
	Name, Flag string
	Values     []dimensionValue
}

// dimensionValue is a choice in a dimension, other than to leave it at its default.
type dimensionValue struct {
	Name string
	set  func(s *spec.Spec)
}

// The names of dimensions that others depend on.
const (
	strategyName = "strategy"
	samplerName  = "sampler"
)

// oneWorker is the strategy of one worker.
const oneWorker = "one worker"

// dimensions are all of them. A value stands for its flag as users give it, with what it cannot do
// without: --relay has servers, and rows without zeros a model that sends some.
func dimensions() []dimension {
	return []dimension{
		{strategyName, "--strategy", strategies()},
		{"model", "--model", each(nn.Models, func(s *spec.Spec, v string) { s.Model.Name = v })},
		{"task", "--task", each(nn.Tasks, func(s *spec.Spec, v string) { s.Task = v })},
		{samplerName, "--sampler", each(but(spec.Samplers(), "neighbour"),
			func(s *spec.Spec, v string) { s.Batches.Sampler = v })},
		{"dtype", "--dtype", each([]string{"f32", "bf16", "f64"},
			func(s *spec.Spec, v string) { s.Machine.DType = v })},
		{"device", "--device", each([]string{"cpu", "cuda"}, func(s *spec.Spec, v string) { s.Machine.Device = v })},
		{"codec", "--wire-dtype, --pull-dtype, --sparse-rows", codecs()},
		{"columns", "--dgs, --drop-features", columns()},
		{"cache", "--cache", each([]string{"probability", "degree", "frequency", "s3fifo"}, option("cache"))},
		{"relay", "--relay", []dimensionValue{{"relay", func(s *spec.Spec) {
			s.Cluster.Servers = 2
			option("relay")(s, "true")
		}}}},
		{"partitioner", "--partitioner", each(slices.DeleteFunc(partition.Names(), partition.IsEngine),
			func(s *spec.Spec, v string) { s.Cluster.Partitioner = v })},
		{"transport", "--transport", transports()},
		{"send order", "--send-order", each(coflow.OrderNames(),
			func(s *spec.Spec, v string) { s.Cluster.SendOrder = v })},
		{"paths", "--paths", []dimensionValue{{"paths", func(s *spec.Spec) { s.Cluster.Paths = "auto" }}}},
		{"trust", "--token-file, --tls", []dimensionValue{{"token", func(s *spec.Spec) { s.Launch.TokenFile = "token" }},
			{"tls", func(s *spec.Spec) { s.Launch.TLS = "certs" }}}},
	}
}

// strategies are all strategies, each on four workers, and last one worker.
func strategies() (out []dimensionValue) {
	for _, d := range train.Strategies() {
		out = append(out, dimensionValue{d.Name, func(s *spec.Spec) {
			s.Strategy, s.Mode, s.Cluster.Workers = d.Name, string(d.Mode), 4
		}})
	}
	return append(out, dimensionValue{oneWorker, func(s *spec.Spec) { s.Strategy, s.Cluster.Workers = "none", 1 }})
}

// codecs are the forms in which rows travel, by the option that the strategy has for it.
func codecs() (out []dimensionValue) {
	for _, form := range []string{"bf16", "int8"} {
		out = append(out, dimensionValue{form, func(s *spec.Spec) {
			if name := "pull_dtype"; has(s, name) {
				option(name)(s, form)
				return
			}
			option("wire_dtype")(s, form)
		}})
	}
	return append(out, dimensionValue{"sparse", func(s *spec.Spec) {
		s.Model.Layers = 3
		option("sparse_rows")(s, "true")
	}})
}

func columns() []dimensionValue {
	return []dimensionValue{
		{"dgs", func(s *spec.Spec) { option("dgs")(s, "true") }},
		{"dgs of features", func(s *spec.Spec) { option("dgs")(s, "true"); option("dgs_masks")(s, "features") }},
		{"drop features", func(s *spec.Spec) { option("drop_features")(s, "0.5") }},
	}
}

// transports are of processes, but for inprocess; MPI starts them.
func transports() []dimensionValue {
	return each([]string{"tcp", "shm", "inprocess", "mpi"}, func(s *spec.Spec, v string) {
		s.Cluster.Transport, s.Launch.NoLaunch = v, s.Launch.NoLaunch || v == "mpi"
	})
}

func each(values []string, set func(s *spec.Spec, value string)) (out []dimensionValue) {
	for _, v := range values {
		out = append(out, dimensionValue{v, func(s *spec.Spec) { set(s, v) }})
	}
	return out
}

func but(list []string, left string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(v string) bool { return v == left })
}

// option sets one of strategies. A value that it does not have changes nothing.
func option(name string) func(s *spec.Spec, value string) {
	return func(s *spec.Spec, value string) { s.Set(name, value) }
}

// has reports whether the strategy has an option.
func has(s *spec.Spec, name string) bool {
	d := train.Find(s.StrategyName())
	return d != nil && slices.ContainsFunc(d.Options(), func(o *train.Option) bool { return o.Name == name })
}

// composedRun is a value of some of the dimensions, by their index; -1: its default.
type composedRun []int

// Spec is the spec of a run. Strategies go first, since others depend on them.
func (r composedRun) Spec(dims []dimension) spec.Spec {
	s := spec.Default()
	s.Cluster.Workers, s.Strategy = 1, "none"
	for d, v := range r {
		if v >= 0 {
			dims[d].Values[v].set(&s)
		}
	}
	if s.Strategy == "none" && r[at(dims, samplerName)] >= 0 {
		s.Mode = string(train.MiniBatch)
	}
	return s
}

func at(dims []dimension, name string) int {
	return slices.IndexFunc(dims, func(d dimension) bool { return d.Name == name })
}

// check is why a run may not be; nil: it may.
func (r composedRun) check(dims []dimension) error {
	s := r.Spec(dims)
	return s.Validate()
}

// valuePair is a value of each of two dimensions.
type valuePair struct{ A, U, B, V int }

// run has the pair, and a strategy if none is in it.
func (p valuePair) run(dims []dimension, strategy int) composedRun {
	r := make(composedRun, len(dims))
	for i := range r {
		r[i] = -1
	}
	r[at(dims, strategyName)] = strategy
	r[p.A], r[p.B] = p.U, p.V
	return r
}

// refused is why no run has both values of a pair; nil: one does. Where several strategies refuse
// it, the reason is from a run that has most of the pair's values by themselves.
func (p valuePair) refused(dims []dimension) (reason error) {
	strategy := at(dims, strategyName)
	if p.A == strategy || p.B == strategy {
		return p.run(dims, -1).check(dims)
	}
	most := -1
	for v := range dims[strategy].Values {
		err := p.run(dims, v).check(dims)
		if err == nil {
			return nil
		}
		has := 0
		for _, one := range []valuePair{{p.A, p.U, p.A, p.U}, {p.B, p.V, p.B, p.V}} {
			if one.run(dims, v).check(dims) == nil {
				has++
			}
		}
		if has > most {
			reason, most = err, has
		}
	}
	return reason
}

// eachPair calls do for every pair of values of two dimensions.
func eachPair(dims []dimension, a, b int, do func(p valuePair)) {
	for u := range dims[a].Values {
		for v := range dims[b].Values {
			do(valuePair{a, u, b, v})
		}
	}
}

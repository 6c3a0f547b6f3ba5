package batch

import (
	"starling/graph"
	"starling/train"
)

// Refusal refuses what a strategy of mini-batches does not go together with.
type Refusal func(o *train.Options, b *Options, f train.Facts) error

// Refusing is the check of a strategy: what all refuse, and what it refuses itself.
func Refusing(own ...Refusal) func(o *train.Options, f train.Facts) error {
	all := append([]Refusal{checkTyped, checkNorm, checkSampler, checkRoots, checkRows, checkCache, checkEdges}, own...)
	return func(o *train.Options, f train.Facts) error {
		for _, check := range all {
			if err := check(o, (*Options)(o.Batches), f); err != nil {
				return err
			}
		}
		return nil
	}
}

// Named is the strategy of a run in a message.
func Named(o *train.Options) string { return "--strategy " + o.Strategy.Name() }

func checkNorm(o *train.Options, _ *Options, _ train.Facts) error {
	if o.Model.Norm != "batch" {
		return nil
	}
	return graph.Apart(Named(o), "--norm batch", "the norm would be over the rows of each worker's batch by itself",
		"use --norm layer or none with several workers")
}

// checkSampler refuses what the sampler cannot do.
func checkSampler(o *train.Options, b *Options, _ train.Facts) error {
	switch {
	case o.Pairs != nil && b.Sampler != "neighbour":
		return graph.Apart("--sampler "+b.Sampler, "pairs of vertices", "batches of pairs are drawn no other way",
			"use --sampler neighbour")
	case o.Model.GraphLayers() == 0 && b.Sampler != "neighbour":
		return graph.Apart("--sampler "+b.Sampler, "--model "+o.Model.Model+" on several workers",
			"it draws what graph layers look at, and there are none", "use --sampler neighbour")
	case b.Temporal != "":
		return b.checkTemporal(o)
	case b.layered() && len(b.Fanouts) != o.Model.GraphLayers():
		return train.Mistake("%d fanouts for a model of %d graph layers; give one per layer", len(b.Fanouts),
			o.Model.GraphLayers())
	}
	return b.checkWeighs(*o)
}

// checkRoots refuses batches that each worker draws by itself where they are of all workers together.
func checkRoots(o *train.Options, b *Options, _ train.Facts) error {
	r, _ := train.OptionOf[RootsOption](o.Strategy)
	if r.Roots != "local" || b.ByHops() || b.Sampler == "fastgcn" {
		return nil
	}
	return graph.Apart("--roots local", "--sampler "+b.Sampler, "it divides training vertices, and the sampler draws "+
		"batches of all workers together", "use --roots owner")
}

// checkRows refuses options of rows that are pulled where these could not follow them.
func checkRows(o *train.Options, _ *Options, f train.Facts) error {
	p, _ := train.OptionOf[PullOptions](o.Strategy)
	c, _ := train.OptionOf[CacheOptions](o.Strategy)
	switch {
	case p.PullDType != "" && p.PullDType != "none" && f.Features != "" && f.Features != graph.Dense:
		return graph.Apart("--pull-dtype "+p.PullDType, string(f.Features)+" features",
			"it rounds float32, and they are stored "+
				"in fewer bytes already", "leave it out")
	case c.given(o.Strategy) && f.Features == graph.Sparse:
		return graph.Apart("--cache "+c.Cache, "sparse features", "a cache has rows of one width", "leave it out, or "+
			"import the features as dense ones")
	}
	return nil
}

// checkCache refuses probabilities of what batches need where they are not known.
func checkCache(o *train.Options, b *Options, _ train.Facts) error {
	c, _ := train.OptionOf[CacheOptions](o.Strategy)
	if c.Cache != Probability {
		return nil
	}
	what := ""
	switch {
	case b.Sampler != "neighbour":
		what = "--sampler " + b.Sampler
	case b.Weighted:
		what = "--weighted"
	case b.Temporal != "":
		what = "--temporal " + b.Temporal
	case o.Pairs != nil:
		what = "pairs of vertices"
	case o.Model.Typed != nil:
		what = "a typed graph"
	default:
		return nil
	}
	return graph.Apart("--cache probability", what, "it is computed of neighbours that are drawn evenly around "+
		"training vertices", "use --cache frequency, which counts draws")
}

// checkEdges refuses to keep in-edges where draws depend on more than these.
func checkEdges(o *train.Options, b *Options, _ train.Facts) error {
	c, _ := train.OptionOf[CacheOptions](o.Strategy)
	what := ""
	switch {
	case c.Edges == "" || !c.KeepsEdges():
		return nil
	case b.Temporal != "":
		what = "--temporal " + b.Temporal
	case b.Sampler == "pinsage" || b.Sampler == "saint-walk":
		what = "--sampler " + b.Sampler
	default:
		return nil
	}
	return graph.Apart("--cache-edges "+c.Edges, what, "only owners can draw by times, and along walks", "leave it out")
}

// NotProbable refuses a cache by probabilities, for strategies whose workers' seed vertices are known batch by batch.
func NotProbable(o *train.Options, _ *Options, _ train.Facts) error {
	if c, _ := train.OptionOf[CacheOptions](o.Strategy); c.Cache != Probability {
		return nil
	}
	return graph.Apart(Named(o), "--cache probability", "which seed vertices a worker computes is known batch by batch",
		"use --cache frequency, which counts draws")
}

// WholeBatches refuses the sampler whose batches are each worker's own, for strategies that divide a batch themselves.
func WholeBatches(o *train.Options, b *Options, _ train.Facts) error {
	if b.Sampler != "cluster-local" {
		return nil
	}
	return graph.Apart(Named(o), "--sampler "+b.Sampler, "it divides the batch of all workers, and each draws from "+
		"its own part", "use --sampler cluster, or --strategy "+o.Strategy.Descriptor.Baseline)
}

// NotOnDisk refuses to read features ahead of batches, for strategies that bring rows in a way of their own.
func NotOnDisk(o *train.Options, _ *Options, _ train.Facts) error {
	if o.Disk == nil {
		return nil
	}
	return graph.Apart(Named(o), "--features-on disk", "it brings rows in a way of its own",
		"use --features-on host, or another --strategy")
}

// NeighbourOnly refuses other samplers, for strategies that draw hop by hop.
func NeighbourOnly(o *train.Options, b *Options, _ train.Facts) error {
	if b.Sampler == "neighbour" {
		return nil
	}
	return graph.Apart(Named(o), "--sampler "+b.Sampler, "it draws hop by hop, as --sampler neighbour does",
		"use --sampler neighbour, or --strategy "+o.Strategy.Descriptor.Baseline)
}

// SumsFirst refuses models whose first layer is no sum over rows of features.
func SumsFirst(o *train.Options, _ *Options, _ train.Facts) error {
	if o.Model.SplitsFirst() {
		return nil
	}
	return graph.Apart(Named(o), BeyondSum(o), "its first layer is added up from parts, so that it must be a sum over "+
		"neighbours' features", "use gcn, sage or gin, without --train-eps and --edge-features, or --strategy "+
		o.Strategy.Descriptor.Baseline)
}

// BeyondSum is what makes the first layer of a model more than a sum.
func BeyondSum(o *train.Options) string {
	m := &o.Model
	switch {
	case m.Model == "gin" && m.EdgeDim > 0:
		return "--edge-features"
	case m.Model == "gin":
		return "--train-eps"
	}
	return "--model " + m.Model
}

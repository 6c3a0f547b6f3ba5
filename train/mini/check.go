package mini

import (
	"fmt"

	"starling/graph"
	"starling/train"
)

// refusal is one of what a strategy of mini-batches does not go together with; nil: none.
type refusal func(o *train.Options, b *Options, f train.Facts) error

// refusing is the check of a strategy: what all refuse, and what it refuses itself.
func refusing(own ...refusal) func(o *train.Options, f train.Facts) error {
	all := append([]refusal{checkNorm, checkSampler, checkRoots, checkEmbeddings, checkRows, checkDGS}, own...)
	return func(o *train.Options, f train.Facts) error {
		b, ok := o.Batches.(Options)
		if !ok {
			return fmt.Errorf("settings of mini-batches are a %T", o.Batches)
		}
		for _, check := range all {
			if err := check(o, &b, f); err != nil {
				return err
			}
		}
		return nil
	}
}

// named is the strategy of a run in a message.
func named(o *train.Options) string { return "--strategy " + o.Strategy.Name() }

func checkNorm(o *train.Options, _ *Options, _ train.Facts) error {
	if o.Model.Norm != "batch" {
		return nil
	}
	return graph.Apart(named(o), "--norm batch", "the norm would be over the rows of each worker's batch by itself",
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
	case b.layered() && len(b.Fanouts) != o.Model.GraphLayers():
		return train.Mistake("%d fanouts for a model of %d graph layers; give one per layer", len(b.Fanouts),
			o.Model.GraphLayers())
	}
	return b.checkWeighs(*o)
}

// checkRoots refuses batches that each worker draws by itself where they are of all workers together.
func checkRoots(o *train.Options, b *Options, _ train.Facts) error {
	r, _ := train.OptionOf[RootsOption](o.Strategy)
	if r.Roots != "local" || b.Sampler == "neighbour" || b.Sampler == "fastgcn" {
		return nil
	}
	return graph.Apart("--roots local", "--sampler "+b.Sampler, "it divides training vertices, and the sampler draws "+
		"batches of all workers together", "use --roots owner")
}

// checkEmbeddings refuses features that learnt rows cannot stand beside.
func checkEmbeddings(o *train.Options, _ *Options, f train.Facts) error {
	switch {
	case o.Embeddings == nil:
	case f.Features == graph.Sparse:
		return graph.Apart("--learn-embeddings", "sparse features", "learnt rows stand beside dense ones",
			"import the features as dense ones, or leave them out")
	case o.Model.InputDropout:
		return graph.Apart("--learn-embeddings", "--input-dropout", "learnt rows are not dropped",
			"leave one of them out")
	}
	return nil
}

// checkRows refuses options of rows that are pulled where these could not follow them.
func checkRows(o *train.Options, _ *Options, f train.Facts) error {
	p, _ := train.OptionOf[PullOptions](o.Strategy)
	c, _ := train.OptionOf[CacheOptions](o.Strategy)
	d, _ := train.OptionOf[DGSOptions](o.Strategy)
	switch {
	case p.PullDType != "" && p.PullDType != "none" && f.Features != "" && f.Features != graph.Dense:
		return graph.Apart("--pull-dtype "+p.PullDType, string(f.Features)+" features",
			"it rounds float32, and they are stored "+
				"in fewer bytes already", "leave it out")
	case c.given(o.Strategy) && f.Features == graph.Sparse:
		return graph.Apart("--cache "+c.Cache, "sparse features", "a cache has rows of one width", "leave it out, or "+
			"import the features as dense ones")
	case c.Cache == "s3fifo" && (d.DGS && d.columns() || d.DropFeatures > 0):
		return graph.Apart("--cache s3fifo", d.what(), "it keeps rows as they were pulled, and the columns that are "+
			"pulled change", "use --cache frequency or degree")
	}
	return nil
}

// checkDGS refuses what explanations are not for.
func checkDGS(o *train.Options, b *Options, _ train.Facts) error {
	d, _ := train.OptionOf[DGSOptions](o.Strategy)
	switch {
	case !d.DGS:
	case b.Sampler != "neighbour":
		return graph.Apart("--dgs", "--sampler "+b.Sampler,
			"it guides draws, and the sampler has probabilities of its "+
				"own", "use --sampler neighbour, or leave out --dgs")
	case d.nodes() && (b.Replace || b.Weighted):
		return graph.Apart("--dgs", "--replace or --weighted", "it draws neighbours by their masks, without "+
			"replacement", "use --dgs-masks features, or leave out the others")
	case o.Pairs != nil:
		return graph.Apart("--dgs", "pairs of vertices", "it explains predictions of vertices, and pairs are learnt "+
			"without any", "leave it out")
	case o.Embeddings != nil:
		return graph.Apart("--dgs", "--learn-embeddings", "it explains by features, which learnt rows stand beside",
			"leave out one of the two")
	case o.Model.EdgeDim > 0:
		return graph.Apart("--dgs", "--edge-features", "it links pooled vertices, whose edges have no features",
			"leave out one of the two")
	}
	return nil
}

// neighbourOnly refuses other samplers, for strategies that draw hop by hop.
func neighbourOnly(o *train.Options, b *Options, _ train.Facts) error {
	if b.Sampler == "neighbour" {
		return nil
	}
	return graph.Apart(named(o), "--sampler "+b.Sampler, "it draws hop by hop, as --sampler neighbour does",
		"use --sampler neighbour, or --strategy distdgl")
}

// sumsFirst refuses models whose first layer is no sum over rows of features as they are.
func sumsFirst(o *train.Options, _ *Options, _ train.Facts) error {
	if o.Model.SplitsFirst() {
		return nil
	}
	return graph.Apart(named(o), beyondSum(o), "its first layer is added up from parts, so that it must be a sum over "+
		"neighbours' features as they are", "use gcn, sage or gin, without --input-dropout, --train-eps and "+
		"--edge-features, or --strategy "+o.Strategy.Descriptor.Baseline)
}

// beyondSum is what makes the first layer of a model more than a sum.
func beyondSum(o *train.Options) string {
	m := &o.Model
	switch {
	case m.InputDropout && m.Dropout > 0:
		return "--input-dropout"
	case m.Model == "gin" && m.EdgeDim > 0:
		return "--edge-features"
	case m.Model == "gin":
		return "--train-eps"
	}
	return "--model " + m.Model
}

// cooperates refuses what a server cannot share.
func cooperates(o *train.Options, b *Options, _ train.Facts) error {
	c, _ := train.OptionOf[cobatchOptions](o.Strategy)
	switch {
	case o.Model.GraphLayers() == 0:
		return graph.Apart(named(o), "--model "+o.Model.Model,
			"the workers of a server share rows of graph layers, and there are none", "use --strategy distdgl")
	case b.Sampler == "cluster-local":
		return graph.Apart(named(o), "--sampler cluster-local", "it has one batch per server, and the sampler one per "+
			"worker", "use --sampler cluster, or --strategy distdgl")
	case c.EAS != "" && b.Sampler != "neighbour":
		return graph.Apart("--eas", "--sampler "+b.Sampler, "it draws batches by itself", "leave out one of the two")
	case c.EAS != "" && o.Model.Model == "gin" && o.Model.EdgeDim > 0:
		return graph.Apart("--eas", "--edge-features of gin", "it makes kept edges heavier, and gin with features of "+
			"edges does not weigh them", "leave out --eas, or use --model gat")
	}
	return nil
}

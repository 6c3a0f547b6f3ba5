// Package distdgl is mini-batch training where the data lives: the pipeline as it is, and with a cache.
package distdgl

import (
	"cmp"

	"starling/train"
	"starling/train/batch"
	"starling/train/batch/dgs"
	"starling/train/batch/embeddings"
	"starling/train/batch/pairs"
)

// Strategy is mini-batch training where the data lives (Zheng et al., "DistDGL", IA3 2020): a
// batch's seed vertices are divided over the workers (--roots), each worker draws the blocks
// of its own from the owners of vertices and pulls their features, and gradients are
// all-reduced after every step:
//
//	g = Σ_workers Σ_seeds ∇loss(seed) / batch size
//
// Draws are functions of (seed, epoch, batch, layer, vertex), so that with --roots owner or
// random g is the gradient of one worker. Batches are drawn and pulled on other cores before they are
// needed, and the all-reduce overlaps the backward pass. Measuring is layer by layer over the
// whole graph, as full-graph training does it.
var Strategy = train.Describe(train.Descriptor{
	Name: "distdgl", Mode: train.MiniBatch, Typical: true, Pairs: true,
	Paper: &train.Paper{Title: "DistDGL, Zheng et al., IA3 2020",
		Claim: "13 s per epoch of ogbn-papers100M on 16 machines; min-cut partitions 2.14x over random",
		Why:   "the gain of a partition is what fewer remote rows save, which depends on the link",
		Own:   "distdgl+local"},
	Exact: "`--roots owner` and `random`", Sends: "sampled edges and the features of a batch's remote vertices",
	UseWhen: "as a baseline, or no host has memory for rows of others",
	Check:   batch.Refusing(embeddings.Check, dgs.Check),
	Overlap: train.Overlap{Ahead: true},
}, cachedBy("none"), build)

// Salient is the same with a cache, on every worker, of the rows that its batches need with the highest probability,
// which is computed before training (Kaler et al., "Communication-Efficient Graph Neural Networks with Probabilistic
// Neighborhood Expansion Analysis and Caching", MLSys 2023: SALIENT++).
var Salient = train.Describe(train.Descriptor{
	Name: "salient", Mode: train.MiniBatch, Typical: true, Pairs: true, Baseline: "distdgl",
	Paper: &train.Paper{Title: "SALIENT++, Kaler et al., MLSys 2023",
		Claim: "the speed of replicated features with a cache of a fraction of them",
		Why:   "a cache saves what the link would have taken, and ours is beside parts of other hosts"},
	Exact: "`--roots owner` and `random`", Sends: "`distdgl`'s without the rows in the cache",
	UseWhen: "batches cannot be drawn ahead, as with `--dgs`: it is then the default of mini-batches",
	Check:   batch.Refusing(embeddings.Check, dgs.Check),
	Overlap: train.Overlap{Ahead: true},
}, cachedBy("auto"), build)

// Lookahead is the same with a cache of the rows that the next batches need first. Every draw is a function of the
// seed, so that a window of batches is drawn before their rows are fetched, and the cache evicts what is needed last
// (Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal 1966). RapidGNN
// (2025) knows batches by the seeds of its samplers too, and keeps the rows that an epoch needs most often.
var Lookahead = train.Describe(train.Descriptor{
	Name: "lookahead", Mode: train.MiniBatch, Default: true, Typical: true, Pairs: true, Baseline: "distdgl",
	Lacks: lacks, Instead: Salient.Name,
	Paper: &train.Paper{Title: "RapidGNN, 2025", Claim: "9.7x to 15x fewer fetches, 2.5x to 3.0x the throughput",
		Why: "a cache can save at most its own rows per batch; what that is of a batch depends on the graph and the " +
			"batch size"},
	Exact:   "`--roots owner` and `random`",
	Sends:   "`distdgl`'s without the rows that the next batches were known to need",
	UseWhen: "the full graph does not fit, or many small steps learn faster: it is the default of mini-batches",
	Check:   batch.Refusing(embeddings.Check, dgs.Check),
	Overlap: train.Overlap{Ahead: true},
}, cachedBy(batch.Belady), build)

// lacks names what batches that are drawn ahead cannot have: columns and draws by what is learnt, or other caches.
func lacks(c train.Choice) string {
	d, _ := train.OptionOf[dgs.Options](c)
	cache, _ := train.OptionOf[batch.CacheOptions](c)
	switch {
	case d.DGS:
		return "--dgs"
	case d.DropFeatures > 0:
		return "--drop-features"
	case cache.Cache != batch.Belady:
		return "--cache " + cache.Cache
	}
	return ""
}

type options struct {
	batch.RootsOption
	dgs.Options
	batch.PullOptions
	batch.CacheOptions
}

// cachedBy are the options with rows that travel as they are.
func cachedBy(cache string) options {
	return options{batch.RootsOption{Roots: "owner"}, dgs.Off, batch.AsTheyAre, batch.CachedBy(cache)}
}

// Like is the strategy with other defaults of these options.
func (o *options) Like() string { return Strategy.Name }

// Validate refuses settings that make no sense.
func (o *options) Validate() error { return cmp.Or(o.Options.Validate(), o.CacheOptions.Validate()) }

func build(s *train.Site, o options) (train.Strategy, error) {
	return batch.New(s, batch.Setting{Roots: o.Roots, PullDType: o.PullDType}, o.CacheOptions, nil,
		embeddings.New(s), pairs.New(s), dgs.New(s, o.Options))
}

package main

import "github.com/spf13/pflag"

// otherSpellings of flags mean the same: British ones, and the words of other libraries. Help shows the first.
var otherSpellings = map[string]string{
	"symmetrise": "symmetrize", "undirected": "symmetrize", "to-undirected": "symmetrize",
	"standardise": "standardize", "row-normalise": "row-normalize", "optimiser": "optimizer",
	"learning-rate": "lr", "num-layers": "layers", "num-epochs": "epochs", "num-workers": "workers",
	"hidden-dim": "hidden", "hidden-channels": "hidden", "num-heads": "heads", "wd": "weight-decay",
	"num-neighbors": "fanout", "neighbors": "fanout", "neighbours": "fanout", "aggr": "aggregator",
}

// spelling is the name of a flag under any of its spellings.
func spelling(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if known, ok := otherSpellings[name]; ok {
		name = known
	}
	return pflag.NormalizedName(name)
}

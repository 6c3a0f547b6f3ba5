package train

import (
	"strings"

	"starling/graph"
	"starling/partition"
)

// Facts are what is known of a run's workers and data, beside its options. What is not known
// yet is zero, and checked again when it is.
type Facts struct {
	Workers, Servers int
	Weighted         bool // edges of the graph have weights
	// Features is how those of vertices are stored, as graph.Dense; none: not known.
	Features graph.FeatureKind
}

// FactsOf is what a partition tells.
func FactsOf(b *partition.Book) Facts {
	f := Facts{Workers: b.Parts, Servers: max(b.Servers, 1), Weighted: b.Weighted}
	if b.Features != nil {
		f.Features = b.Features.Kind
	}
	return f
}

// Check refuses what does not go together with the strategy of a run: a pure function, so that
// it can be asked before anything is started, and without any data.
func Check(o *Options, f Facts) error {
	d := o.Strategy.Descriptor
	if d == nil {
		return nil
	}
	name := "--strategy " + d.Name
	switch {
	case d.Mode == MiniBatch && o.Batches == nil:
		return graph.Apart(name, "--mode full", "it trains on mini-batches",
			"use --mode mini, or one of the strategies "+
				strings.Join(NamesOf(FullGraph), ", "))
	case o.Pairs != nil && !d.Pairs && (len(o.Pairs.Relations) == 0 || d.Mode == MiniBatch):
		return graph.Apart(name, "pairs of vertices", "it learns from labels of vertices", "use one of the strategies "+
			strings.Join(NamesOfPairs(), ", "))
	case o.Embeddings != nil && !d.Pairs:
		return graph.Apart(name, "--learn-embeddings", "it has no table of learnt rows",
			"use --mode mini and one of the "+
				"strategies "+strings.Join(NamesOfPairs(), ", "))
	case o.Model.Typed != nil && d.Untyped != "":
		return graph.Apart(name, "a typed graph", d.Untyped, "use one of the strategies "+
			strings.Join(namesOfTyped(), ", "))
	case d.Check == nil:
		return nil
	}
	return d.Check(o, f)
}

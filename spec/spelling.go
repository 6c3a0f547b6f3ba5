package spec

import (
	"slices"
	"strings"

	"starling/train"
)

// otherWords for values mean the same: British spellings, and the names of papers and other libraries.
var otherWords = map[string]string{
	"graphsage": "sage", "graphsage-pool": "sage-pool", "gatv2conv": "gatv2", "gcnconv": "gcn", "sageconv": "sage",
	"gatconv": "gat", "ginconv": "gin", "gnn-film": "film", "r-gcn": "rgcn", "rgcnconv": "rgcn", "r-gat": "rgat",
	"rgatconv": "rgat", "hgtconv": "hgt", "simple-hgn": "simplehgn", "simple_hgn": "simplehgn",
	"neighbor": "neighbour", "neighbors": "neighbour", "neighbours": "neighbour", "node-wise": "neighbour",
	"cluster-gcn": "cluster", "clustergcn": "cluster", "minibatch": "mini", "mini-batch": "mini", "full-graph": "full",
	"classification": "classify", "multi-label": "multilabel", "link-prediction": "link", "float32": "f32",
	"bfloat16": "bf16", "float64": "f64",
	"average-precision": "average_precision", "ap": "average_precision", "balanced-accuracy": "balanced_accuracy",
	"macro-f1": "macro_f1", "micro-f1": "micro_f1", "roc_auc": "auc", "roc-auc": "auc", "matthews": "mcc",
}

// meant are words that resemble another value more than the one that they stand for.
var meant = map[string]string{"gpu": "cuda", "gpus": "cuda", "nvidia": "cuda"}

// suggest names the value that was perhaps meant.
func suggest(value string, known []string) string {
	kind, number, several := strings.Cut(strings.ToLower(value), ":")
	word, ok := meant[kind]
	if !ok || !slices.Contains(known, word) {
		return train.Suggest(value, known)
	}
	if several {
		word += ":" + number
	}
	return "did you mean " + word + "?"
}

// Canonical is a value as a list has it, whichever way it is spelled; any other value stays as it is.
func Canonical(value string, values []string) string {
	lower := strings.ToLower(value)
	for _, word := range []string{value, lower, otherWords[lower]} {
		if slices.Contains(values, word) {
			return word
		}
	}
	return value
}

// canonical replaces values that are spelled in other ways.
func (s *Spec) canonical() {
	for _, f := range s.ownFields() {
		if f.values != nil {
			f.value.SetString(Canonical(f.value.String(), f.values))
		}
	}
}

// Values are the values of each flag that has a list of them, for the completion of a shell.
func (s *Spec) Values() map[string][]string {
	out := map[string][]string{}
	for _, f := range s.ownFields() {
		if f.values != nil {
			out[f.flag()[2:]] = f.values
		}
	}
	return out
}

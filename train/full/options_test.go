package full

import (
	"strings"

	"starling/train"
)

// has reports whether a strategy has an option.
func has(strategy, option string) bool {
	d := train.Find(strategy)
	return d != nil && d.Option(option) != nil
}

// optionIf is an option of traintest.Strategy, or none.
func optionIf(set bool, option string) string {
	if set {
		return option
	}
	return ""
}

// rated is an option of traintest.Strategy: rates for some layers, where the strategy chooses by rates, by which some
// rows are cheaper computed again than received. What is not about measuring them takes a tenth of the time with rates.
func rated(strategy string, layers int) string {
	if !has(strategy, "rates") {
		return ""
	}
	return "rates=row" + strings.Repeat(":1e-6", layers) + ",edge" + strings.Repeat(":1e-8", layers) +
		",inside:1e-8,between:1e-7"
}

// inSingle is how near single precision comes to double in a few epochs. GATv2 has
// gradients that are zero but for rounding, and Adam makes steps of them; which of two
// maxima is larger may be decided by rounding too.
func inSingle(model string) float64 {
	switch model {
	case "gatv2":
		return 1e-2
	case "sage-pool":
		return 1e-3
	}
	return 1e-4
}

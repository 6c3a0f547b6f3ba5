// Package traintest is what tests of training share: small graphs and partitions, options,
// workers in one process, and the checks that every strategy must pass. It is for tests
// only.
package traintest

import (
	"slices"
	"strings"
	"testing"

	"starling/train"
)

// Strategy is a strategy as users write it, with options as NAME or NAME=VALUE; an empty
// one is none. The strategy must be registered: import starling/train/full.
func Strategy(t testing.TB, text string, options ...string) train.Choice {
	t.Helper()
	c, err := Choose(text, options...)
	if err != nil {
		t.Fatalf("%s with %q: %v", text, options, err)
	}
	return c
}

// Choose is Strategy with its error. An option that the strategy does not have is one.
func Choose(text string, options ...string) (train.Choice, error) {
	var given train.Settings
	for _, option := range options {
		name, value, ok := strings.Cut(option, "=")
		if !ok {
			value = "true"
		}
		o := find(text, name)
		if o == nil && option != "" {
			return train.Choice{}, train.Mistake("%s has no option %s", text, name)
		} else if o == nil {
			continue
		}
		v, err := o.Parse(value)
		if err != nil {
			return train.Choice{}, err
		}
		given = given.With(o, v)
	}
	return train.Choose(text, given)
}

// Has reports whether a strategy has an option.
func Has(strategy, option string) bool { return find(strategy, option) != nil }

func find(strategy, option string) *train.Option {
	d := train.Find(strategy)
	if d == nil {
		return nil
	}
	list := d.Options()
	i := slices.IndexFunc(list, func(o *train.Option) bool { return o.Name == option })
	if i < 0 {
		return nil
	}
	return list[i]
}

// If is an option of Strategy, or none.
func If(set bool, option string) string {
	if set {
		return option
	}
	return ""
}

// Rated is an option of Strategy: rates for some layers, where the strategy chooses by rates, by which some rows are
// cheaper computed again than received. What is not about measuring them takes a tenth of the time with rates.
func Rated(strategy string, layers int) string {
	if !Has(strategy, "rates") {
		return ""
	}
	return "rates=row" + strings.Repeat(":1e-6", layers) + ",edge" + strings.Repeat(":1e-8", layers) +
		",inside:1e-8,between:1e-7"
}

// Made is a choice of a strategy that is not registered, or with options that no text
// gives.
func Made[O any](d train.Descriptor, options O) train.Choice {
	return train.Choice{Descriptor: &d, Options: &options}
}

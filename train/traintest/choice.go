// Package traintest is what tests of training share: small graphs and partitions, options,
// workers in one process, and the checks that every strategy must pass. It is for tests
// only.
package traintest

import (
	"strings"
	"testing"

	"starling/train"
)

// Strategy is a strategy as users write it, with options as NAME or NAME=VALUE; an empty
// option is left out. The strategy must be registered: import starling/train/full.
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
	d := train.Find(text)
	var given train.Settings
	for _, option := range options {
		name, value, ok := strings.Cut(option, "=")
		if !ok {
			value = "true"
		}
		var o *train.Option
		if d != nil {
			o = d.Option(name)
		}
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

// Made is a choice of a strategy that is not registered, or with options that no text
// gives.
func Made[O any](d train.Descriptor, options O) train.Choice {
	return train.Choice{Descriptor: &d, Options: &options}
}

package spec

import (
	"fmt"
	"slices"

	"starling/graph"
)

// choice is a setting that has one of a few values.
type choice struct {
	name   string
	value  string
	values []string
}

type choiceList []choice

// of are the values of a setting.
func (l choiceList) of(name string) []string {
	if i := slices.IndexFunc(l, func(c choice) bool { return c.name == name }); i >= 0 {
		return l[i].values
	}
	return nil
}

// checkChoices names the first setting with a value that is not in its list.
func checkChoices(list []choice) error {
	for _, c := range list {
		if !slices.Contains(c.values, c.value) {
			return NotOneOf(field{name: c.name}.flag(), c.value, c.values)
		}
	}
	return nil
}

// bound is the range of a whole number.
type bound struct {
	flag            string
	value, min, max int
}

func checkBounds(list []bound) error {
	for _, f := range list {
		if f.value < f.min || f.value > f.max {
			return Mistake(f.flag, fmt.Sprint(f.value), fmt.Sprintf("%d to %d", f.min, f.max), "")
		}
	}
	return nil
}

func checkShare(flag string, share float64) error {
	if !(share >= 0 && share < 1) {
		return Mistake(flag, fmt.Sprint(share), "at least 0 and below 1", "")
	}
	return nil
}

// noEffect is what is found where a setting has no effect.
const noEffect = "a setting without effect"

// effect is a setting, whether it was given, whether it then has an effect, and if not,
// why.
type effect struct {
	flag         string
	given, works bool
	reason       string
}

// checkEffects refuses settings without effect: a user who gives one expects one.
func checkEffects(list []effect) error {
	for _, f := range list {
		if f.given && !f.works {
			return &graph.InputError{Field: f.flag, Found: noEffect, Fix: f.reason}
		}
	}
	return nil
}

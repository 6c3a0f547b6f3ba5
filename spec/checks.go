package spec

import (
	"reflect"
	"slices"
	"strconv"
	"strings"

	"starling/graph"
)

// checkFields refuses values of a group's settings that are not in their lists or ranges. The strategy may
// be followed by options, so that it is not compared.
func checkFields(group any) error {
	v := reflect.ValueOf(group).Elem()
	for i := range v.NumField() {
		if v.Field(i).Kind() == reflect.Struct {
			continue
		}
		if f := newField("", v.Type().Field(i), v.Field(i)); f.name != "strategy" {
			if err := f.check(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (f field) check() error {
	if f.name == "model" {
		return checkModelName(f.flag(), f.value.String())
	}
	if f.values != nil && !slices.Contains(f.values, deviceKind(f.value.String())) {
		return NotOneOf(f.flag(), f.value.String(), f.values)
	}
	if f.bounds == "" || f.auto != "" && f.autoValue().isAuto() || f.inBounds() {
		return nil
	}
	return Mistake(f.flag(), f.text(), f.wanted(), "")
}

// inBounds reports whether a number is in its range. NaN is in none.
func (f field) inBounds() bool {
	low, high, open, below := f.limits()
	x := 0.0
	if f.value.Kind() == reflect.Float64 {
		x = f.value.Float()
	} else {
		x = float64(f.value.Int())
	}
	least, _ := strconv.ParseFloat(low, 64)
	most, _ := strconv.ParseFloat(high, 64)
	return x >= least && x <= most && !(open && x == least) && !(below && x == most)
}

// limits are the ends of a range, and whether each is outside of it: 1,9 and [1,9] have both, (1,9) neither.
func (f field) limits() (low, high string, open, below bool) {
	low, high, _ = strings.Cut(strings.Trim(f.bounds, "[()]"), ",")
	return low, high, strings.HasPrefix(f.bounds, "("), strings.HasSuffix(f.bounds, ")")
}

// wanted is the range of a number in words; "": it has none.
func (f field) wanted() string {
	if f.bounds == "" {
		return ""
	}
	low, high, open, below := f.limits()
	words := low + " to " + high
	switch {
	case open:
		words = "above " + low + " and at most " + high
	case below:
		words = "at least " + low + " and below " + high
	}
	if f.auto != "" {
		return "auto, or " + words
	}
	return words
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

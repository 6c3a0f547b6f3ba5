package spec

import (
	"fmt"
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
	if f.values != nil && !slices.Contains(f.values, deviceKind(f.value.String())) {
		return NotOneOf(f.flag(), f.value.String(), f.values)
	}
	if low, high, ok := strings.Cut(f.bounds, ","); ok {
		least, _ := strconv.ParseInt(low, 10, 64)
		most, _ := strconv.ParseInt(high, 10, 64)
		if n := f.value.Int(); n < least || n > most {
			return Mistake(f.flag(), fmt.Sprint(n), low+" to "+high, "")
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

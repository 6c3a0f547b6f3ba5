package cost

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"starling/graph"
)

// RatesOption gives a strategy the rates that it chooses by. The choice is then part of the run's
// settings: two runs with the same rates choose the same, whatever their machines do meanwhile.
type RatesOption struct {
	Rates string `json:"rates" resume:"free" omit:"default" help:"rates to choose by, as --dry-run or an earlier run printed them, so that this run chooses the same; none: they are measured"`
}

// Validate refuses what are no rates.
func (o RatesOption) Validate() error {
	if o.Rates == "" {
		return nil
	}
	_, err := ParseRates(o.Rates)
	return err
}

// Given are the rates for a model of a number of layers, as Numbers has them; nil: none were given.
func (o RatesOption) Given(layers int) ([]float64, error) {
	if o.Rates == "" {
		return nil, nil
	}
	r, err := ParseRates(o.Rates)
	if err == nil && len(r.Row) != layers {
		err = badRates(o.Rates, fmt.Sprintf("rates of %d layers", layers))
	}
	return r.Numbers(), err
}

// Rounded is r with three digits, so that its text form is short and exact.
func (r Rates) Rounded() Rates {
	v := r.Numbers()
	for i, x := range v {
		v[i], _ = strconv.ParseFloat(strconv.FormatFloat(x, 'g', 3, 64), 64)
	}
	return FromNumbers(v)
}

// String is the text form: row:S:S…,edge:S:S…,inside:S,between:S, in seconds.
func (r Rates) String() string {
	join := func(name string, list ...float64) string {
		for _, x := range list {
			name += ":" + strconv.FormatFloat(x, 'g', -1, 64)
		}
		return name
	}
	return strings.Join([]string{join("row", r.Row...), join("edge", r.Edge...), join("inside", r.Inside),
		join("between", r.Between)}, ",")
}

// ParseRates reads the text form.
func ParseRates(text string) (r Rates, err error) {
	lists := map[string][]float64{}
	for item := range strings.SplitSeq(text, ",") {
		words := strings.Split(item, ":")
		for _, word := range words[1:] {
			x, err := strconv.ParseFloat(word, 64)
			if err != nil || !(x >= 0) || math.IsInf(x, 0) {
				return r, badRates(text, "seconds, not "+strconv.Quote(word))
			}
			lists[words[0]] = append(lists[words[0]], x)
		}
	}
	inside, between := lists["inside"], lists["between"]
	if len(lists) != 4 || len(inside) != 1 || len(between) != 1 || len(lists["row"]) == 0 ||
		len(lists["row"]) != len(lists["edge"]) {
		return r, badRates(text, "row:S:S,edge:S:S,inside:S,between:S, one number per layer in the first two")
	}
	return Rates{Row: slices.Clip(lists["row"]), Edge: slices.Clip(lists["edge"]), Inside: inside[0],
		Between: between[0]}, nil
}

func badRates(found, want string) error {
	return &graph.InputError{Field: "--rates", Found: strconv.Quote(found), Want: want,
		Fix: "give them as starling train --dry-run prints them"}
}

package spec

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"starling/train"
)

// Sweep is a training run that is repeated: over seeds, and over the values of settings.
type Sweep struct {
	Spec
	Seeds int      // runs of each combination, with consecutive seeds
	Over  []string // settings and their values, as in lr=0.1,0.01
}

// TakeValues takes the arguments that follow --sweep, as hidden=64,256, and returns the others.
func (s *Sweep) TakeValues(args []string) (others []string) {
	for _, a := range args {
		if len(s.Over) > 0 && strings.Contains(a, "=") && !strings.ContainsAny(a, "/\\") {
			s.Over = append(s.Over, a)
		} else {
			others = append(others, a)
		}
	}
	return others
}

// maxRuns bounds a sweep: more is a slip of the keyboard.
const maxRuns = 10_000

// Several reports whether there is more than the one run.
func (s *Sweep) Several() bool { return s.Seeds > 1 || len(s.Over) > 0 }

// Combination is one choice of values for the settings of a sweep.
type Combination struct {
	Values []string // as in lr=0.1, in the order of the sweep
	Spec   Spec
}

// Label is the values in one word, which is also the name of a file.
func (c *Combination) Label() string { return strings.Join(c.Values, ",") }

// Combinations are all choices of values, the last setting varying fastest.
func (s *Sweep) Combinations() ([]Combination, error) {
	if s.Seeds < 1 || s.Seeds > maxRuns {
		return nil, Mistake("--seeds", fmt.Sprint(s.Seeds), fmt.Sprintf("1 to %d", maxRuns), "")
	}
	all := []Combination{{Spec: s.Spec}}
	var names []string
	for _, text := range s.settings() {
		name, list, ok := strings.Cut(text, "=")
		name = strings.ReplaceAll(strings.TrimLeft(name, "-"), "_", "-")
		switch {
		case !ok || list == "":
			return nil, Mistake("--sweep", text, "a setting and its values", "for example lr=0.1,0.01")
		case slices.Contains(names, name):
			return nil, Mistake("--sweep", name+" twice", "each setting once", "list all its values after one =")
		}
		names = append(names, name)
		var err error
		if all, err = timesValues(all, name, values(list)); err != nil {
			return nil, err
		}
		if len(all)*s.Seeds > maxRuns {
			return nil, Mistake("--sweep", fmt.Sprintf("more than %d runs", maxRuns), "fewer", "leave out values")
		}
	}
	return all, nil
}

// settings are the words of all --sweep flags, which may hold several.
func (s *Sweep) settings() (list []string) {
	for _, text := range s.Over {
		list = append(list, strings.Fields(text)...)
	}
	return list
}

// values splits a list. Where values have commas themselves, as fanouts, semicolons separate.
func values(list string) []string {
	if strings.Contains(list, ";") {
		return strings.Split(list, ";")
	}
	return strings.Split(list, ",")
}

// timesValues is every combination with every value of a setting.
func timesValues(all []Combination, name string, values []string) (out []Combination, err error) {
	for _, c := range all {
		for _, value := range values {
			one := Combination{Values: append(slices.Clone(c.Values), name+"="+value), Spec: c.Spec}
			if err := one.Spec.sweepTo(name, value); err != nil {
				return nil, err
			}
			out = append(out, one)
		}
	}
	return out, nil
}

// sweepTo sets a setting by its flag.
func (s *Spec) sweepTo(name, value string) error {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	s.Flags(fs)
	var known []string
	fs.VisitAll(func(f *pflag.Flag) {
		if topic := f.Annotations[FlagTopic]; !slices.Contains(notSwept, topic[0]) {
			known = append(known, f.Name)
		}
	})
	if !slices.Contains(known, name) {
		return Mistake("--sweep", name, "a setting of training, as lr, hidden or model", train.Suggest(name, known))
	}
	if err := fs.Set(name, value); err != nil {
		in := flagMistake(fs.Lookup(name), value, err)
		return Mistake("--sweep", name+"="+value, in.Want, in.Fix)
	}
	return nil
}

// notSwept are the topics of settings that do not change what is trained.
var notSwept = []string{"Output", "Checkpoints", "Several hosts"}

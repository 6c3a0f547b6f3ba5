package spec

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"

	"starling/graph"
	"starling/internal/yamltext"
)

// Tune is a search over settings of training.
type Tune struct {
	Spec
	Trials    int
	Parallel  int      // trials side by side
	Reduction int      // one of this many trials goes on at each halving; 1: all are trained to the end
	Over      []string // settings and their ranges, as in lr=1e-4..1e-1 or hidden=32,64
	Space     string   // a YAML file of them
	HTML      string
}

// Dimension is a setting that is searched: one of its choices, or a number between two.
type Dimension struct {
	Name     string
	Choices  []string
	From, To float64
	Whole    bool
}

// usual are the settings that are searched where none are named, and not given.
var usual = []string{"lr=1e-3..3e-2", "hidden=32,64,128", "dropout=0..0.7", "weight-decay=1e-6..1e-3", "layers=2,3"}

// usualModels are searched where --model is not given.
const usualModels, usualTypedModels = "model=gcn,sage,gat", "model=rgcn,hsage,rgat,hgt"

// Dimensions are what is searched, each checked; given are the flags that were.
func (s *Tune) Dimensions(typed bool, given func(flag string) bool) (list []Dimension, err error) {
	texts, source := slices.Clone(s.Over), "--over"
	switch {
	case s.Space != "" && len(texts) > 0:
		return nil, Mistake("--space", s.Space, "one of --space and --over", "leave out one of them")
	case s.Space != "":
		source = "--space " + s.Space
		if texts, err = readSpace(s.Space); err != nil {
			return nil, err
		}
	case len(texts) == 0:
		models := usualModels
		if typed {
			models = usualTypedModels
		}
		for _, text := range append([]string{models}, usual...) {
			if name, _, _ := strings.Cut(text, "="); !given(name) {
				texts = append(texts, text)
			}
		}
	}
	for _, text := range texts {
		d, err := s.dimension(source, text)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(list, func(x Dimension) bool { return x.Name == d.Name }) {
			return nil, Mistake(source, d.Name+" twice", "each setting once", "give it one range or list")
		}
		list = append(list, d)
	}
	if len(list) == 0 {
		return nil, Mistake(source, "no setting", "settings to search", "for example --over lr=1e-3..1e-1")
	}
	return list, nil
}

// TakeValues takes the arguments that follow --over, as hidden=32,64, and returns the others.
func (s *Tune) TakeValues(args []string) []string {
	w := Sweep{Over: s.Over}
	others := w.TakeValues(args)
	s.Over = w.Over
	return others
}

// readSpace reads a file of settings and their ranges or lists.
func readSpace(path string) (texts []string, err error) {
	b, err := ReadFile("--space", path, yamltext.MaxBytes+1, "a file of settings and their values", "check the name")
	if err != nil {
		return nil, err
	}
	bad := func(found string) error {
		return Mistake("--space "+path, found, "a line for each setting, as lr: 1e-4..1e-1 or hidden: [32, 64]", "")
	}
	if found, _ := yamltext.Excess(b); found != "" {
		return nil, bad(found)
	}
	var all yaml.MapSlice
	if err := yaml.NewDecoder(bytes.NewReader(b)).Decode(&all); err != nil {
		return nil, bad(graph.Sentence(strings.SplitN(err.Error(), "\n", 2)[0]))
	}
	for _, item := range all {
		value := fmt.Sprint(item.Value)
		if list, ok := item.Value.([]any); ok {
			var words []string
			for _, x := range list {
				words = append(words, fmt.Sprint(x))
			}
			value = strings.Join(words, ",")
		}
		texts = append(texts, fmt.Sprintf("%v=%s", item.Key, value))
	}
	return texts, nil
}

// dimension reads one, and tries its values.
func (s *Tune) dimension(source, text string) (d Dimension, err error) {
	name, list, ok := strings.Cut(text, "=")
	d.Name = strings.ReplaceAll(strings.TrimLeft(strings.TrimSpace(name), "-"), "_", "-")
	bad := func(found string) error {
		return Mistake(source, found, "a setting and its values, as lr=1e-4..1e-1 or hidden=32,64", "")
	}
	if !ok || list == "" || d.Name == "" {
		return d, bad(text)
	}
	ends := values(list)
	if low, high, between := strings.Cut(list, ".."); between {
		ends = []string{low, high}
		var wrong error
		if d.From, err = strconv.ParseFloat(low, 64); err == nil {
			d.To, wrong = strconv.ParseFloat(high, 64)
		}
		if err != nil || wrong != nil || !(d.From < d.To) || math.IsInf(d.From, 0) || math.IsInf(d.To, 0) {
			return d, bad(text)
		}
		d.Whole = !strings.ContainsAny(list[:len(low)]+high, ".eE")
	} else {
		d.Choices = ends
	}
	for _, value := range ends {
		one := s.Spec
		if slices.Contains(notTuned, d.Name) {
			return d, Mistake(source, d.Name, "a setting of the model or its training",
				"give --"+d.Name+" to all trials")
		}
		if err := one.sweepTo(d.Name, strings.TrimSpace(value)); err != nil {
			return d, fmt.Errorf("%s %s: %w", source, text, err)
		}
	}
	return d, nil
}

// notTuned are settings that a trial does not choose: the search does, or results would not be compared.
var notTuned = []string{"epochs", "seed", "patience", "schedule", "task", "target", "workers"}

// draw is the value for a number from 0 to below 1. Numbers whose range spans a factor of ten or more are drawn evenly
// over its logarithm.
func (d *Dimension) draw(u float64) string {
	if n := len(d.Choices); n > 0 {
		return strings.TrimSpace(d.Choices[min(int(u*float64(n)), n-1)])
	}
	from, to := d.From, d.To
	if d.Whole {
		to++
	}
	x := from + u*(to-from)
	if from > 0 && to >= 10*from {
		x = from * math.Pow(to/from, u)
	}
	if d.Whole {
		return strconv.Itoa(int(min(math.Floor(x), d.To)))
	}
	return strconv.FormatFloat(min(max(x, d.From), d.To), 'g', 3, 64)
}

// Trial is the settings of a trial, for a number from 0 to below 1 for each setting that is searched.
func (s *Tune) Trial(space []Dimension, uniform func(setting string) float64) (c Combination, err error) {
	c.Spec = s.Spec
	for _, d := range space {
		value := d.draw(uniform(d.Name))
		c.Values = append(c.Values, d.Name+"="+value)
		if e := c.Spec.sweepTo(d.Name, value); e != nil && err == nil {
			err = e
		}
	}
	return c, err
}

// CheckSearch refuses numbers that make no search.
func (s *Tune) CheckSearch() error {
	switch {
	case s.Trials < 1 || s.Trials > maxRuns:
		return Mistake("--trials", fmt.Sprint(s.Trials), fmt.Sprintf("1 to %d", maxRuns), "")
	case s.Parallel < 1 || s.Parallel > 1024:
		return Mistake("--parallel", fmt.Sprint(s.Parallel), "1 to 1024", "")
	case s.Reduction < 1 || s.Reduction > 100:
		return Mistake("--reduction", fmt.Sprint(s.Reduction), "1 (no halving) to 100", "")
	}
	return nil
}

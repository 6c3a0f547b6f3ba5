package run

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// settingsOf names the settings that only some strategies have.
var settingsOf = map[string][]string{
	"staleness":     {"sancus"},
	"clip":          {"sancus"},
	"smooth":        {"pipegcn"},
	"g3_pipeline":   {"g3"},
	"preload":       {"granndis"},
	"eas":           {"granndis"},
	"memory_budget": {"granndis", "g3", "neutronstar"},
	"means":         {"pipegcn", "sancus", "bns"},
	"relay":         {"halo", "bns", "g3", "pipegcn", "neutronstar"},
}

// strategyField is a setting of some strategies.
type strategyField struct {
	field
	users    []string
	standard reflect.Value
	given    bool // other than by default
}

// ofStrategies lists the settings of s that only some strategies have.
func (s *Spec) ofStrategies() (list []strategyField) {
	d := Default()
	defaults := d.fields()
	for i, f := range s.fields() {
		if users := settingsOf[f.name]; users != nil {
			list = append(list, strategyField{f, users, defaults[i].value, !reflect.DeepEqual(f.value.Interface(), defaults[i].value.Interface())})
		}
	}
	return list
}

// forStrategy is s with another strategy, without the settings of others. +relay after it
// passes rows on inside servers, +means puts old ones right on average, +sparse leaves out zeros, +bf16 or +int8 is the
// type that its rows travel in.
func (s Spec) forStrategy(text string) Spec {
	given := strings.Split(text, "+")
	s.Strategy = given[0]
	for _, f := range s.ofStrategies() {
		if !s.uses(f.users...) {
			f.value.Set(f.standard)
		}
	}
	if s.checkTwice() != nil { // what follows the name wins
		d := Default()
		s.Staleness, s.G3Pipeline, s.Preload, s.EAS = d.Staleness, d.G3Pipeline, d.Preload, d.EAS
	}
	for _, more := range given[1:] {
		switch more {
		case "relay":
			s.Relay = true
		case "means":
			s.Means = true
		case "sparse":
			s.SparseRows = true
		default:
			s.WireDType = more
		}
	}
	return s
}

// strategySettings are those of the run's strategy, as given after its name, by
// flags, or by default.
func (s *Spec) strategySettings() map[string]any {
	c, err := s.choice()
	if err != nil || c.Name == "" {
		return nil
	}
	out := map[string]any{}
	switch c.Name {
	case "bns":
		out["keep"], out["cached"] = c.Keep, c.Cached
	case "sancus":
		out["staleness"], out["clip"] = c.Staleness, c.Clip
	case "skipg":
		out["skipped"] = c.SkipG
	case "pipegcn":
		out["late"], out["smooth"] = c.Late, c.Smooth
	case "g3":
		out["pipeline"] = c.Pipeline
	case "granndis":
		out["preload"], out["eas"] = c.Preload, c.Sample
	}
	if c.Budget > 0 {
		out["memory_budget"] = c.Budget
	}
	if c.Relay {
		out["relay"] = true
	}
	if c.Means {
		out["means"] = true
	}
	if c.SparseRows {
		out["sparse"] = true
	}
	if c.WireRows != "" {
		out["wire_dtype"] = c.WireRows
	}
	return out
}

// label is the strategy of a result as starling compare names it: as it was given,
// with those of its settings that were given elsewhere.
func (r *Report) label() string {
	name, after, shown := strings.Cut(r.Strategy, ":")
	sampled := strings.Contains(after, "eas") // granndis:eas1,15 or granndis:2:eas1,15
	plain := Default()
	plain.Strategy = name
	standard := plain.strategySettings()
	text := r.Strategy
	for _, key := range slices.Sorted(maps.Keys(r.StrategySettings)) {
		value := fmt.Sprint(r.StrategySettings[key])
		switch first := mainSetting[name] == key; {
		case key == "wire_dtype" || key == "relay" || key == "means" || key == "sparse" || value == fmt.Sprint(standard[key]):
		case shown && (first && !strings.HasPrefix(after, "eas") || key == "eas" && sampled || key == "cached"):
		case key == "eas":
			text += ":eas" + value
		case first:
			text = name + ":" + value + strings.TrimPrefix(text, name)
		default:
			text += " " + key + "=" + value
		}
	}
	for _, key := range []string{"relay", "means", "sparse"} {
		if r.StrategySettings[key] == true {
			text += "+" + key
		}
	}
	if rows, ok := r.StrategySettings["wire_dtype"]; ok {
		text += fmt.Sprintf("+%v", rows)
	}
	return text
}

// mainSetting is the one that follows a strategy's name.
var mainSetting = map[string]string{"bns": "keep", "sancus": "staleness", "skipg": "skipped", "pipegcn": "late", "g3": "pipeline", "granndis": "preload"}

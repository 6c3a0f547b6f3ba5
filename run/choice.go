package run

import (
	"reflect"
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

// forStrategy is s with another strategy, without the settings of others.
func (s Spec) forStrategy(text string) Spec {
	s.Strategy = text
	for _, f := range s.ofStrategies() {
		if !s.uses(f.users...) {
			f.value.Set(f.standard)
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
		out["keep"] = c.Keep
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
	if c.WireRows != "" {
		out["wire_dtype"] = c.WireRows
	}
	return out
}

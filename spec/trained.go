package spec

import (
	"fmt"
	"strings"

	"starling/event"
	"starling/nn"
)

// Trained is what is trained and how, by the settings that decide what workers send and keep: plans say it beside their
// numbers.
func (s *Spec) Trained() string {
	m := &s.Model
	words := []string{fmt.Sprintf("%d-layer %s of %d", m.Layers, m.Name, m.Hidden)}
	add := func(given bool, format string, values ...any) {
		if given {
			words = append(words, fmt.Sprintf(format, values...))
		}
	}
	add(nn.HasHeads(m.Name), "%s", event.Tally(m.Heads, "head"))
	add(true, "dropout %g", m.Dropout)
	add(m.InputDropout == On, "input dropout")
	add(s.Distributed(), "strategy %s", s.Strategy)
	return strings.Join(words, ", ")
}

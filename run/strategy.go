package run

import (
	"starling/exchange"
	"starling/spec"
	"starling/train"
)

// strategySettings are the options of the run's strategy, for its result.
func strategySettings(s *spec.Spec) map[string]any {
	c, err := s.Choice()
	if err != nil {
		return nil
	}
	return c.Report()
}

// relays reports whether rows are relayed inside servers.
func relays(s *spec.Spec) bool {
	c, _ := s.Choice()
	o, _ := train.OptionOf[exchange.RelayOption](c)
	return o.Relay
}

package spec

import (
	"fmt"
	"slices"
	"strings"

	"starling/graph"
	"starling/train"
)

// Distributed reports whether the run is of workers that communicate, be it a single one.
func (s *Spec) Distributed() bool { return s.Strategy != "none" }

// Undecided reports whether the strategy is still to be chosen by a plan.
func (s *Spec) Undecided() bool { return s.StrategyName() == "auto" }

// Goroutines reports whether workers are goroutines of this process.
func (s *Spec) Goroutines() bool { return s.Cluster.goroutines() }

// Processes reports whether every worker is a process of its own.
func (s *Spec) Processes() bool { return s.Distributed() && !s.Goroutines() }

// StrategyName is the strategy without its options.
func (s *Spec) StrategyName() string { return train.NameOf(s.Strategy) }

// Choice is the strategy of several workers with its options; the zero one for a single
// worker.
func (s *Spec) Choice() (train.Choice, error) {
	if s.Strategy == "none" || s.Strategy == "default" {
		return train.Choice{}, nil
	}
	if s.Undecided() {
		return train.Choice{}, Mistake("--strategy", s.Strategy, "a strategy for this command",
			"starling train chooses one; starling plan shows what it would choose")
	}
	return train.Choose(s.Strategy, s.Settings)
}

// checkStrategy refuses a strategy that is not for this number of workers or mode.
func (s *Spec) checkStrategy() error {
	if s.Strategy == "none" && s.Cluster.Workers > 1 {
		return Mistake("--strategy", "none", s.DefaultStrategy()+" for several workers",
			"leave out --strategy, or use --workers 1")
	}
	c, err := s.Choice()
	if err != nil || c.Descriptor == nil || string(c.Descriptor.Mode) == s.Mode {
		return err
	}
	return graph.Apart("--strategy "+c.Name(), "--mode "+s.Mode, "it is of the other mode",
		"use --mode "+string(c.Descriptor.Mode)+", or a strategy of this mode: "+
			strings.Join(StrategyNamesOf(s.Mode), ", "))
}

// apart is the refusal of a strategy that a setting is not for.
func apart(strategy, other, why string, use []string) error {
	return graph.Apart("--strategy "+strategy, other, why, "use one of the strategies "+strings.Join(use, ", "))
}

// given are the options of strategies that were set, other than to their defaults.
func (s *Spec) given() (list []*train.Option) {
	for _, o := range train.AllOptions() {
		if v, ok := s.Settings[o.Name]; ok && v != o.DefaultOf(s.StrategyName()) {
			list = append(list, o)
		}
	}
	return list
}

// checkOptions refuses options that the run's strategy does not have.
func (s *Spec) checkOptions() error {
	for _, o := range s.given() {
		if slices.Contains(o.Strategies, s.StrategyName()) {
			continue
		}
		if !s.Distributed() {
			return graph.Apart(o.Flag(), "one worker", "it is of strategies, and one worker sends nothing",
				"give --workers, or leave it out")
		}
		why := "a setting without effect"
		if o.Why != "" {
			why += ": " + o.Why
		}
		return graph.Apart(o.Flag(), "--strategy "+s.StrategyName(), why, "it is only for --strategy "+
			strings.Join(o.Strategies, ", "))
	}
	return nil
}

// ForStrategy is s with another strategy, as users write it, without options that only
// others have, or that have no effect with it. Options after the name win over those given elsewhere.
func (s Spec) ForStrategy(text string) Spec {
	s.Strategy = text
	given := train.Settings{}
	for _, o := range s.given() {
		if slices.Contains(o.Strategies, s.StrategyName()) {
			given = given.With(o, s.Settings.Get(o))
		}
	}
	s.Settings = given.InForce(text)
	return s
}

// StrategyExamples are strategies with the option that follows their name, at its default.
func StrategyExamples() (list []string) {
	for _, d := range train.Strategies() {
		for _, o := range d.Options() {
			if value := fmt.Sprint(o.DefaultOf(d.Name)); o.Main && value != "" {
				list = append(list, d.Name+":"+value)
				break
			}
		}
	}
	return list
}

// StrategiesWith are the strategies that have an option.
func StrategiesWith(option string) []string {
	for _, o := range train.AllOptions() {
		if o.Name == option {
			return o.Strategies
		}
	}
	return nil
}

// TypicalStrategies are the strategies of a --mode that a comparison has without any list.
func TypicalStrategies(mode string) []string { return train.TypicalOf(train.Mode(mode)) }

// StrategyNames are the strategies of several workers.
func StrategyNames() []string { return train.Names() }

// StrategyNamesOf are the strategies of a --mode, the one that others are rated over first.
func StrategyNamesOf(mode string) []string { return train.NamesOf(train.Mode(mode)) }

package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"starling/event"
	"starling/train"
)

// CompareSpec is what starling compare can be told: a training run, and the
// strategies to run it with.
type CompareSpec struct {
	Spec
	Strategies []string
	Rounds     int      // runs of each strategy, in turn with the others
	VarySeed   bool     // each round from the next seed
	From       []string // results of earlier runs, instead of running
	HTML       string
	Papers     bool
}

// DefaultCompare is the spec when nothing is said.
func DefaultCompare() CompareSpec {
	s := CompareSpec{Spec: Default(), Strategies: []string{"halo"}, Rounds: 1, Papers: true}
	s.Epochs = 20
	return s
}

// Strategies are the names a strategy may have.
func Strategies() []string { return train.Strategies() }

// SplitStrategies reads a list such as halo,bns:0.1,granndis:eas1,15. A name begins
// with a letter, so that what does not goes on with the setting before it.
func SplitStrategies(text string) (list []string) {
	for _, word := range strings.Split(text, ",") {
		word = strings.TrimSpace(word)
		switch {
		case word == "":
		case len(list) > 0 && (word[0] >= '0' && word[0] <= '9' || word[0] == '.'):
			list[len(list)-1] += "," + word
		default:
			list = append(list, word)
		}
	}
	return list
}

// Compare runs each strategy in turn on the same parts, or reads the results of
// earlier runs. A strategy that fails is a row with its error, and the others go on;
// when ctx ends, the comparison is of what was done, with ErrInterrupted.
func Compare(ctx context.Context, s CompareSpec, events event.Listener) (*Comparison, error) {
	for _, f := range []struct{ flag, path string }{{"--json", s.JSON}, {"--html", s.HTML}} {
		if err := CheckFile(f.flag, f.path); err != nil {
			return nil, err
		}
	}
	if len(s.From) > 0 {
		return compareSaved(s.From)
	}
	if err := s.check(); err != nil {
		return nil, err
	}
	parts, err := s.findParts(ctx, event.All(events))
	if err != nil {
		return nil, err
	}
	defer parts.remove()
	s.Partition, s.Partitioner = parts.dir, Default().Partitioner // it is cut
	if s.Dataset != "" && IsPartition(s.Dataset) {
		s.Dataset = ""
	}
	runs, err := s.run(ctx, event.Locked(notesOnce(event.All(events))))
	return newComparison(runs), err
}

// check names the first setting that some strategy cannot have.
func (s *CompareSpec) check() error {
	if err := s.settleParts(); err != nil {
		return err
	}
	switch {
	case len(s.Strategies) == 0:
		return mistake("--strategies", "none", "at least one of "+strings.Join(Strategies(), ", "), "")
	case s.Rounds < 1 || s.Rounds > 1000:
		return mistake("--rounds", fmt.Sprint(s.Rounds), "1 to 1000", "")
	case s.Dataset == "" && s.Partition == "":
		return mistake("DIR", "no dataset", "a dataset or partition folder", "make one with starling generate or starling import")
	case s.Workers == 0 && s.partitionFolder() == "":
		return mistake("--workers", "none", "how many workers to compare on", "for example --workers 4")
	}
	for i, name := range s.Strategies {
		if slices.Contains(s.Strategies[:i], name) {
			return mistake("--strategies", name+" twice", "each once", "for several runs of each there is --rounds")
		}
		one, err := s.variant(name)
		if err == nil {
			err = one.Validate()
		}
		if err != nil {
			return inStrategies(err)
		}
		s.Workers, s.Servers = one.Workers, one.Servers
	}
	for _, f := range s.ofStrategies() {
		used := slices.ContainsFunc(s.Strategies, func(name string) bool {
			one := s.forStrategy(name)
			return one.uses(f.users...)
		})
		if f.given && !used {
			return mistake(f.flag(), "a setting without effect", "one of "+strings.Join(f.users, ", ")+" among --strategies", "")
		}
	}
	return nil
}

// inStrategies names the flag that the user gave.
func inStrategies(err error) error {
	return renamed(err, map[string]string{"--strategy": "--strategies"})
}

// variant is the training run of one strategy.
func (s *CompareSpec) variant(strategy string) (Spec, error) {
	one := s.forStrategy(strategy)
	one.JSON = ""
	if strategy == "none" || strategy == "auto" {
		return one, mistake("--strategies", strategy, "one of "+strings.Join(Strategies(), ", "), "")
	}
	return one, one.settleWorkers()
}

// runsOf are the runs of one strategy, and the error that ended them.
type runsOf struct {
	strategy string
	reports  []*Report
	err      error
}

// run trains with every strategy, round by round, so that what changes on the
// machine meanwhile meets all of them.
func (s *CompareSpec) run(ctx context.Context, events event.Listener) ([]*runsOf, error) {
	var all []*runsOf
	for _, name := range s.Strategies {
		all = append(all, &runsOf{strategy: name})
	}
	for round := range s.Rounds {
		for i, r := range all {
			if r.err != nil {
				continue
			}
			if ctx.Err() != nil {
				return all, ErrInterrupted
			}
			if !s.Quiet {
				events.On(event.Note{Text: fmt.Sprintf("%s (%d of %d, round %d of %d)", r.strategy, i+1, len(all), round+1, s.Rounds)})
			}
			report, err := s.train(ctx, r.strategy, round, events)
			switch {
			case errors.Is(err, ErrInterrupted):
				return all, err
			case err != nil:
				r.err = err
				events.On(event.Note{Text: fmt.Sprintf("%s failed: %v", r.strategy, err)})
			case report.Reason == "interrupted" && report.Epochs == 0:
				return all, ErrInterrupted
			default:
				r.reports = append(r.reports, report)
				if report.Reason == "interrupted" {
					return all, ErrInterrupted
				}
			}
		}
	}
	return all, nil
}

// notesOnce leaves out minor notes that stand above already: one strategy after the other
// would say the same of the same parts. What goes wrong again is said again.
func notesOnce(l event.Listener) event.Listener {
	said := map[string]bool{}
	return event.Func(func(e event.Event) {
		if n, ok := e.(event.Note); ok && n.Minor {
			if said[n.Text] {
				return
			}
			said[n.Text] = true
		}
		l.On(e)
	})
}

func (s *CompareSpec) train(ctx context.Context, strategy string, round int, events event.Listener) (*Report, error) {
	one, err := s.variant(strategy)
	if err != nil {
		return nil, err
	}
	if s.VarySeed {
		one.Seed += uint64(round)
	}
	return Train(ctx, one, events)
}

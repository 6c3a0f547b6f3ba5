package run

import (
	"context"
	"errors"
	"fmt"

	"starling/event"
	"starling/partition"
	"starling/report"
	"starling/spec"
)

// Compare trains one case after the other on the same parts, or reads the results of
// earlier runs. A case that fails is a row with its error, and the others continue; when ctx
// ends, the comparison is of what has run, with ErrInterrupted.
func Compare(ctx context.Context, s spec.Compare, events event.Listener) (*report.Comparison, error) {
	for _, f := range []struct{ flag, path string }{{"--json", s.Output.JSON}, {"--html", s.HTML}} {
		if err := spec.CheckFile(f.flag, f.path); err != nil {
			return nil, err
		}
	}
	if len(s.From) > 0 {
		return report.CompareSaved(s.From)
	}
	if err := countSlots(&s.Spec); err != nil {
		return nil, err
	}
	cases, err := s.Cases()
	if err != nil {
		return nil, err
	}
	remove, err := cutForCases(ctx, cases, event.All(events))
	defer remove()
	if err != nil {
		return nil, err
	}
	all, err := trainRounds(ctx, &s, cases, event.Locked(minorNotesOnce(event.All(events))))
	return report.Compare(all), err
}

// cutForCases cuts the dataset once per partitioner, or opens the partition that was given. remove
// deletes what was cut.
func cutForCases(ctx context.Context, cases []spec.Case, events event.Listener) (remove func(), err error) {
	cut := map[string]*parts{}
	remove = func() {
		for _, p := range cut {
			p.remove()
		}
	}
	for i := range cases {
		s := &cases[i].Spec
		if !s.Distributed() {
			continue
		}
		by := s.Cluster.Partitioner
		if cut[by] == nil {
			if cut[by], err = findParts(ctx, s, events); err != nil {
				delete(cut, by)
				return remove, err
			}
		}
		// it is partitioned now
		s.Cluster.Partition, s.Cluster.Partitioner = cut[by].dir, spec.Default().Cluster.Partitioner
		if s.Dataset != "" && partition.IsPartition(s.Dataset) {
			s.Dataset = ""
		}
	}
	return remove, nil
}

// trainRounds trains every case, round by round, so that other load on the machine affects all of
// them alike.
func trainRounds(ctx context.Context, s *spec.Compare, cases []spec.Case, events event.Listener) (
	[]*report.Rounds, error) {
	var all []*report.Rounds
	for _, c := range cases {
		all = append(all, &report.Rounds{Strategy: c.Name})
	}
	for round := range s.Rounds {
		for i, r := range all {
			if r.Err != nil {
				continue
			}
			if ctx.Err() != nil {
				return all, report.ErrInterrupted
			}
			if !s.Output.Quiet {
				events.On(event.Note{Text: fmt.Sprintf("%s (%d of %d, round %d of %d)", r.Strategy, i+1, len(all),
					round+1, s.Rounds)})
			}
			one := cases[i].Spec
			if s.VarySeed {
				one.Seed += uint64(round)
			}
			if err := trainRound(ctx, one, r, events); err != nil {
				return all, err
			}
		}
	}
	return all, nil
}

// trainRound trains one round of a case. Its failure is kept in r; the error is that of an
// interruption.
func trainRound(ctx context.Context, one spec.Spec, r *report.Rounds, events event.Listener) error {
	run, err := Train(ctx, one, events)
	switch {
	case errors.Is(err, report.ErrInterrupted):
		return err
	case err != nil:
		r.Err = err
		events.On(event.Note{Text: fmt.Sprintf("%s failed: %v", r.Strategy, err)})
		return nil
	case run.Reason != "interrupted":
		r.Runs = append(r.Runs, run)
		return nil
	}
	if run.Epochs > 0 {
		r.Runs = append(r.Runs, run)
	}
	return report.ErrInterrupted
}

// minorNotesOnce leaves out minor notes that were shown already: one strategy after the other
// has the same to say of the same parts. Failures are told again.
func minorNotesOnce(l event.Listener) event.Listener {
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

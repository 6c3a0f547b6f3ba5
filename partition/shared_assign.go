package partition

import (
	"errors"
	"fmt"
	"io"
	"time"

	"starling/disk/tasks"
	"starling/graph"
)

// Which part each vertex is in: stages pass, refine and settle of a partition by several processes (shared.go).

// assignResult is what is known of an assignment.
type assignResult struct {
	Moved   int
	Gained  int64 // by refining
	Cut     int64 // in-edges between parts, where refining counts them
	Seed    uint64
	Seconds float64
	Limits  Limits
	Failed  string // the constraint that is not met
}

// assign finds the part of every vertex.
func (s *sharedJob) assign() error {
	from := ""
	begin := streams[s.opt.Method]
	s.p.Scanned = func(lo, hi int) { s.d.ReleaseEdges(s.d.Graph.Indptr[lo], s.d.Graph.Indptr[hi]) }
	if begin != nil && s.opt.Servers <= 1 {
		for k := range s.p.passes() {
			r, err := s.step("pass", k, &from, func(out *tasks.Out) (any, error) { return s.pass(begin, k, out) })
			if err != nil {
				return err
			}
			if r.Moved == 0 {
				break
			}
		}
		before := assignResult{Cut: -1}
		for k := range s.p.Refine {
			r, err := s.step("refine", k, &from, func(out *tasks.Out) (any, error) { return s.refine(from, before.Cut, k, out) })
			if err != nil {
				return err
			}
			if before = r; r.Gained == 0 {
				break
			}
		}
	}
	if err := s.f.Do(s.ctx, "settle", 1, func(_ int, out *tasks.Out) (any, error) { return s.settle(from, out) }); err != nil {
		return err
	}
	var r assignResult
	if err := s.f.Result("settle", 0, &r); err != nil {
		return err
	}
	s.seconds += r.Seconds
	s.p.Seed, s.failed, s.met = r.Seed, r.Failed, r.Limits
	if r.Failed != "" && s.opt.Balance != "" && !s.opt.BestEffort {
		return &graph.InputError{Field: "balance", Found: graph.Sentence(r.Failed), Fix: "remove " + s.f.Dir + " before you ask for something else"}
	}
	return s.loadParts("settle")
}

// step is the k-th pass of a kind, from the assignment of the stage from, which it then takes the place of.
func (s *sharedJob) step(kind string, k int, from *string, work func(out *tasks.Out) (any, error)) (r assignResult, err error) {
	name := stepName(kind, k)
	if err := s.f.Do(s.ctx, name, 1, func(_ int, out *tasks.Out) (any, error) { return work(out) }); err != nil {
		return r, err
	}
	if *from != "" {
		if err := s.f.Drop(*from, 0, 1); err != nil {
			return r, err
		}
	}
	*from = name
	err = s.f.Result(name, 0, &r)
	s.seconds += r.Seconds
	return r, err
}

func stepName(kind string, k int) string { return fmt.Sprintf("%s%d", kind, k) }

func (s *sharedJob) loadParts(stage string) error {
	s.parts = make([]uint32, s.d.Graph.Nodes())
	r, err := s.f.Open(stage, 0, "parts")
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.ReadFull(r, bytesOf(s.parts))
	return err
}

func (s *sharedJob) saveParts(out *tasks.Out, parts []uint32) error {
	w, err := out.Create("parts")
	if err != nil {
		return err
	}
	_, err = w.Write(bytesOf(parts))
	return err
}

// pass is one pass of a method that streams.
func (s *sharedJob) pass(begin func(*Problem) *stream, k int, out *tasks.Out) (any, error) {
	begun := time.Now()
	st := begin(&s.p)
	if k > 0 {
		if err := s.loadParts(stepName("pass", k-1)); err != nil {
			return nil, err
		}
		st.parts = s.parts
		st.loads.of(st.parts)
	}
	moved, err := st.pass(s.ctx, s.opt.Method, k, s.p.passes())
	if err == nil {
		err = s.saveParts(out, st.parts)
	}
	return assignResult{Moved: moved, Seconds: time.Since(begun).Seconds()}, err
}

// refine is one pass that refines the assignment of the stage from.
func (s *sharedJob) refine(from string, cut int64, k int, out *tasks.Out) (any, error) {
	begun := time.Now()
	if err := s.loadParts(from); err != nil {
		return nil, err
	}
	f := newRefiner(&s.p, s.parts, newLoads(&s.p).of(s.parts))
	f.cut = cut
	gained, err := f.pass(s.ctx, s.opt.Method, k)
	if err == nil {
		err = s.saveParts(out, s.parts)
	}
	return assignResult{Gained: gained, Cut: f.cut, Seconds: time.Since(begun).Seconds()}, err
}

// settle meets the limits after the last pass, of the stage from; without passes it is the whole method, in memory.
func (s *sharedJob) settle(from string, out *tasks.Out) (any, error) {
	begun := time.Now()
	r := assignResult{Seed: s.opt.Seed}
	if from == "" {
		s.p.Scanned = nil // servers have graphs of their own
		best, _, err := s.bestTry(s.ctx)
		if err != nil {
			return nil, err
		}
		s.parts, r.Seed, r.Limits = best.parts, best.seed, best.met
		if best.err != nil {
			r.Failed = best.err.Error()
		}
	} else {
		if err := s.loadParts(from); err != nil {
			return nil, err
		}
		s.p.Limits = &r.Limits
		err := rebalance(s.ctx, &s.p, s.parts, newLoads(&s.p).of(s.parts))
		var u *Unbalanced
		if errors.As(err, &u) {
			r.Failed = u.Error()
		} else if err != nil {
			return nil, err
		}
	}
	r.Seconds = time.Since(begun).Seconds()
	return r, s.saveParts(out, s.parts)
}

package partition

import (
	"context"
	"errors"
	"fmt"
	"time"

	"starling/graph"
	"starling/rng"
)

// On a small graph the cut varies with the seed. Tries make several partitions, each with its own seed, and
// keep the best: the one that exceeds the limits least, of equals the one with least of the
// objective, of those the first. The first seed is the user's, so more tries are never
// worse than fewer. The tries of multilevel for the least cut are combined (multilevel/combine.go): what they give
// together is better than any of them.

// try is one partition and its quality.
type try struct {
	seed  uint64
	parts []uint32
	q     *Quality
	err   error // an Unbalanced one, or nil
	over  float64
	met   Limits
}

// checkTries checks the number of tries; 0 means one.
func (o *Options) checkTries() error {
	e, err := find(o.Method)
	switch {
	case err != nil:
		return err
	case o.Tries < 0:
		return &graph.InputError{Field: "tries", Found: fmt.Sprint(o.Tries), Want: "at least 1",
			Fix: "cut once, or several times to keep the best"}
	case o.Tries > 1 && !e.seeded:
		return &graph.InputError{Field: "tries", Found: fmt.Sprintf("%d with the method %s", o.Tries, o.Method),
			Want: "1, as this method draws nothing at random",
			Fix:  "leave it out, or choose another method"}
	}
	return nil
}

// combines tells whether the tries are combined instead of compared.
func (o *Options) combines() bool {
	return o.Method == "multilevel" && o.Objective == Cut && o.Servers <= 1 && o.Tries > 1
}

// seedOf is the seed of a try.
func seedOf(seed uint64, try int) uint64 {
	if try == 0 {
		return seed
	}
	return uint64(rng.New(seed).Fold(uint64(try)).Uint32(0)) // short enough to type
}

// bestTry is the best of all tries, and how long they took without measuring their quality.
func (j *job) bestTry(ctx context.Context) (best *try, seconds float64, err error) {
	tries := max(j.opt.Tries, 1)
	if j.opt.combines() {
		j.p.Tries, tries = tries, 1
	}
	for i := range tries {
		start := time.Now()
		t, err := j.try(ctx, seedOf(j.opt.Seed, i))
		seconds += time.Since(start).Seconds()
		if err != nil {
			return nil, 0, err
		}
		t.q = Measure(j.d.Graph, t.parts, j.opt.Parts, j.all, j.d.Meta.Symmetric, j.opt.Threads)
		if best == nil || t.better(best, j.opt.Objective) {
			best = t
		}
		if tries > 1 {
			j.p.report("try", int64(i+1), int64(tries))
		}
	}
	return best, seconds, nil
}

// try partitions once.
func (j *job) try(ctx context.Context, seed uint64) (*try, error) {
	p := j.p
	p.Seed = seed
	var met Limits
	p.Limits = &met
	parts, err := Hierarchical(ctx, j.opt.Method, &p, max(j.opt.Servers, 1))
	var u *Unbalanced
	if errors.As(err, &u) {
		parts = u.Parts
	} else if err != nil {
		return nil, err
	}
	l := newLoads(&p).of(parts)
	if err == nil {
		err = l.unbalanced(parts)
	}
	return &try{seed: seed, parts: parts, err: err, over: l.excess(), met: met}, nil
}

// better reports whether t is better than than.
func (t *try) better(than *try, o Objective) bool {
	switch {
	case t.over != than.over:
		return t.over < than.over
	case o == Volume:
		return t.q.CommVolume < than.q.CommVolume
	}
	return t.q.EdgeCut < than.q.EdgeCut
}

package sancus

import (
	"fmt"
	"strconv"
	"strings"
)

// staleness is how old sancus lets a block become at those that keep it.
type staleness struct {
	rule   string  // epoch, adaptive or variation
	epochs int     // of epoch and adaptive
	change float64 // of variation
}

// parseStaleness reads epoch:K, adaptive:K or variation:X.
func parseStaleness(text string) (s staleness, err error) {
	rule, bound, _ := strings.Cut(text, ":")
	s.rule = rule
	switch rule {
	case "epoch", "adaptive":
		if s.epochs, err = strconv.Atoi(bound); err != nil || s.epochs < 0 || s.epochs > 1<<20 {
			return s, fmt.Errorf("staleness %q: after %s: comes how many epochs rows may be stale, a whole number "+
				"from 0, as in %s:2; not %q", text, rule, rule, bound)
		}
	case "variation":
		if s.change, err = strconv.ParseFloat(bound, 64); err != nil || !(s.change >= 0 && s.change <= 1e6) {
			return s, fmt.Errorf("staleness %q: after variation: comes the relative change that rows may have gone "+
				"through, a number from 0, as in variation:0.5; not %q", text, bound)
		}
	default:
		return s, fmt.Errorf("staleness %q is not one of epoch:K, adaptive:K, variation:X; for example epoch:2", text)
	}
	return s, nil
}

// due reports whether a block is sent in an epoch, for the rules that know without
// looking at it. The first epoch of a run has nothing to fall back on. What lies
// distance ranks apart takes turns under adaptive, so that every worker sends to some
// peers in every epoch instead of to all peers in some.
func (s staleness) due(first, epoch, distance int) bool {
	if s.rule == "epoch" {
		distance = 0
	}
	return epoch == first || (epoch+distance)%(s.epochs+1) == 0
}

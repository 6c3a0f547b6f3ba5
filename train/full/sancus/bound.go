package sancus

import (
	"fmt"
	"strconv"
	"strings"
)

// staleness is how old sancus lets a block become at those that keep it.
type staleness struct {
	rule   string  // epoch, adaptive, variation or relative
	epochs int     // of epoch and adaptive
	change float64 // of variation and relative
}

// parseStaleness reads epoch:K, adaptive:K, variation:X or relative:X.
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
		if s.change, err = parseChange(bound); err != nil {
			return s, fmt.Errorf("staleness %q: after variation: comes by how much a worker's rows may have changed, "+
				"root mean square, a number from 0, as in variation:0.01; not %q (a share of their own norm is "+
				"relative:X)", text, bound)
		}
	case "relative":
		if s.change, err = parseChange(bound); err != nil {
			return s, fmt.Errorf("staleness %q: after relative: comes the change that rows may have gone through, "+
				"as a share of their norm, a number from 0, as in relative:0.5; not %q", text, bound)
		}
	default:
		return s, fmt.Errorf("staleness %q is not one of epoch:K, adaptive:K, variation:X, relative:X; for example "+
			"epoch:2", text)
	}
	return s, nil
}

// parseChange reads a norm, or a share of one.
func parseChange(text string) (float64, error) {
	x, err := strconv.ParseFloat(text, 64)
	if err == nil && !(x >= 0 && x <= 1e12) {
		err = strconv.ErrRange
	}
	return x, err
}

// skips reports whether rows may be stale at all.
func (s staleness) skips() bool { return s.epochs > 0 || s.change > 0 }

// looks reports whether the rule looks at rows: then only their owner knows whether they
// travel, and says so.
func (s staleness) looks() bool { return s.rule == "variation" || s.rule == "relative" }

package report

import (
	"fmt"
	"slices"
	"strings"

	"starling/train"
)

// claim is what a paper says, and what was measured here.
type claim struct {
	Ours string
	train.Paper
}

// Papers is the papers' figures beside ours, as text; "": there are none.
func (c *Comparison) Papers() string {
	var b strings.Builder
	for _, p := range c.claims() {
		b.WriteString(wrap(p.Ours, "  "))
		b.WriteString(wrap(fmt.Sprintf("  %s: %s. Differs because %s.", p.Title, p.Claim, p.Why), "  "))
	}
	if b.Len() == 0 {
		return ""
	}
	return "beside the papers\n" + b.String()
}

// claims are what the papers of the strategies compared claim, each paper once.
func (c *Comparison) claims() (list []claim) {
	at := map[string]int{}
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Paper == nil || r.Rounds == 0 || r.Strategy == c.Baseline {
			continue
		}
		ours := c.measured(r)
		if j, ok := at[r.Paper.Title]; ok {
			list[j].Ours += "; " + ours
			continue
		}
		at[r.Paper.Title] = len(list)
		list = append(list, claim{ours, *r.Paper})
	}
	return list
}

// measured is a row's speed-up over the baseline, and over the strategy that its paper
// compares with.
func (c *Comparison) measured(r *CompareRow) string {
	text := fmt.Sprintf("%s: %s over %s", r.Strategy, times(r.Speedup), c.Baseline)
	base := ""
	if d := train.Find(r.Strategy); d != nil {
		base = d.Baseline
	}
	if i := slices.IndexFunc(c.Rows, func(o CompareRow) bool { return o.Strategy == base && o.Rounds > 0 }); i >= 0 {
		o := &c.Rows[i]
		if o.Strategy != c.Baseline {
			text += fmt.Sprintf(", %s over %s", times(o.MeanSeconds/r.MeanSeconds), o.Strategy)
		}
		share := Number(float64(r.Bytes.Total) / float64(o.Bytes.Total))
		text += fmt.Sprintf(" with %s of its bytes", wholePercent(share))
	}
	return text
}

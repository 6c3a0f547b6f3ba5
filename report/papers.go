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

// own says which strategy is the paper's, where the default is not.
func (p *claim) own() string {
	if p.Own == "" {
		return ""
	}
	return " The paper's own is " + p.Own + "."
}

// Papers is the papers' figures beside ours, as text; "": there are none.
func (c *Comparison) Papers() string {
	var b strings.Builder
	for _, p := range c.claims() {
		b.WriteString(wrap(p.Ours, "  "))
		b.WriteString(wrap(fmt.Sprintf("  %s: %s. Differs because %s.%s", p.Title, p.Claim, p.Why, p.own()), "  "))
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
	text := fmt.Sprintf("%s: %s", r.label(), r.over(c.row(c.Baseline)))
	base := ""
	if d := train.Find(r.Strategy); d != nil {
		base = d.Baseline
	}
	o := c.row(base)
	if o == nil {
		return text
	}
	if o.Strategy != c.Baseline {
		text += ", " + r.over(o)
	}
	share := wholePercent(Number(float64(r.Bytes.Total) / float64(o.Bytes.Total)))
	return fmt.Sprintf("%s, with %s of its bytes", text, share)
}

// row is the row of a strategy that has run; nil: there is none.
func (c *Comparison) row(strategy string) *CompareRow {
	i := slices.IndexFunc(c.Rows, func(o CompareRow) bool { return o.Strategy == strategy && o.Rounds > 0 })
	if i < 0 {
		return nil
	}
	return &c.Rows[i]
}

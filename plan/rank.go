package plan

import (
	"cmp"
	"slices"
	"strings"

	"starling/train"
)

// tie is how much faster a choice must be predicted to be worth more to know: predictions are off by more than that.
const tie = 0.01

// simpler orders choices that take the same time, by the first of these in which they differ.
var simpler = []func(p *Planned) int{
	func(p *Planned) int { return len(strings.Fields(p.Flags)) },            // the devices and links that were given
	func(p *Planned) int { return len(p.Settings) },                         // what has to be said, and what it was decided by
	func(p *Planned) int { return slices.Index(train.Names(), p.Strategy) }, // the default first
}

func bySimplicity(a, b Planned) int {
	for _, of := range simpler {
		if c := cmp.Compare(of(&a), of(&b)); c != 0 {
			return c
		}
	}
	return 0
}

// rank joins equal choices, sorts the others, says why each is where it is, and picks one.
func (c *Choices) rank(o *Options) {
	c.join()
	slices.SortStableFunc(c.Rows, func(a, b Planned) int {
		if a.Exact != b.Exact {
			if a.Exact {
				return -1
			}
			return 1
		}
		return cmp.Compare(a.Predicted.Seconds, b.Predicted.Seconds)
	})
	breakTies(c.Rows)
	base := c.baseline()
	for i := range c.Rows {
		c.Rows[i].Why = why(&c.Rows[i].Predicted, base)
	}
	for i := range c.Rows {
		r := &c.Rows[i]
		if (r.Exact || o.Approximate) && (c.Pick == nil || r.Predicted.Seconds < (1-tie)*c.Pick.Predicted.Seconds) {
			c.Pick = r
		}
	}
}

// join makes one row of choices that are the same run by other names: a strategy that decides to do what another does,
// or an option without effect on these parts. The simplest names it.
func (c *Choices) join() {
	slices.SortStableFunc(c.Rows, bySimplicity)
	var rows []Planned
	for _, r := range c.Rows {
		i := slices.IndexFunc(rows, func(o Planned) bool { return o.same(&r) })
		if i < 0 {
			rows = append(rows, r)
			continue
		}
		rows[i].Aliases = append(rows[i].Aliases, r.Name)
	}
	c.Rows = rows
}

// same reports whether two choices compute, send and wait alike, to the bit.
func (p *Planned) same(o *Planned) bool {
	a, b := p.counted, o.counted
	a.Memory, a.Resident, b.Memory, b.Resident = 0, 0, 0, 0
	return a == b && p.Exact == o.Exact && p.Partitioner == o.Partitioner && p.Flags == o.Flags
}

// breakTies puts the simpler first among sorted choices that take the same time.
func breakTies(rows []Planned) {
	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && rows[to].Exact == rows[from].Exact &&
			rows[to].Predicted.Seconds <= (1+tie)*rows[from].Predicted.Seconds {
			to++
		}
		slices.SortStableFunc(rows[from:to], bySimplicity)
		from = to
	}
}

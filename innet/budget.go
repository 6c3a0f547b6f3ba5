package innet

import "math"

// Budget is the registers of a switch, and what of them a block takes: for each aggregator, and
// for each row, whose register says in which round it was last added.
type Budget struct {
	Bytes, Slot, Row int64
}

// Registers is the budget of a switch's memory where packets carry a number of units, and the rows of
// leaves meet at a root; one leaf: a single switch. A root has a row for each leaf's part of a sum.
func Registers(memory int64, units, leaves int) Budget {
	b := Budget{Bytes: memory, Slot: int64(units*UnitBytes) + slotBytes, Row: rowBytes}
	if leaves > 1 {
		b.Slot += int64(leaves) * rowBytes
	}
	return b
}

// Slots is a budget of aggregators alone.
func Slots(n int) Budget { return Budget{Bytes: int64(n), Slot: 1} }

func (b Budget) fits(slots, rows int) bool { return int64(slots)*b.Slot+int64(rows)*b.Row <= b.Bytes }

// Aggregators is how many vertices a part of a cut may have: each an aggregator, with twice as many
// rows, since some sources of a part are no destinations.
func (b Budget) Aggregators() int { return int(b.Bytes / (b.Slot + 2*b.Row)) }

// caps are the most aggregators and rows of any block. Registers are arrays of their own, so that
// the block with most of one and that with most of the other count together.
type caps struct{ slots, rows int }

func (c caps) fit(slots, rows int) bool { return slots <= c.slots && rows <= c.rows }

// forCut are the caps of blocks that are parts of a cut.
func (b Budget) forCut() caps {
	c := caps{b.Aggregators(), math.MaxInt}
	if b.Row > 0 {
		c.rows = int((b.Bytes - int64(c.slots)*b.Slot) / b.Row)
	}
	return c
}

// forGrid are the caps with which the fewest rows and sums pass the switch where destinations
// and sources are divided into groups, and any two make a block: each row passes once per group of
// destinations, each sum once per group of sources. Where rows are many, their registers leave
// little for aggregators, and it is better to add a sum in several parts.
func (b Budget) forGrid(slots, rows int) (c caps) {
	best := int64(math.MaxInt64)
	for parts := 1; parts <= rows; parts++ {
		left := b.Bytes - int64(ceil(rows, parts))*b.Row
		if left < b.Slot {
			continue
		}
		groups := ceil(slots, int(min(left/b.Slot, int64(slots))))
		if n := int64(groups)*int64(rows) + int64(parts)*int64(slots); n < best {
			best, c = n, caps{ceil(slots, groups), ceil(rows, parts)}
		}
		if groups == 1 || int64(parts)*int64(slots) > best { // more parts only add sums
			break
		}
	}
	return c
}

func ceil(n, by int) int { return (n + by - 1) / by }

package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"

	"starling/tensor/cpu/simd/asm/lanes"
)

// runs is how a wide row is cut: into so many runs, heads mostly, of as many loads each, whose
// sums are in registers. How many loads
// is in the arguments. Loops are written for the most there may be, and entered where so many are left: so one serves
// all widths, for a comparison or two a run. Loads are counted from a run's last, which is 0.
type runs struct {
	count       int
	least, most int
}

// slot is the place of load v of run r among all.
func (u runs) slot(r, v int) int { return (r+1)*u.most - 1 - v }

// last says whether a load is the row's last: what lies behind it may be in a line that nobody asked for, so it
// ends where the row ends, and its first lanes, which were loaded before, are masked.
func (u runs) last(r, v int) bool { return r == u.count-1 && v == 0 }

// loop is what to do with a row: run before each run, load with its loads, of which there are
// each. From, if there is one, is where the
// first run's last load is, and moves on by headBytes from run to run.
type loop struct {
	from      GPPhysical
	headBytes Op
	each      Op
	run       func(r int)
	load      func(r, v int, line Mem)
}

func (u runs) eachLine(l loop) {
	for r := range u.count {
		if r > 0 && l.from != nil {
			ADDQ(l.headBytes, l.from)
		}
		if l.run != nil {
			l.run(r)
		}
		places := make([]string, u.most)
		for v := range places {
			places[v] = lanes.NewLabel("load")
		}
		enter(l.each, places, u.least, u.most)
		for v := u.most - 1; v >= 0; v-- {
			if v < u.most-1 && v >= u.least-1 {
				Label(places[v])
			}
			l.load(r, v, Mem{Base: l.from, Disp: -64 * v})
		}
	}
}

// enter goes to where each loads are left, which are at least lo and at most hi.
func enter(each Op, places []string, lo, hi int) {
	if lo == hi {
		if hi < len(places) {
			JMP(LabelRef(places[hi-1]))
		}
		return
	}
	mid := (lo + hi + 1) / 2
	CMPQ(each, U8(mid))
	if lo == mid-1 {
		JB(LabelRef(places[lo-1]))
	} else {
		above := lanes.NewLabel("above")
		JAE(LabelRef(above))
		enter(each, places, lo, mid-1)
		Label(above)
	}
	enter(each, places, mid, hi)
}

// eachVector is eachLine for loads the last of which is shift bytes earlier.
func (u runs) eachVector(l loop, shift Mem) {
	load := l.load
	l.load = func(r, v int, line Mem) {
		if u.last(r, v) {
			SUBQ(shift, l.from)
		}
		load(r, v, line)
	}
	u.eachLine(l)
}

// bisect goes to the label of that in the list, which is in order, whose number is what.
func bisect[T any](what Mem, list []T, label func(T) string, number func(T) int) {
	n := len(list) / 2
	if n == 0 {
		JMP(LabelRef(label(list[0])))
		return
	}
	below := label(list[0])
	if n > 1 {
		below = lanes.NewLabel("below")
	}
	CMPQ(what, U32(number(list[n])))
	JB(LabelRef(below))
	bisect(what, list[n:], label, number)
	if n > 1 {
		Label(below)
		bisect(what, list[:n], label, number)
	}
}

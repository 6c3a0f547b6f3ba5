package cuda

import (
	"math"
	"slices"

	"starling/tensor"
	"starling/tensor/cuda/memory"
)

// A row of far more entries than others is cut in pieces of half as many, so that a vertex with millions of
// neighbours does not hold up the rest: of more than eight times the mean, and than leastLong, or of mostLong.
const (
	leastLong = 64
	mostLong  = 512
)

// longRow is the most entries of a row that is not cut.
func longRow(rows int, entries int64) int64 {
	long := int64(leastLong)
	for long < mostLong && long*int64(rows) < 8*entries {
		long *= 2
	}
	return long
}

// plan is which rows of a sparse matrix are long.
type plan struct {
	pieces   Matrix // row, first entry, end
	longs    Matrix // row, first piece, how many
	wholes   Matrix // of long rows: row, first entry, end
	n, nLong int
	first    int   // of its pieces, among those of all long rows
	limit    int64 // entries of a row that is not long
}

// known is what was found out about the host's slice that a matrix was made of.
type known struct {
	plans   map[[2]int]*plan
	sorted  map[[2]int]Index
	targets map[[3]int]*targets
}

// knownOf is what is known of a matrix of FromHost.
func knownOf(m Matrix) *known {
	b := memory.BlockOf(m)
	k, ok := b.Known.(*known)
	if !ok {
		k = &known{plans: map[[2]int]*plan{}, sorted: map[[2]int]Index{}, targets: map[[3]int]*targets{}}
		b.Known = k
	}
	return k
}

// planOf is the plan of a matrix, made once; nil where no row is long.
func (d *Device) planOf(s *Sparse) *plan {
	ptr := tensor.PartsOf(s).Ptr
	if b := memory.BlockOf(ptr); b != nil {
		if drawn, ok := b.Known.(*longRows); ok {
			return drawn.plan
		}
	}
	starts := memory.HostCopy[int64](ptr)
	if starts == nil || s.Entries() <= leastLong {
		return nil
	}
	plans, key := knownOf(ptr).plans, [2]int{tensor.Offset(ptr), s.Rows}
	p, ok := plans[key]
	if !ok {
		p = d.cut(starts)
		plans[key] = p
	}
	return p
}

func (d *Device) cut(starts []int64) *plan {
	var wholes []int64
	rows := len(starts) - 1
	limit := longRow(rows, starts[rows]-starts[0])
	for i := range rows {
		if lo, hi := starts[i], starts[i+1]; hi-lo > limit {
			wholes = append(wholes, int64(i), lo, hi)
		}
	}
	if wholes == nil {
		return nil
	}
	return cut(d.FromHost, wholes, limit)
}

// cut is the plan of long rows, each with its first entry and end.
func cut(fromHost func(rows, cols int, host any) Matrix, wholes []int64, limit int64) *plan {
	var pieces, longs []int64
	for k := 0; k < len(wholes); k += 3 {
		row, lo, hi := wholes[k], wholes[k+1], wholes[k+2]
		first := len(pieces) / 3
		for ; lo < hi; lo += limit / 2 {
			pieces = append(pieces, row, lo, min(lo+limit/2, hi))
		}
		longs = append(longs, row, int64(first), int64(len(pieces)/3-first))
	}
	return &plan{pieces: fromHost(len(pieces), 1, pieces), longs: fromHost(len(longs), 1, longs),
		wholes: fromHost(len(wholes), 1, wholes), n: len(pieces) / 3, nLong: len(longs) / 3, limit: limit}
}

// rowArgs is Rows of kernels/common.cuh.
type rowArgs struct {
	ptr, index, segs, part uintptr
	n, limit               int64
}

// rowsOf are all rows of a matrix but the long ones.
func (d *Device) rowsOf(s *Sparse) (rowArgs, *plan) {
	parts, p := tensor.PartsOf(s), d.planOf(s)
	r := rowArgs{ptr: at(parts.Ptr), index: atIndex(parts.Index), n: int64(s.Rows), limit: math.MaxInt64}
	if p != nil {
		r.limit = p.limit
	}
	return r, p
}

// overRows runs a kernel over all rows of a matrix: the short ones, and pieces of the long ones, which join
// puts together from a matrix of their own.
func (d *Device) overRows(s *Sparse, cols int, run func(rowArgs), join func(p *plan, part uintptr)) {
	d.overGroups(s, cols, math.MaxInt, run, join)
}

// partBytes is how much the sums of pieces take at once: those of all long rows can be more than a layer's matrices.
var partBytes = 64 << 20

// overGroups is overRows with long rows in groups, whose pieces take at most the given bytes.
func (d *Device) overGroups(s *Sparse, cols, bytes int, run func(rowArgs), join func(p *plan, part uintptr)) {
	r, p := d.rowsOf(s)
	run(r)
	if p == nil {
		return
	}
	groups := p.groups(bytes / (4 * cols))
	most := 0
	for _, g := range groups {
		most = max(most, g.n)
	}
	part := d.scratch(F32, most, cols)
	for _, g := range groups {
		r.segs, r.part, r.n = at(g.pieces), at(part), int64(g.n)
		run(r)
		join(g, at(part)-uintptr(4*g.first*cols)) // rows know their pieces by number
	}
	d.release(part)
}

// groups are the long rows in order, each of at most a number of pieces, or of one row.
func (p *plan) groups(pieces int) (all []*plan) {
	if p.n <= pieces {
		return []*plan{p}
	}
	longs := memory.HostCopy[int64](p.longs)
	for lo := 0; lo < p.nLong; {
		g := &plan{first: int(longs[3*lo+1])}
		hi := lo
		for ; hi < p.nLong && (hi == lo || g.n+int(longs[3*hi+2]) <= pieces); hi++ {
			g.n += int(longs[3*hi+2])
		}
		g.nLong, g.longs, g.pieces = hi-lo, p.longs.Slice(3*lo, 3*hi), p.pieces.Slice(3*g.first, 3*(g.first+g.n))
		all, lo = append(all, g), hi
	}
	return all
}

// joinArgs is JoinArgs of kernels/aggregate.cu.
type joinArgs struct {
	part, longs  uintptr
	n, cols, max int64
	args, arg    uintptr
	to           aggregateArgs
}

// join adds up the pieces of long rows.
func (d *Device) join(p *plan, a joinArgs) {
	const most = 65535 // blocks in the second direction
	for lo := 0; lo < p.nLong; lo += most {
		n := min(most, p.nLong-lo)
		a.longs, a.n = at(p.longs)+uintptr(24*lo), int64(n)
		launch(d, "aggregate", "join_rows", size3{X: blocks(int(a.cols)).X, Y: n}, oneBlock, &a)
	}
}

// joinTo is join into a matrix.
func (d *Device) joinTo(dst Matrix, add bool) func(*plan, uintptr) {
	return func(p *plan, part uintptr) {
		d.join(p, joinArgs{part: part, cols: int64(dst.Cols), to: aggregateArgs{dst: of(dst), add: number(add)}})
	}
}

func number(b bool) int64 {
	if b {
		return 1
	}
	return 0
}

// layout is one of LAYOUTS in kernels/group.cuh: numbers of a vector, lanes of a group, vectors of a lane.
type layout struct{ v, g, k int }

func (l layout) columns() int { return l.v * l.g * l.k }

var layouts = map[DType][]layout{
	F32:  {{4, 4, 1}, {4, 8, 1}, {4, 16, 1}, {4, 32, 1}, {4, 32, 2}, {2, 32, 4}, {1, 8, 1}, {1, 32, 1}, {1, 32, 2}},
	BF16: {{4, 8, 1}, {8, 8, 1}, {8, 16, 1}, {8, 32, 1}, {2, 32, 4}, {1, 8, 1}, {1, 32, 1}, {1, 32, 2}},
}

var typeNames = map[DType]string{F32: "f32", BF16: "bf16"}

// layoutFor is the layout for heads of a width whose numbers are in these matrices: the one that covers
// the width in the fewest passes, with the fewest lanes idle.
func layoutFor(t DType, width int, ms ...Matrix) layout {
	var best layout
	for _, l := range layouts[t] {
		if width%l.v != 0 || !aligned(l.v, ms...) {
			continue
		}
		if best.v == 0 || slices.Compare([]int{l.tiles(width), l.columns(), -l.v},
			[]int{best.tiles(width), best.columns(), -best.v}) < 0 {
			best = l
		}
	}
	return best
}

func (l layout) tiles(width int) int { return (width + l.columns() - 1) / l.columns() }

// grid is the blocks for tasks, each of a group of lanes, and of a width.
func (l layout) grid(tasks, width int) size3 {
	return size3{X: blocks(tasks * l.g).X, Y: l.tiles(width)}
}

package rows

import (
	"encoding/binary"
	"math"
	"slices"
)

// lists is the rows of batches, sorted, as the differences between neighbours: about a byte per row where a batch has
// one row in a hundred.
type encoded struct {
	bytes []byte
	rows  int
}

func encode(sorted []uint32) encoded {
	var b []byte
	last := uint32(0)
	for _, v := range sorted {
		b = binary.AppendUvarint(b, uint64(v-last))
		last = v
	}
	return encoded{slices.Clip(b), len(sorted)}
}

// each calls f for the rows.
func (x *encoded) each(f func(v uint32)) {
	b, v := x.bytes, uint32(0)
	for len(b) > 0 {
		d, n := binary.Uvarint(b)
		b, v = b[n:], v+uint32(d)
		f(v)
	}
}

// planner says which rows are in memory when a batch needs them, and which are read: Belady's rule over a window of
// batches. The row that is needed furthest in the future leaves first; one that was read is kept only if it is
// needed before a row that would leave for it. store.belady has the rule for a window that moves by a batch at a
// time; this is for windows of millions of rows, one after the other, and takes eight bytes per row of the files
// and about ten per row of a batch. It is pure.
type planner struct {
	slot  []int32 // by row: where it is kept; absent: it is not
	next  []int32 // by row, while a window is planned: the batch that needs it next
	slots []kept
	used  int
	due   []int32 // by batch of the window that needs them next, and last by none: the first slot of a list
	far   int     // no list beyond it has a slot
}

// kept is a row in memory, in a list of those that the same batch needs next.
type kept struct {
	row          uint32
	due          int32
	before, next int32
}

const (
	absent = -1
	never  = math.MaxInt32
)

// put is a row that is kept after a batch: the batch's read row goes to a slot.
type put struct {
	read uint32 // which of the rows that the batch had read
	slot int32
}

// need is what is planned for a batch.
type need struct {
	number int64
	rows   int      // of the batch
	read   []uint32 // rows that are not in memory, sorted
	puts   []put
}

func newPlanner(rows, capacity int) *planner {
	p := &planner{slot: make([]int32, rows), next: make([]int32, rows), slots: make([]kept, capacity)}
	for v := range p.slot {
		p.slot[v] = absent
	}
	return p
}

// plan plans a window of batches.
func (p *planner) plan(first int64, window []encoded) []*need {
	nexts := p.nexts(window)
	p.relist(len(window))
	out := make([]*need, len(window))
	for k := range window {
		out[k] = p.batch(int32(k), &window[k], nexts[k])
		out[k].number = first + int64(k)
		nexts[k], window[k].bytes = nil, nil
	}
	return out
}

// nexts finds, for every row of every batch, how many batches later it is needed next; 0: in none of the window. It
// leaves the first batch that needs a row in p.next.
func (p *planner) nexts(window []encoded) [][]byte {
	for v := range p.next {
		p.next[v] = never
	}
	out := make([][]byte, len(window))
	for k := len(window) - 1; k >= 0; k-- {
		b := make([]byte, 0, window[k].rows+window[k].rows/8)
		window[k].each(func(v uint32) {
			d := uint64(0)
			if p.next[v] != never {
				d = uint64(p.next[v]) - uint64(k)
			}
			b = binary.AppendUvarint(b, d)
			p.next[v] = int32(k)
		})
		out[k] = b
	}
	return out
}

// relist puts what is kept into lists of a new window.
func (p *planner) relist(batches int) {
	p.due = slices.Repeat([]int32{absent}, batches+1)
	p.far = batches
	for s := range p.used {
		p.enter(int32(s), p.next[p.slots[s].row])
	}
}

// enter puts a slot into the list of the batch that needs its row next.
func (p *planner) enter(s, due int32) {
	due = min(due, int32(len(p.due)-1))
	head := p.due[due]
	p.slots[s].due, p.slots[s].before, p.slots[s].next = due, absent, head
	if head != absent {
		p.slots[head].before = s
	}
	p.due[due] = s
	p.far = max(p.far, int(due))
}

// leave takes a slot out of its list.
func (p *planner) leave(s int32) {
	x := &p.slots[s]
	if x.before == absent {
		p.due[x.due] = x.next
	} else {
		p.slots[x.before].next = x.next
	}
	if x.next != absent {
		p.slots[x.next].before = x.before
	}
}

// batch plans one batch: rows that are kept move to the lists of the batches that need them next, then some of the
// others take the places of rows that are needed later.
func (p *planner) batch(k int32, list *encoded, nexts []byte) *need {
	n := &need{rows: list.rows}
	var due []int32 // of the rows that are read
	list.each(func(v uint32) {
		d, size := binary.Uvarint(nexts)
		nexts = nexts[size:]
		next := int32(never)
		if d > 0 {
			next = k + int32(d)
		}
		if s := p.slot[v]; s != absent {
			p.leave(s)
			p.enter(s, next)
			return
		}
		n.read, due = append(n.read, v), append(due, next)
	})
	for i, v := range n.read {
		if s := p.place(due[i]); s != absent {
			p.slots[s].row, p.slot[v] = v, s
			p.enter(s, due[i])
			n.puts = append(n.puts, put{uint32(i), s})
		}
	}
	n.read, n.puts = slices.Clip(n.read), slices.Clip(n.puts)
	return n
}

// place is a slot for a row that is needed next at due; absent: all that are kept are needed no later.
func (p *planner) place(due int32) int32 {
	if p.used < len(p.slots) {
		p.used++
		return int32(p.used - 1)
	}
	for p.far > 0 && p.due[p.far] == absent {
		p.far--
	}
	s := p.due[p.far]
	if s == absent || int(due) >= p.far || due == never {
		return absent
	}
	p.leave(s)
	p.slot[p.slots[s].row] = absent
	return s
}

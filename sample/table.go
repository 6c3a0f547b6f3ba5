package sample

// table numbers the vertices of a batch in the order they are first added. It has
// eight bytes per vertex of the graph, its row and the number of the list
// it is for, so that a new list needs no clearing. A hash map of a batch's vertices
// needs less memory and is several times slower.
type table struct {
	entry []uint64 // list<<32 | row
	list  uint64
}

func newTable(vertices int) *table { return &table{entry: make([]uint64, vertices)} }

// begin forgets all vertices.
func (t *table) begin() {
	if t.list++; t.list == 1<<32 {
		clear(t.entry)
		t.list = 1
	}
}

// move gives v another row.
func (t *table) move(v, row uint32) { t.entry[v] = t.list<<32 | uint64(row) }

// find is the row of v.
func (t *table) find(v uint32) (row uint32, ok bool) {
	e := t.entry[v]
	return uint32(e), e>>32 == t.list
}

// add is the row of v, which is put at the end of rows if it was not there.
func (t *table) add(rows []uint32, v uint32) (row uint32, longer []uint32) {
	if row, ok := t.find(v); ok {
		return row, rows
	}
	row = uint32(len(rows))
	t.entry[v] = t.list<<32 | uint64(row)
	return row, append(rows, v)
}

// addAll turns ids into rows, in place, and puts new ones at the end of rows,
// which must have capacity for all of them. Whether a vertex is new is unpredictable,
// and a mispredicted branch waits for the load it depends on: so a
// first pass only reads, and the second has no branch (the row after the last is
// always written and counts only if it is new). Together they take half the
// time of a loop over add.
func (t *table) addAll(rows, ids []uint32) (longer []uint32) {
	var seen uint64
	for _, v := range ids {
		seen ^= t.entry[v]
	}
	n := uint32(len(rows))
	rows = rows[:len(rows)+len(ids)+1]
	for i, v := range ids {
		e, row := t.entry[v], n
		if e>>32 == t.list {
			row = uint32(e)
		}
		t.entry[v] = t.list<<32 | uint64(row)
		rows[n] = v
		ids[i] = row
		n += 1 - (row-n)>>31 // rows are below 2^31, so the difference is negative for old ones
	}
	t.begun(seen)
	return rows[:n]
}

// begun keeps the reads of addAll's first pass from being left out.
//
//go:noinline
func (t *table) begun(uint64) {}

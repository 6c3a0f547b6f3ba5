package store

// rowTable numbers the vertices of a batch in the order they are first added: a hash table
// with open addressing, since an array of all vertices, as on one machine, would grow with the
// graph and not with the batch.
type rowTable struct {
	entries []rowEntry
	used    int
	list    uint32 // entries of other lists are free
}

type rowEntry struct{ vertex, row, list uint32 }

func (t *rowTable) begin() {
	if t.list++; t.list == 0 || t.entries == nil {
		t.entries, t.list = make([]rowEntry, max(len(t.entries), 1<<10)), 1
	}
	t.used = 0
}

// add is the row of v, which is put at the end of rows if it was not there.
func (t *rowTable) add(rows []uint32, v uint32) (row uint32, longer []uint32) {
	if 2*t.used >= len(t.entries) {
		t.double()
	}
	e := t.slot(v)
	if e.list == t.list {
		return e.row, rows
	}
	t.used++
	*e = rowEntry{v, uint32(len(rows)), t.list}
	return e.row, append(rows, v)
}

// find is the row of v.
func (t *rowTable) find(v uint32) (row uint32, ok bool) {
	e := t.slot(v)
	return e.row, e.list == t.list
}

// move gives v, which is there, another row, and returns the one it had.
func (t *rowTable) move(v, row uint32) (old uint32) {
	e := t.slot(v)
	old, e.row = e.row, row
	return old
}

// slot is where v is, or would be.
func (t *rowTable) slot(v uint32) *rowEntry {
	mask := uint32(len(t.entries) - 1)
	for at := v * 0x9e3779b1 >> 7 & mask; ; at = (at + 1) & mask {
		if e := &t.entries[at]; e.list != t.list || e.vertex == v {
			return e
		}
	}
}

func (t *rowTable) double() {
	old := t.entries
	t.entries = make([]rowEntry, 2*len(old))
	for _, e := range old {
		if e.list == t.list {
			*t.slot(e.vertex) = e
		}
	}
}

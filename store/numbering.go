package store

// Numbering numbers vertices in the order in which they are first added, for one goroutine. Its memory is reused.
type Numbering struct{ of rowTable }

// Begin forgets all vertices.
func (n *Numbering) Begin() { n.of.begin() }

// Add is the row of v, which is put at the end of rows if it was not there.
func (n *Numbering) Add(rows []uint32, v uint32) (row uint32, longer []uint32) {
	return n.of.add(rows, v)
}

package graph

// RowOrder is another order of the entries of a CSR's rows: entry p of a row in that order is
// entry At(first+p) of the row as it is stored, counted from the row's first. Numbers are as
// wide as the longest row needs.
type RowOrder struct {
	U8  []uint8
	U16 []uint16
	U32 []uint32
}

// At is where entry e, counted over all rows, of the other order is in its row.
func (o *RowOrder) At(e int64) uint32 {
	switch {
	case o.U8 != nil:
		return uint32(o.U8[e])
	case o.U16 != nil:
		return uint32(o.U16[e])
	}
	return o.U32[e]
}

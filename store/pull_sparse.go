package store

import (
	"encoding/binary"
	"fmt"
	"slices"

	"starling/coflow"
	"starling/graph"
)

// Rows of sparse features travel as lengths [n] uint32, columns and values of all rows.

// appendSparse appends some rows to a reply; where keep is set, without the other columns.
func appendSparse(b []byte, f *graph.Features, rows []uint32, keep *Columns) []byte {
	if keep != nil {
		f, rows = keep.sparse(f, rows), upTo(len(rows))
	}
	for _, v := range rows {
		b = binary.LittleEndian.AppendUint32(b, uint32(f.Indptr[v+1]-f.Indptr[v]))
	}
	for _, v := range rows {
		b = append(b, bytesOf(f.Indices[f.Indptr[v]:f.Indptr[v+1]])...)
	}
	for _, v := range rows {
		b = append(b, bytesOf(f.Values[f.Indptr[v]:f.Indptr[v+1]])...)
	}
	return b
}

// parseSparse reads the n rows that appendSparse wrote.
func parseSparse(b []byte, n, cols int) (*graph.Features, error) {
	r := reader{b: b}
	f := &graph.Features{Rows: n, Cols: cols, Indptr: []int64{0}}
	for _, c := range r.numbers(n) {
		f.Indptr = append(f.Indptr, f.Indptr[len(f.Indptr)-1]+int64(c))
	}
	entries := int(f.Indptr[len(f.Indptr)-1])
	f.Indices, f.Values = r.numbers(entries), r.floats(entries)
	if r.short || len(r.b) > 0 {
		return nil, fmt.Errorf("%d bytes, which %d entries of %d sparse rows do not take", len(b), entries, n)
	}
	if i := slices.IndexFunc(f.Indices, func(c uint32) bool { return int(c) >= cols }); i >= 0 {
		return nil, fmt.Errorf("column %d of %d in a sparse row", f.Indices[i], cols)
	}
	return f, nil
}

// sparsePull is the sparse rows of a pull, wherever they are, until they are joined in the order of their numbers.
type sparsePull struct {
	to   *graph.Features
	keep *Columns
	rows []sparseRow
}

// sparseRow is where a row is.
type sparseRow struct {
	of *graph.Features
	at uint32
}

// askSparse begins a pull of sparse rows.
func (p *Puller) askSparse(id coflow.ID, form pullForm, to *graph.Features, numbers []uint32) error {
	p.sparse = &sparsePull{to, form.keep, make([]sparseRow, len(numbers))}
	return p.ask(id, form, numbers)
}

// copy takes rows of a part that is here; some: only the columns that are kept.
func (p *sparsePull) copy(from *rowSource, some bool, numbers, places []uint32) {
	for _, i := range places {
		p.rows[i] = sparseRow{from.sparse, numbers[i] - from.first}
		if some {
			p.rows[i] = sparseRow{p.keep.sparse(from.sparse, []uint32{p.rows[i].at}), 0}
		}
	}
}

// most is the length of the longest reply with some rows.
func (p *sparsePull) most(rows int) int { return rows * (4 + 8*p.to.Cols) }

// decode takes the rows of a reply.
func (p *sparsePull) decode(c *call) error {
	f, err := parseSparse(c.body, len(c.places), p.to.Cols)
	if err != nil {
		return err
	}
	for k, i := range c.places {
		p.rows[i] = sparseRow{f, uint32(k)}
	}
	return nil
}

// join copies the rows to where the caller wants them.
func (p *sparsePull) join() {
	to := p.to
	to.Indptr, to.Indices, to.Values = append(to.Indptr[:0], 0), to.Indices[:0], to.Values[:0]
	for _, r := range p.rows {
		lo, hi := r.of.Indptr[r.at], r.of.Indptr[r.at+1]
		to.Indices, to.Values = append(to.Indices, r.of.Indices[lo:hi]...), append(to.Values, r.of.Values[lo:hi]...)
		to.Indptr = append(to.Indptr, int64(len(to.Indices)))
	}
}

package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"starling/coflow"
	"starling/graph"
)

// Rows of sparse features travel as lengths [n] uint32, columns and values of all rows.

func appendSparse(b []byte, f *graph.Features, rows []uint32) []byte {
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

// parseSparse reads what appendSparse wrote of n rows.
func parseSparse(b []byte, n, cols int) (*graph.Features, error) {
	f := &graph.Features{Rows: n, Cols: cols, Indptr: make([]int64, n+1)}
	if len(b) < 4*n {
		return nil, fmt.Errorf("%d bytes for %d sparse rows", len(b), n)
	}
	for i, c := range numbersOf(b[:4*n]) {
		f.Indptr[i+1] = f.Indptr[i] + int64(c)
	}
	b, total := b[4*n:], f.Indptr[n]
	if int64(len(b)) != 8*total {
		return nil, fmt.Errorf("%d bytes for %d entries of %d sparse rows", len(b), total, n)
	}
	f.Indices, f.Values = numbersOf(b[:4*total]), make([]float32, total)
	copy(bytesOf(f.Values), b[4*total:])
	if i := slices.IndexFunc(f.Indices, func(c uint32) bool { return int(c) >= cols }); i >= 0 {
		return nil, fmt.Errorf("column %d of %d in a sparse row", f.Indices[i], cols)
	}
	return f, nil
}

// sparseRow is where a row is.
type sparseRow struct {
	of *graph.Features
	at uint32
}

// sparse pulls sparse rows.
func (p *Puller) sparse(ctx context.Context, id coflow.ID, to *graph.Features, numbers []uint32) error {
	p.s.split(&p.by, p.s.Book.Offsets, numbers)
	p.s.rows.needed.Add(int64(len(numbers)))
	p.calls = p.calls[:0]
	rows := make([]sparseRow, len(numbers))
	err := p.s.remoteFirst(&p.by, p.s.rowsHere, func(q int, places []uint32) error {
		p.s.rows.remote.Add(int64(len(places)))
		for some := range slices.Chunk(places, 1<<14) {
			p.request(id, q, Features, numbers, some, 0).call(p.s.end)
		}
		return nil
	}, func(q int, places []uint32) error {
		o := p.s.here[q]
		for _, i := range places {
			rows[i] = sparseRow{o.part.Features, numbers[i] - o.first}
			if p.keep.missing(q, p.s.Part.Meta.Part) {
				rows[i] = sparseRow{p.keep.sparse(o.part.Features, []uint32{rows[i].at}), 0}
			}
		}
		return nil
	})
	if err := errors.Join(err, p.wait(ctx)); err != nil {
		return err
	}
	for _, c := range p.calls {
		f, err := parseSparse(c.body, len(c.places), to.Cols)
		if err != nil {
			return fmt.Errorf("worker %d answered a pull with %w", c.part, err)
		}
		for k, i := range c.places {
			rows[i] = sparseRow{f, uint32(k)}
		}
	}
	to.Indptr, to.Indices, to.Values = append(to.Indptr[:0], 0), to.Indices[:0], to.Values[:0]
	for _, r := range rows {
		lo, hi := r.of.Indptr[r.at], r.of.Indptr[r.at+1]
		to.Indices, to.Values = append(to.Indices, r.of.Indices[lo:hi]...), append(to.Values, r.of.Values[lo:hi]...)
		to.Indptr = append(to.Indptr, int64(len(to.Indices)))
	}
	return nil
}

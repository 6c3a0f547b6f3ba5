package graph

import (
	"errors"
	"fmt"
	"hash/crc32"

	"starling/event"
)

// rowWriter writes a graph one range of rows at a time, while neither the number of
// edges nor the following rows are known.
type rowWriter struct {
	w                        *Writer
	indptr, indices, weights *ArrayWriter
	nodes, edges             int64
	asymmetry                uint64
}

// startRows has weights, or relations, in the named file, or none.
func (w *Writer) startRows(nodes int64, weights string) (*rowWriter, error) {
	r := &rowWriter{w: w, nodes: nodes}
	var err error
	if r.indptr, err = w.Array("indptr.npy", "<i8", nodes+1); err != nil {
		return nil, err
	}
	if err = WriteSlice(r.indptr, []int64{0}); err == nil {
		r.indices, err = w.unsizedArray("indices.npy", "<u4")
	}
	switch {
	case err != nil || weights == "":
	case weights == relationsFile:
		r.weights, err = w.unsizedArray(weights, "<u2")
	default:
		r.weights, err = w.unsizedArray(weights, "<f4")
	}
	if err != nil {
		r.abort()
	}
	return r, err
}

func (r *rowWriter) abort() {
	for _, a := range []*ArrayWriter{r.indptr, r.indices, r.weights} {
		if a != nil {
			a.Abort()
		}
	}
}

// rows appends the rows of a sorted unit. It overwrites the unit's Indptr.
func (r *rowWriter) rows(x *unitSort) error {
	ends := x.g.Indptr[1:]
	for i := range ends {
		ends[i] += r.edges
	}
	r.edges += x.g.Edges()
	r.asymmetry += x.asymmetry
	if err := WriteSlice(r.indptr, ends); err != nil {
		return err
	}
	if err := WriteSlice(r.indices, x.g.Indices); err != nil || r.weights == nil {
		return err
	}
	if x.g.Relations != nil {
		return WriteSlice(r.weights, x.g.Relations)
	}
	return WriteSlice(r.weights, x.g.Weights)
}

// close completes the arrays. After an error of rows it only closes them.
func (r *rowWriter) close() error {
	if r.indptr.bytes != r.indptr.want {
		r.abort()
		return nil
	}
	r.w.Meta.Nodes, r.w.Meta.Edges, r.w.Meta.Symmetric = r.nodes, r.edges, r.asymmetry == 0
	err := errors.Join(r.indptr.Close(), r.indices.closeSized(r.edges))
	if r.weights != nil {
		err = errors.Join(err, r.weights.closeSized(r.edges))
	}
	return err
}

// unsizedHeader is the space for a header that is written last. numpy's headers
// of one-dimensional arrays all have this size.
const unsizedHeader = 128

// unsizedArray starts a one-dimensional array whose length is given to closeSized.
func (w *Writer) unsizedArray(name, descr string) (*ArrayWriter, error) {
	a, err := w.open(name)
	if err != nil {
		return nil, err
	}
	a.meta.DType = descr
	_, err = a.f.Write(make([]byte, unsizedHeader))
	return a, err
}

func (a *ArrayWriter) closeSized(length int64) error {
	head := npyHeader(a.meta.DType, []int64{length})
	if len(head) != unsizedHeader {
		a.Abort()
		return fmt.Errorf("%s: a header of %s", a.name, event.Tally(len(head), "byte"))
	}
	if _, err := a.f.WriteAt(head, 0); err != nil {
		a.Abort()
		return err
	}
	a.meta.Shape = []int64{length}
	a.sum = JoinCRC(crc32.Castagnoli, crc32.Checksum(head, castagnoli), a.sum, a.bytes)
	a.bytes += unsizedHeader
	return a.Close()
}

// JoinCRC is the CRC-32 of two concatenated pieces, given their checksums and the
// length of the second; polynomial is one of hash/crc32's. The sum is a remainder of
// polynomials over two elements (the highest bit is the constant term), so the first is
// multiplied by x^(8·length).
func JoinCRC(polynomial, first, second uint32, length int64) uint32 {
	power, square := uint32(1)<<31, uint32(1)<<(31-8)
	for ; length > 0; length >>= 1 {
		if length&1 == 1 {
			power = mulMod(polynomial, power, square)
		}
		square = mulMod(polynomial, square, square)
	}
	return mulMod(polynomial, power, first) ^ second
}

// mulMod multiplies modulo a polynomial.
func mulMod(polynomial, a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		if a>>31 == 1 {
			product ^= b
		}
		b = b>>1 ^ polynomial&-(b&1)
	}
	return product
}

package store

import (
	"encoding/binary"
	"fmt"

	"starling/graph"
)

// Table is which rows are pulled. Further tables are added by AddRows.
type Table byte

const (
	Features Table = iota
	Labels
	added // the first of AddRows
)

const mostTables = 8 // that a form can name

// pullForm is which bytes of rows travel, and how. A request to pull begins with it:
//
//	how     byte       table in bits 0-2; 8: a span follows; Packed in bits 4-5; 64: a set of columns follows
//	span    2 uint32   the first byte of a row, and the byte after the last
//	columns k uint32   one bit per column, 32 in each number
//
// The reply has the rows one after the other, of each the span or the columns of the set, packed. Sparse rows are
// laid out as pull_sparse.go says.
type pullForm struct {
	table  Table
	packed Packed
	span   [2]int   // both 0: whole rows
	keep   *Columns // nil: all columns
	typ    int      // of the vertices of a typed graph whose features these are: the owner knows it by their numbers
}

const (
	formTable   = mostTables - 1
	formSpan    = 8
	formPacked  = 4 // where its bits begin
	formColumns = 64
)

// request asks for the rows of the numbers at places.
func (f *pullForm) request(numbers, places []uint32) []byte {
	how := byte(f.table) | byte(f.packed)<<formPacked
	b := append(make([]byte, 0, 9+4*len(places)), how)
	if f.span[1] > 0 {
		b[0] |= formSpan
		b = binary.LittleEndian.AppendUint32(b, uint32(f.span[0]))
		b = binary.LittleEndian.AppendUint32(b, uint32(f.span[1]))
	}
	if f.keep != nil {
		b[0] |= formColumns
		b = append(b, bytesOf(f.keep.bits)...)
	}
	return appendAt(b, numbers, places)
}

// parsePull reads what request wrote, for an owner with some features.
func parsePull(b []byte, features *graph.Features) (f pullForm, numbers []uint32, err error) {
	if len(b)%4 != 1 {
		return f, nil, fmt.Errorf("a request of %d bytes", len(b))
	}
	f, numbers = pullForm{table: Table(b[0] & formTable), packed: Packed(b[0] >> formPacked & 3)}, numbersOf(b[1:])
	ofFeatures := f.table == Features && features != nil
	if f.packed > Int8 || f.packed != Unpacked && (!ofFeatures || features.Kind() != graph.Dense) {
		return f, nil, fmt.Errorf("rows of table %d in form %d", f.table, f.packed)
	}
	if b[0]&formSpan != 0 {
		if len(numbers) < 2 || !ofFeatures || f.packed != Unpacked || features.Kind() == graph.Sparse ||
			numbers[0] >= numbers[1] || int(numbers[1]) > rowBytes(features) {
			return f, nil, fmt.Errorf("a range of columns in a request of %d bytes for table %d", len(b), f.table)
		}
		f.span, numbers = [2]int{int(numbers[0]), int(numbers[1])}, numbers[2:]
	}
	if b[0]&formColumns != 0 {
		if !ofFeatures || f.span[1] > 0 {
			return f, nil, fmt.Errorf("some columns of table %d", f.table)
		}
		f.keep, numbers, err = columnsFrom(numbers, features.Cols)
	}
	return f, numbers, err
}

// bytes is the length of a row in a reply, of a row that has width bytes where it is from.
func (f *pullForm) bytes(width int) int {
	switch {
	case f.keep != nil:
		width = width / f.keep.all * len(f.keep.list)
	case f.span[1] > 0:
		width = f.span[1] - f.span[0]
	}
	return f.packed.rowBytes(width)
}

// streams reports whether rows are in a reply as they are where they go, so that pieces are copied as they arrive.
func (f *pullForm) streams() bool { return f.keep == nil && f.packed == Unpacked }

// of is the bytes of a row that the span has.
func (f *pullForm) of(row []byte) []byte {
	if f.span[1] > 0 {
		return row[f.span[0]:f.span[1]]
	}
	return row
}

// encode appends rows, by their places at the owner, to a reply.
func (f *pullForm) encode(body []byte, from *rowSource, rows []uint32) []byte {
	if from.sparse != nil {
		return appendSparse(body, from.sparse, rows, f.keep)
	}
	var kept []byte
	for _, v := range rows {
		row := f.of(from.row(v))
		if f.keep != nil {
			kept = f.keep.appendKept(kept[:0], row)
			row = kept
		}
		body = f.packed.appendRow(body, row)
	}
	return body
}

// decode writes the rows of a reply to places of a list of rows of width bytes.
func (f *pullForm) decode(to []byte, width int, places []uint32, body []byte) error {
	each := f.bytes(width)
	if len(body) != each*len(places) {
		return fmt.Errorf("%d bytes, expected %d", len(body), each*len(places))
	}
	var kept []byte
	if f.keep != nil {
		kept = make([]byte, width/f.keep.all*len(f.keep.list))
	}
	for k, i := range places {
		row, from := to[int(i)*width:(int(i)+1)*width], body[k*each:(k+1)*each]
		if f.keep == nil {
			f.packed.unpackRow(row, from)
			continue
		}
		f.packed.unpackRow(kept, from)
		f.keep.spread(row, kept)
	}
	return nil
}

// scatter is decode for a piece of a reply that begins at an offset, of rows that stream.
func scatter(to []byte, width int, places []uint32, offset int64, piece []byte) {
	for len(piece) > 0 && int(offset) < width*len(places) {
		row, in := int(offset)/width, int(offset)%width
		n := min(len(piece), width-in)
		copy(to[int(places[row])*width+in:], piece[:n])
		piece, offset = piece[n:], offset+int64(n)
	}
}

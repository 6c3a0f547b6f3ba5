package dataset

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"

	"starling/dataset/table"
	"starling/event"
	"starling/graph"
)

// The binary files of DGL (save_graphs, save_tensors), as far as a partition has
// them. Everything is little-endian; a string is its length in eight bytes and its
// text, a list its length in eight bytes and its items.
//
//	tensor      magic | 0 (8) | device type, device (4 each) | dimensions (4)
//	            | type: code, bits (1 each), lanes (2) | sizes (8 each) | bytes (8) | data
//	tensors     magic | count (8) | list of: name, tensor
//	graphs      magic | version 2 (8) | kind 2 (8) | count (8) | unused up to 4096
//	            | offset of the first graph (8) | list of labels | graphs
//	graph       magic | metagraph | list of relations | list of vertex counts
//	            | vertex data: one list per type of lists of (name, tensor) | edge data: likewise
//	metagraph   magic | matrix of rows
//	relation    magic | form (8): 1 pairs, 2 rows, 3 columns | allowed forms (8) | metagraph | matrix
//	pairs       magic | rows, columns (8 each) | row, col, edge tensors | sorted flags (2)
//	rows        magic | rows, columns (8 each) | indptr, indices, edge tensors | sorted flag (1)

const (
	dglTensor   = 0xdd5e40f096b4a13f
	dglTensors  = 0xdd5a9fbe3fa2443f
	dglGraphs   = 0xdd2e4ff046b4a13f
	dglGraph    = 0xdd589fbe35224abf
	dglMeta     = 0xdd3c5ffe20046abf
	dglRows     = 0xdd6cd31205dff127
	dglPairs    = 0xdd61ffd305dff127
	dglRelation = 0xdd2e60f0f6b4a127
)

// dglFile reads such a file sequentially. The first failure is kept.
type dglFile struct {
	path string
	f    *os.File
	in   *bufio.Reader
	at   int64
	size int64
	err  error
}

func openDGL(path string) (*dglFile, error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, badFile(path, "", "no such file", "a file of the partition", "copy the whole folder")
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() {
		f.Close()
		return nil, badFile(path, "", "no regular file", "a file of the partition", "copy the whole folder")
	}
	return &dglFile{path: path, f: f, in: bufio.NewReaderSize(f, 1<<20), size: info.Size()}, nil
}

func (d *dglFile) fail(found, want string) {
	if d.err == nil {
		d.err = badFile(d.path, fmt.Sprintf("byte %d", d.at), found, want,
			"this file is damaged or of another version of DGL: partition again with DGL 0.9 to 2")
	}
}

func (d *dglFile) read(b []byte) {
	if d.err != nil {
		return
	}
	if _, err := io.ReadFull(d.in, b); err != nil {
		if err == io.EOF || err == io.ErrUnexpectedEOF {
			d.fail("the end of the file", "more")
		} else {
			d.err = err
		}
		return
	}
	d.at += int64(len(b))
}

func (d *dglFile) skip(n int64) {
	if d.err != nil {
		return
	}
	if n < 0 || n > d.size-d.at {
		d.fail(fmt.Sprintf("%s to come", event.Tally(n, "byte")), fmt.Sprintf("at most the %d left", d.size-d.at))
		return
	}
	if int64(d.in.Buffered()) < n {
		if _, err := d.f.Seek(d.at+n, io.SeekStart); err != nil {
			d.err = err
			return
		}
		d.in.Reset(d.f)
	} else {
		d.in.Discard(int(n))
	}
	d.at += n
}

// next is a number of n bytes, 0 after a failure.
func (d *dglFile) next(n int) uint64 {
	var b [8]byte
	d.read(b[:n])
	if d.err != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}

func (d *dglFile) magic(want uint64, what string) {
	if got := d.next(8); got != want {
		d.fail(fmt.Sprintf("mark %x", got), what)
	}
}

// count is the length of a list whose items take at least the given bytes.
func (d *dglFile) count(least int64) int {
	n := d.next(8)
	if n > uint64((d.size-d.at)/least) {
		d.fail(fmt.Sprintf("a list of %d", n), fmt.Sprintf("one that fits into %s", event.Tally(d.size-d.at, "byte")))
		return 0
	}
	return int(n)
}

func (d *dglFile) text() string {
	n := d.count(1)
	if n > 1<<12 {
		d.fail(fmt.Sprintf("a name of %s", event.Tally(n, "byte")), "a short name")
		return ""
	}
	b := make([]byte, n)
	d.read(b)
	return string(b)
}

// dglArray is the position of a tensor's numbers in the file.
type dglArray struct {
	descr string
	shape []int64
	at    int64
}

// tensor reads the head of a tensor and skips its numbers.
func (d *dglFile) tensor() dglArray {
	d.magic(dglTensor, "a tensor")
	d.skip(16) // reserved, and the device it was on
	dims := d.next(4)
	code, bits, lanes := d.next(1), d.next(1), d.next(2)
	var a dglArray
	if dims > 8 || lanes != 1 || code > 2 || bits%8 != 0 {
		d.fail(fmt.Sprintf("a tensor of %s, type %d of %s by %d", event.Tally(dims, "dimension"), code,
			event.Tally(bits, "bit"), lanes),
			"plain numbers")
		return a
	}
	a.descr = []string{"i", "u", "f"}[code] + fmt.Sprint(bits/8)
	elements, known := int64(1), table.ItemSizes[a.descr]
	for range dims {
		n := int64(d.next(8))
		if n < 0 || n > d.size || n > 0 && elements > d.size/n {
			d.fail(fmt.Sprintf("a tensor of size %d", n), "one that fits the file")
			return a
		}
		a.shape = append(a.shape, n)
		elements *= n
	}
	bytes := int64(d.next(8))
	if known != 0 && bytes != elements*int64(known) {
		d.fail(fmt.Sprintf("%s for a tensor %v of %s", event.Tally(bytes, "byte"), a.shape, a.descr),
			fmt.Sprint(elements*int64(known)))
	}
	a.at = d.at
	d.skip(bytes)
	return a
}

// named reads a list of tensors with names.
func (d *dglFile) named() map[string]dglArray {
	n := d.count(8 + 8 + 8 + 8 + 4 + 4 + 8)
	out := map[string]dglArray{}
	for i := 0; i < n && d.err == nil; i++ {
		name := d.text()
		out[name] = d.tensor()
	}
	return out
}

// tensors reads a whole file of save_tensors.
func (d *dglFile) tensors() map[string]dglArray {
	d.magic(dglTensors, "a file of DGL's save_tensors")
	d.skip(8)
	return d.named()
}

// stream reads the numbers of an array, independently of the file's own position.
func (d *dglFile) stream(a dglArray) (*table.Array, error) {
	if table.ItemSizes[a.descr] == 0 {
		return nil, badFile(d.path, "", "a tensor of "+a.descr, "float32, float64 or integers",
			"convert it before you partition")
	}
	s := &table.Array{Descr: a.descr, Shape: a.shape, Left: 1}
	for _, n := range a.shape {
		s.Left *= n
	}
	s.R = io.NewSectionReader(d.f, a.at, s.Left*int64(table.ItemSizes[a.descr]))
	return s, nil
}

// indices reads a whole array of vertices or edges.
func (d *dglFile) indices(a dglArray, what string) ([]uint32, error) {
	s, err := d.stream(a)
	if err != nil {
		return nil, err
	}
	if len(a.shape) != 1 {
		return nil, badFile(d.path, what, fmt.Sprintf("shape %v", a.shape), "one dimension", "partition again")
	}
	out := make([]uint32, a.shape[0]) // no more than the file has bytes
	if err := s.Indices(out); err != nil {
		return nil, badFile(d.path, what, graph.Sentence(err.Error()), "vertices or edges", "partition again")
	}
	return out, nil
}

// dglPart is the graph of one part, as positions in its file.
type dglPart struct {
	form                 uint64
	rows, cols           int64
	row, col, edges      dglArray // of pairs; or indptr, indices, edges
	byRows               bool
	vertexData, edgeData map[string]dglArray
}

// graph reads the only graph of a file.
func (d *dglFile) graph() (p dglPart) {
	d.magic(dglGraphs, "a file of DGL's save_graphs")
	version, kind, count := d.next(8), d.next(8), d.next(8)
	if d.err == nil && (version != 2 || kind != 2 || count != 1) {
		d.fail(fmt.Sprintf("version %d, kind %d, %s", version, kind, event.Tally(count, "graph")),
			"version 2, kind 2, one graph")
	}
	d.skip(4096 - d.at)
	d.next(8)
	d.named()
	d.magic(dglGraph, "a graph")
	d.metagraph()
	if n := d.count(8); d.err == nil && n != 1 {
		d.fail(fmt.Sprintf("%s of edges", event.Tally(n, "kind")), "one: graphs of several kinds cannot be read")
	}
	d.relation(&p)
	for i := d.count(8); i > 0 && d.err == nil; i-- {
		d.next(8)
	}
	p.vertexData, p.edgeData = d.frame(), d.frame()
	return p
}

// frame reads the data of the only type.
func (d *dglFile) frame() map[string]dglArray {
	if n := d.count(8); d.err == nil && n != 1 {
		d.fail(fmt.Sprintf("data of %s", event.Tally(n, "kind")), "one: graphs of several kinds cannot be read")
	}
	return d.named()
}

func (d *dglFile) metagraph() {
	d.magic(dglMeta, "a metagraph")
	d.magic(dglRows, "its matrix")
	var p dglPart
	d.matrix(&p, true)
}

func (d *dglFile) relation(p *dglPart) {
	d.magic(dglRelation, "a relation")
	p.form = d.next(8) & 0xffffffff
	d.next(8)
	d.metagraph()
	switch mark := d.next(8); mark {
	case dglPairs:
		d.matrix(p, false)
	case dglRows:
		d.matrix(p, true)
	default:
		d.fail(fmt.Sprintf("mark %x", mark), "edges as pairs or rows")
	}
}

func (d *dglFile) matrix(p *dglPart, byRows bool) {
	p.byRows = byRows
	p.rows, p.cols = int64(d.next(8)), int64(d.next(8))
	p.row, p.col, p.edges = d.tensor(), d.tensor(), d.tensor()
	d.skip(map[bool]int64{true: 1, false: 2}[byRows])
}

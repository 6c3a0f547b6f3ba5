package graph

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"path/filepath"

	"starling/event"
)

// Edge features arrive in the order in which edges are listed; their order in the dataset
// is known only after the edges are sorted. So a Sorter numbers them:
//
//	s := w.Sorter(n, expected, false, opt)
//	s.Number()                         // before the first Add
//	…; s.Finish()
//	w.EdgeFeatures(s.Listed(), d, each) // each puts d numbers per edge, as listed
//
// A number takes the place of a weight in the sort, as the bits of a float.

// numbersFile holds, for every edge of the graph, where it was listed.
const numbersFile = "edge_numbers.npy"

// mostNumbered bounds the edges that can be numbered: above it the bits are not a finite float.
const mostNumbered = 0x7f800000

// Number makes the sorter remember where each edge was listed, for EdgeFeatures. Such
// edges have no weights.
func (s *Sorter) Number() { s.weighted, s.numbered = true, true }

// number makes positions in a chunk those among all edges. REQUIRES: mu held.
func (s *Sorter) number(d *grouped, edges int) error {
	if s.listed+int64(edges) > mostNumbered {
		return &InputError{Field: "edges", Found: fmt.Sprintf("more than %d with features", int64(mostNumbered)),
			Want: "fewer", Fix: "split the graph"}
	}
	for i, x := range d.weights {
		d.weights[i] = math.Float32frombits(math.Float32bits(x) + uint32(s.listed))
	}
	return nil
}

// EdgeFeatures writes the features of edges that were numbered. each puts dim numbers per
// edge, any number of edges at a time, in the order they were listed.
func (w *Writer) EdgeFeatures(listed int64, dim int, each func(put func([]float32) error) error) error {
	table, err := w.Scratch()
	if err != nil {
		return err
	}
	defer table.Close()
	size, err := spillRows(table, dim, each)
	if err != nil {
		return err
	}
	if want := 4 * int64(dim) * listed; size != want {
		return &InputError{Field: "edge features", Found: event.Tally(size/4, "number"),
			Want: fmt.Sprintf("%d per edge, of which %d are listed", dim, listed),
			Fix:  "the files are not of one dataset: get them again"}
	}
	rows, err := mapFile(table, size)
	if err != nil {
		return err
	}
	defer unmapFile(rows)
	err = w.gatherEdges(fromBytes[float32](rows), dim)
	if err == nil {
		delete(w.Meta.Arrays, numbersFile)
		w.Meta.EdgeDim = dim
		err = os.Remove(filepath.Join(w.tmp, numbersFile))
	}
	return err
}

// spillRows writes numbers to a file.
func spillRows(f *os.File, dim int, each func(put func([]float32) error) error) (size int64, err error) {
	buf := bufio.NewWriterSize(f, 1<<20)
	err = each(func(x []float32) error {
		for i, v := range x {
			if math.Float32bits(v)&0x7f800000 == 0x7f800000 {
				return notFinite("edge features", v, size/4+int64(i), dim)
			}
		}
		size += 4 * int64(len(x))
		_, err := buf.Write(asBytes(x))
		return err
	})
	if err == nil {
		err = buf.Flush()
	}
	return size, err
}

// gatherEdges writes the rows of the graph's edges, in its order.
func (w *Writer) gatherEdges(rows []float32, dim int) error {
	f, err := os.Open(filepath.Join(w.tmp, numbersFile))
	if err != nil {
		return err
	}
	defer f.Close()
	file, err := mapFile(f, w.Meta.Arrays[numbersFile].Bytes)
	if err != nil {
		return err
	}
	defer unmapFile(file)
	out, err := w.Array("edge_features.npy", "<f4", w.Meta.Edges, int64(dim))
	if err != nil {
		return err
	}
	buf := bufio.NewWriterSize(out, 1<<20)
	for _, n := range fromBytes[uint32](file[unsizedHeader:]) {
		at := int64(n) * int64(dim)
		if _, err := buf.Write(asBytes(rows[at : at+int64(dim)])); err != nil {
			out.Abort()
			return err
		}
	}
	if err := buf.Flush(); err != nil {
		out.Abort()
		return err
	}
	return out.Close()
}

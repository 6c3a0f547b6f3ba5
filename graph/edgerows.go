package graph

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"path/filepath"
)

// Features of edges come in the order in which edges are listed, and that of a dataset
// is known only once the edges are sorted. So a Sorter is told to number them:
//
//	s := w.Sorter(n, expected, false, opt)
//	s.Number()                         // before the first Add
//	…; s.Finish()
//	w.EdgeFeatures(s.Listed(), d, each) // each puts d numbers an edge, as listed
//
// A number travels through the sort where a weight would, as the bits of a float.

// numbersFile holds, for every edge of the graph, where it was listed.
const numbersFile = "edge_numbers.npy"

// mostNumbered bounds the edges that are numbered: above it the bits are no finite float.
const mostNumbered = 0x7f800000

// Number makes the sorter remember where each edge was listed, for EdgeFeatures. Such
// edges have no weights.
func (s *Sorter) Number() { s.weighted, s.numbered = true, true }

// number makes positions in a chunk those among all edges. REQUIRES: mu held.
func (s *Sorter) number(d *dealt, edges int) error {
	if s.listed+int64(edges) > mostNumbered {
		return &InputError{Field: "edges", Found: fmt.Sprintf("more than %d with features", int64(mostNumbered)), Want: "fewer", Fix: "split the graph"}
	}
	for i, x := range d.weights {
		d.weights[i] = math.Float32frombits(math.Float32bits(x) + uint32(s.listed))
	}
	return nil
}

// EdgeFeatures writes the features of edges that were numbered. each puts dim numbers an
// edge, any number of edges at a time, in the order they were listed.
func (w *Writer) EdgeFeatures(listed int64, dim int, each func(put func([]float32) error) error) error {
	table, err := w.Scratch()
	if err != nil {
		return err
	}
	defer table.Close()
	size, err := putAside(table, dim, each)
	if err != nil {
		return err
	}
	if want := 4 * int64(dim) * listed; size != want {
		return &InputError{Field: "edge features", Found: fmt.Sprintf("%d numbers", size/4), Want: fmt.Sprintf("%d an edge, of which %d are listed", dim, listed), Fix: "the files are not of one dataset: get them again"}
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

// putAside writes numbers to a file.
func putAside(f *os.File, dim int, each func(put func([]float32) error) error) (size int64, err error) {
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
	for _, n := range fromBytes[uint32](file[lateHeader:]) {
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

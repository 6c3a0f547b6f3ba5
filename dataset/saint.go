package dataset

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"starling/dataset/table"
	"starling/event"
	"starling/graph"
)

// GraphSAINT folders (Flickr, Reddit, Yelp, Amazon):
//
//	adj_full.npz     scipy CSR: data, indices, indptr, shape; row i lists the targets of i
//	adj_train.npz    the same, between training vertices only
//	feats.npy        [vertices, features]
//	role.json        {"tr": [...], "va": [...], "te": [...]}
//	class_map.json   {"vertex": class} or, several labels per vertex, {"vertex": [0, 1, ...]}
//
// adj_train is not read: --inductive trains on the edges between training vertices.
// The authors standardize features by the training rows, PyG does not; Standardize
// chooses. Edges and features are streamed.
//
// H. Zeng et al.: GraphSAINT, 2020.

func readSAINT(dir string, opt ImportOptions) (*read, error) {
	edges, err := scipyCSR(filepath.Join(dir, "adj_full.npz"), opt)
	if err != nil {
		return nil, err
	}
	r, n := &read{name: cmp.Or(opt.Name, baseName(dir)), edges: edges}, edges.nodes
	for _, step := range []func() error{
		func() (err error) { r.splits, err = saintRoles(filepath.Join(dir, "role.json"), n); return },
		func() (err error) { r.labels, err = classMap(filepath.Join(dir, "class_map.json"), n); return },
		func() (err error) { r.rows, err = saintRows(filepath.Join(dir, "feats.npy"), n, r); return },
	} {
		if err := step(); err != nil {
			r.edges.close()
			return nil, err
		}
	}
	return r, nil
}

// saintRows streams the features, which may be absent.
func saintRows(path string, n int, r *read) (*rowFeed, error) {
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		r.notes = append(r.notes, "no feats.npy: the dataset has no features")
		return nil, nil
	}
	return rowsOf(path, "", n, func() (*table.Array, error) { return table.OpenArray(path) })
}

// scipyCSR streams the edges of a matrix that scipy.sparse.save_npz wrote: row i
// lists the targets of i.
func scipyCSR(path string, opt ImportOptions) (*edgeFeed, error) {
	z, err := openNPZ(path)
	if err != nil {
		return nil, err
	}
	z.kind = "scipy CSR"
	fail := func(err error) (*edgeFeed, error) {
		z.zip.Close()
		return nil, err
	}
	if form := z.format(); form != "csr" && form != "" {
		return fail(z.bad("format", fmt.Sprintf("%q", form), "csr: save matrix.tocsr()"))
	}
	n, err := z.square()
	if err != nil {
		return fail(err)
	}
	a, err := z.array("indptr")
	if err != nil {
		return fail(err)
	}
	ptr, err := a.int64s()
	if err != nil || len(ptr) != n+1 || ptr[0] != 0 || !slices.IsSorted(ptr) || ptr[n] > graph.MaxEdges {
		return fail(z.bad("indptr", fmt.Sprintf("shape %v of %s", a.shape, a.descr),
			fmt.Sprintf("%s that never fall", event.Tally(n+1, "offset"))))
	}
	head, err := z.stream("indices")
	if err != nil {
		return fail(err)
	}
	head.Close()
	if len(head.Shape) != 1 || head.Shape[0] != ptr[n] {
		return fail(z.bad("indices", fmt.Sprintf("shape %v", head.Shape),
			fmt.Sprintf("[%d], the last of indptr", ptr[n])))
	}
	return &edgeFeed{nodes: n, expected: ptr[n], close: func() { z.zip.Close() }, fill: func(s *graph.Sorter) error {
		a, err := z.stream("indices")
		if err != nil {
			return err
		}
		defer a.Close()
		return z.named("indices", addPairs(s, expandRows(ptr), prefetch(a, ptr[n], true)))
	}}, nil
}

// format is the kind of matrix that scipy saved: those by rows and by columns have arrays of
// the same names.
func (z *npz) format() string {
	if z.find("format") == nil {
		return "" // of an old scipy
	}
	a, err := z.array("format")
	if err != nil {
		return err.Error()
	}
	return strings.ReplaceAll(string(a.data), "\x00", "") // also of text that numpy kept in UTF-32
}

// square reads the shape of a scipy matrix.
func (z *npz) square() (n int, err error) {
	a, err := z.array("shape")
	if err != nil {
		return 0, err
	}
	shape, err := a.int64s()
	if err != nil || len(shape) != 2 || shape[0] != shape[1] || shape[0] < 1 || shape[0] > graph.MaxNodes {
		return 0, z.bad("shape", fmt.Sprintf("%.60v", shape), "a square matrix")
	}
	return int(shape[0]), nil
}

// expandRows streams the row of every element of a CSR matrix.
func expandRows(ptr []int64) *pieces {
	row, at := 0, int64(0)
	return newPieces(ptr[len(ptr)-1], func(x []uint32) error {
		for i := range x {
			for ptr[row+1] <= at {
				row++
			}
			x[i] = uint32(row)
			at++
		}
		return nil
	}, nil)
}

// saintRoles reads role.json.
func saintRoles(path string, n int) (s graph.Splits, err error) {
	in, err := table.OpenText(path)
	if err != nil {
		return s, err
	}
	defer in.Close()
	var roles map[string][]uint32
	if err := json.NewDecoder(in).Decode(&roles); err != nil {
		return s, badFile(path, "", graph.Sentence(err.Error()), `{"tr": […], "va": […], "te": […]} of vertex numbers`,
			"download the file again")
	}
	for name := range roles {
		if name != "tr" && name != "va" && name != "te" {
			return s, badFile(path, fmt.Sprintf("%.40q", name), "an unknown role", "tr, va and te",
				"download the file again")
		}
	}
	s = graph.Splits{Train: roles["tr"], Val: roles["va"], Test: roles["te"]}
	for _, ids := range []*[]uint32{&s.Train, &s.Val, &s.Test} {
		if err := checkSplit(path, ids, n); err != nil {
			return s, err
		}
	}
	return s, nil
}

// classMap streams class_map.json, which may be hundreds of megabytes.
// Vertices it does not name have no label.
func classMap(path string, n int) (*graph.Labels, error) {
	in, err := table.OpenText(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	m := classReader{path: path, n: n, in: bufio.NewReaderSize(in, 1<<20)}
	if info, err := os.Stat(path); err == nil {
		m.most = 64*info.Size() + 1<<20
	}
	l, err := m.read()
	var bad *classError
	if errors.As(err, &bad) {
		err = badFile(path, fmt.Sprintf("byte %d", m.at), bad.found, bad.want, "download the file again")
	}
	return l, err
}

// classReader is a reader of one JSON object whose keys are vertices and whose
// values are whole numbers or lists of them.
type classReader struct {
	path string
	n    int
	in   *bufio.Reader
	at   int64
	most int64 // the most marks a file of this size can have
	l    graph.Labels
	row  []uint8
}

type classError struct{ found, want string }

func (e *classError) Error() string { return e.found + ", want " + e.want }

// next is the following byte that is not blank.
func (m *classReader) next() (byte, error) {
	for {
		c, err := m.in.ReadByte()
		if err == io.EOF {
			err = &classError{"the end of the file", "a whole JSON object"}
		}
		if err != nil {
			return 0, err
		}
		m.at++
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' {
			return c, nil
		}
	}
}

func (m *classReader) want(list string) (byte, error) {
	c, err := m.next()
	if err != nil {
		return 0, err
	}
	if strings.IndexByte(list, c) >= 0 {
		return c, nil
	}
	return 0, &classError{fmt.Sprintf("%q", c), fmt.Sprintf("one of %s", list)}
}

// number reads a whole number whose first byte is c, and the byte after it.
func (m *classReader) number(c byte, limit int) (x int, after byte, err error) {
	digits := make([]byte, 0, 24)
	for c >= '0' && c <= '9' || c == '-' || c == '.' {
		if digits = append(digits, c); len(digits) > 20 {
			break
		}
		if c, err = m.next(); err != nil {
			return 0, 0, err
		}
	}
	f, err := strconv.ParseFloat(string(digits), 64)
	if x = int(f); err != nil || float64(x) != f || x < 0 || x >= limit {
		return 0, 0, &classError{fmt.Sprintf("%q", append(digits, c)),
			fmt.Sprintf("a whole number from 0 to %d", limit-1)}
	}
	return x, c, nil
}

func (m *classReader) read() (*graph.Labels, error) {
	if _, err := m.want("{"); err != nil {
		return nil, err
	}
	seen := make([]bool, m.n)
	for opening := "\"}"; ; opening = "\"" {
		c, err := m.want(opening)
		if err != nil {
			return nil, err
		}
		if c == '}' {
			break
		}
		v, err := m.key()
		if err != nil {
			return nil, err
		}
		if seen[v] {
			return nil, &classError{fmt.Sprintf("vertex %d twice", v), "each once"}
		}
		seen[v] = true
		after, err := m.value(v)
		if err != nil {
			return nil, err
		}
		if after == '}' {
			break
		}
		if after != ',' {
			return nil, &classError{fmt.Sprintf("%q", after), "a comma or the end of the object"}
		}
	}
	if m.l.Classes == 0 {
		return nil, &classError{"no label", "a label for some vertices"}
	}
	return &m.l, nil
}

func (m *classReader) key() (v int, err error) {
	c, err := m.next()
	if err != nil {
		return 0, err
	}
	v, c, err = m.number(c, m.n)
	if err == nil && c != '"' {
		err = &classError{fmt.Sprintf("%q", c), "a vertex number in quotes"}
	}
	if err != nil {
		return 0, err
	}
	_, err = m.want(":")
	return v, err
}

// value reads the label of v and returns the byte after it.
func (m *classReader) value(v int) (after byte, err error) {
	c, err := m.next()
	if err != nil {
		return 0, err
	}
	if c == '[' {
		if err := m.marks(v); err != nil {
			return 0, err
		}
		return m.next()
	}
	if m.l.Multi != nil {
		return 0, &classError{"one label", "a list, as other vertices have"}
	}
	x, after, err := m.number(c, maxClasses)
	if err != nil {
		return 0, err
	}
	if m.l.Class == nil {
		m.l.Class = make([]int32, m.n)
		for i := range m.l.Class {
			m.l.Class[i] = -1
		}
	}
	m.l.Class[v] = int32(x)
	m.l.Classes = max(m.l.Classes, x+1)
	return after, nil
}

// marks reads a list of 0 and 1 up to its bracket.
func (m *classReader) marks(v int) error {
	m.row = m.row[:0]
	for {
		c, err := m.next()
		if err != nil {
			return err
		}
		x, after, err := m.number(c, 2)
		if err != nil {
			return err
		}
		if m.row = append(m.row, uint8(x)); len(m.row) > maxClasses {
			return &classError{"a list without end", fmt.Sprintf("at most %d classes", maxClasses)}
		}
		if after == ']' {
			break
		}
		if after != ',' {
			return &classError{fmt.Sprintf("%q", after), "a comma or ]"}
		}
	}
	if m.l.Class != nil || m.l.Multi != nil && len(m.row) != m.l.Classes {
		return &classError{fmt.Sprintf("%s for vertex %d", event.Tally(len(m.row), "mark"), v),
			"as many as other vertices have"}
	}
	if int64(m.n)*int64(len(m.row)) > m.most {
		return &classError{fmt.Sprintf("%s for one of %s in so small a file", event.Tally(len(m.row), "mark"),
			event.Tally(m.n, "vertex")),
			"marks for most vertices"}
	}
	if m.l.Multi == nil {
		m.l.Classes = len(m.row)
		m.l.Multi = make([]uint8, m.n*m.l.Classes)
		for i := range m.l.Multi {
			m.l.Multi[i] = graph.NoLabel
		}
	}
	copy(m.l.Row(v), m.row)
	return nil
}

// Package candidates reads files of pairs and of what these are ranked among.
package candidates

import (
	"archive/zip"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"starling/dataset/table"
	"starling/event"
	"starling/graph"
)

// Candidates are pairs of vertices with others that they are ranked among. Of a file, with vertices by their names before
// import:
//
//	.npz   source [N], target [N] and target_neg [N, K] (or OGB's source_node, target_node, target_node_neg);
//	       or edge [N, 2] and edge_neg [M, 2], which all pairs share
//	.npy   [N, 2+K]: source, target, and K candidates of each pair
//	.csv   the same, a line per pair
type Candidates struct {
	Left, Right []uint32
	Against     []uint32 // K of each pair
	K           int      // 0: candidates are shared
	SharedLeft  []uint32
	SharedRight []uint32
}

// Ends find vertices by their names: those that pairs begin at, and those that they end at.
type Ends struct {
	Source, Target func(name string) (uint32, bool)
}

// file is one that is read.
type file struct {
	path  string
	pairs Ends
}

// Read reads a file of candidates.
func Read(path string, ends Ends) (*Candidates, error) {
	f := &file{path, ends}
	switch strings.ToLower(filepath.Ext(path)) {
	case ".npz":
		return f.readNPZ()
	case ".npy":
		a, err := table.OpenArray(path)
		if err != nil {
			return nil, err
		}
		return f.readRows(a)
	case ".csv":
		return f.readCSV()
	}
	return nil, f.bad("", "a name that ends otherwise", "a file that ends in .npz, .npy or .csv")
}

func (f *file) bad(field, found, want string) error {
	return &graph.InputError{File: f.path, Field: field, Found: found, Want: want,
		Fix: "docs/links.md has the formats of candidates"}
}

// matrix is whole numbers, row by row.
type matrix struct {
	name    string
	numbers []uint32
	shape   []int64
}

// take reads an array, and closes it.
func (f *file) take(name string, a *table.Array) (*matrix, error) {
	defer a.Close()
	m := &matrix{name: name, shape: a.Shape}
	piece := make([]uint32, table.PieceNumbers)
	for a.Left > 0 {
		some := piece[:min(int64(len(piece)), a.Left)]
		if err := a.Indices(some); err != nil {
			return nil, f.bad(name, graph.Sentence(err.Error()), "an array of vertices, whole numbers from 0")
		}
		m.numbers = append(m.numbers, some...)
	}
	if err := a.End(); err != nil {
		return nil, f.bad(name, graph.Sentence(err.Error()), "a whole array")
	}
	return m, nil
}

// rows checks that an array has some rows of columns; 0: as many rows as there are.
func (f *file) rows(m *matrix, rows, columns int64) error {
	shape := m.shape
	if columns == 1 && len(shape) == 1 {
		shape = append(slices.Clone(shape), 1)
	}
	if len(shape) != 2 || shape[0] == 0 || rows > 0 && shape[0] != rows || shape[1] < 1 ||
		columns > 0 && shape[1] != columns {
		want := "[N, K]"
		switch {
		case rows > 0 && columns == 0:
			want = fmt.Sprintf("[%d, K], a row per pair", rows)
		case columns == 1:
			want = "[N], a vertex per pair"
			if rows > 0 {
				want = fmt.Sprintf("[%d], a vertex per pair", rows)
			}
		case columns > 1:
			want = fmt.Sprintf("[N, %d]", columns)
		}
		return f.bad(m.name, fmt.Sprintf("shape %v", m.shape), want)
	}
	return nil
}

// vertices replaces names by vertices.
func (f *file) vertices(name string, numbers []uint32, find func(string) (uint32, bool)) error {
	for i, x := range numbers {
		v, ok := find(strconv.FormatUint(uint64(x), 10))
		if !ok {
			return f.bad(name, fmt.Sprintf("%d", x), "vertices of the dataset, by their names before import")
		}
		numbers[i] = v
	}
	return nil
}

// readRows reads pairs with their candidates in rows.
func (f *file) readRows(a *table.Array) (*Candidates, error) {
	m, err := f.take("array", a)
	if err != nil {
		return nil, err
	}
	if len(m.shape) != 2 || m.shape[0] == 0 || m.shape[1] < 3 {
		return nil, f.bad("array", fmt.Sprintf("shape %v", m.shape), "[N, 2+K]: source, target and K candidates of each pair")
	}
	width := int(m.shape[1])
	c := &Candidates{K: width - 2}
	for row := range slices.Chunk(m.numbers, width) {
		c.Left, c.Right, c.Against = append(c.Left, row[0]), append(c.Right, row[1]), append(c.Against, row[2:]...)
	}
	return c, first(f.named(c, "array"))
}

// named replaces the names in pairs with candidates of their own.
func (f *file) named(c *Candidates, fields ...string) error {
	field := func(i int) string { return fields[i%len(fields)] }
	return errors.Join(f.vertices(field(0), c.Left, f.pairs.Source), f.vertices(field(1), c.Right, f.pairs.Target),
		f.vertices(field(2), c.Against, f.pairs.Target))
}

// readNPZ reads arrays by name.
func (f *file) readNPZ() (*Candidates, error) {
	z, err := zip.OpenReader(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, f.bad("", "no such file", "a file of candidates")
	}
	if err != nil {
		return nil, f.bad("", graph.Sentence(err.Error()), "an npz file, which is a zip")
	}
	defer z.Close()
	if f.has(z, "edge") {
		return f.readShared(z)
	}
	var m [3]*matrix
	names := [3]string{"source", "target", "target_neg"}
	for i, ogb := range []string{"source_node", "target_node", "target_node_neg"} {
		if !f.has(z, names[i]) {
			if !f.has(z, ogb) {
				return nil, f.bad("", "no array "+names[i], "arrays source, target and target_neg, or edge and edge_neg")
			}
			names[i] = ogb
		}
		if m[i], err = f.array(z, names[i]); err != nil {
			return nil, err
		}
	}
	if err := f.rows(m[0], 0, 1); err != nil {
		return nil, err
	}
	n := m[0].shape[0]
	if err := errors.Join(f.rows(m[1], n, 1), f.rows(m[2], n, 0)); err != nil {
		return nil, first(err)
	}
	c := &Candidates{Left: m[0].numbers, Right: m[1].numbers, Against: m[2].numbers, K: int(m[2].shape[1])}
	return c, first(f.named(c, names[:]...))
}

// readShared reads pairs, and negatives that all share.
func (f *file) readShared(z *zip.ReadCloser) (*Candidates, error) {
	c := &Candidates{}
	for _, list := range []struct {
		name        string
		left, right *[]uint32
	}{{"edge", &c.Left, &c.Right}, {"edge_neg", &c.SharedLeft, &c.SharedRight}} {
		name := list.name
		if !f.has(z, name) {
			return nil, f.bad("", "no array "+name, "arrays edge and edge_neg")
		}
		m, err := f.array(z, name)
		if err != nil {
			return nil, err
		}
		if err := f.rows(m, 0, 2); err != nil {
			return nil, err
		}
		for pair := range slices.Chunk(m.numbers, 2) {
			*list.left, *list.right = append(*list.left, pair[0]), append(*list.right, pair[1])
		}
		if err := errors.Join(f.vertices(name, *list.left, f.pairs.Source),
			f.vertices(name, *list.right, f.pairs.Target)); err != nil {
			return nil, first(err)
		}
	}
	return c, nil
}

// first is the first of joined errors: a message has one sentence.
func first(err error) error {
	if all, ok := err.(interface{ Unwrap() []error }); ok {
		return all.Unwrap()[0]
	}
	return err
}

func (f *file) has(z *zip.ReadCloser, name string) bool {
	return slices.ContainsFunc(z.File, func(a *zip.File) bool { return a.Name == name+".npy" })
}

// array reads one of an npz.
func (f *file) array(z *zip.ReadCloser, name string) (*matrix, error) {
	at := z.File[slices.IndexFunc(z.File, func(a *zip.File) bool { return a.Name == name+".npy" })]
	r, err := at.Open()
	if err != nil {
		return nil, f.bad(name, graph.Sentence(err.Error()), "an npy array")
	}
	a, err := table.NewArray(r, int64(at.UncompressedSize64))
	if err != nil {
		r.Close()
		return nil, f.bad(name, graph.Sentence(err.Error()), "an npy array of numbers")
	}
	a.Closing = r.Close
	return f.take(name, a)
}

// readCSV reads a line per pair.
func (f *file) readCSV() (*Candidates, error) {
	in, err := os.Open(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, f.bad("", "no such file", "a file of candidates")
	}
	if err != nil {
		return nil, err
	}
	defer in.Close()
	const want = "a line per pair: source, target, and as many candidates in each"
	lines, c := csv.NewReader(in), &Candidates{}
	lines.Comment, lines.TrimLeadingSpace, lines.ReuseRecord = '#', true, true
	for {
		names, err := lines.Read()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, f.bad("", graph.Sentence(err.Error()), want)
		}
		line, _ := lines.FieldPos(0)
		if len(names) < 3 {
			return nil, f.bad(fmt.Sprintf("line %d", line), event.Tally(len(names), "column"), want)
		}
		for i, name := range names {
			find, to := f.pairs.Target, &c.Against
			switch i {
			case 0:
				find, to = f.pairs.Source, &c.Left
			case 1:
				to = &c.Right
			}
			v, ok := find(strings.TrimSpace(name))
			if !ok {
				return nil, f.bad(fmt.Sprintf("line %d", line), fmt.Sprintf("%.80q", name),
					"vertices of the dataset, by their names before import")
			}
			*to = append(*to, v)
		}
	}
	if len(c.Left) == 0 {
		return nil, f.bad("", "no pairs", want)
	}
	c.K = len(c.Against) / len(c.Left)
	return c, nil
}

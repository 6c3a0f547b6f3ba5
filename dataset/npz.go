package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/klauspost/compress/zip"

	"starling/dataset/table"
	"starling/event"
	"starling/graph"
)

// gnn-benchmark npz files (Amazon, Coauthor, Cora …): a zip of npy arrays.
//
//	adj_{data,indices,indptr,shape}    scipy CSR, row i lists the targets of i, one way
//	attr_{data,indices,indptr,shape}   features, or one dense attr_matrix
//	labels                             integers
//	node_names                         kept as ids if it is an array of text
//
// Everything else (class names, pickled objects) is left alone. The published
// experiments draw the split themselves: 20 per class to train, 500 to validate, 1000
// to test, unless the options say otherwise.
//
// O. Shchur et al.: Pitfalls of graph neural network evaluation, 2018.

var npzSplit = SplitOptions{PerClass: 20, ValCount: 500, TestCount: 1000}

// maxInflate bounds the compression ratio: deflate's limit is about 1032.
const maxInflate = 1040

type npz struct {
	path string
	zip  *zip.ReadCloser
	kind string // the expected kind of file
}

func readNPZ(path string, opt ImportOptions) (*read, error) {
	z, err := openNPZ(path)
	if err != nil {
		return nil, err
	}
	defer z.zip.Close()
	r := &read{name: cmp.Or(opt.Name, strings.TrimSuffix(filepath.Base(path), ".npz"))}
	adj, err := z.sparse("adj")
	if err != nil {
		return nil, err
	}
	if adj.Rows != adj.Cols || adj.Rows == 0 {
		return nil, z.bad("adj_shape", fmt.Sprintf("%d×%d", adj.Rows, adj.Cols), "a square matrix")
	}
	if r.features, err = z.features(adj.Rows); err != nil {
		return nil, err
	}
	if r.labels, err = z.labels(adj.Rows, opt.Task, &r.notes); err != nil {
		return nil, err
	}
	if r.textIDs, err = z.names(adj.Rows); err != nil {
		return nil, err
	}
	if r.labels != nil {
		usual := npzSplit
		if r.labels.Kind() != graph.SingleLabel { // without classes there is no number of vertices per class
			usual = UsualSplit
		}
		if r.splits, err = opt.Split.or(usual).split(r.labels, opt.Seed); err != nil {
			return nil, err
		}
	}
	opt.Symmetrize = true
	return r, r.build(adj.Rows, sources(adj), adj.Indices, nil, opt)
}

// sources is the row of every element.
func sources(f *graph.Features) []uint32 {
	src := make([]uint32, len(f.Indices))
	for v := range f.Rows {
		for i := f.Indptr[v]; i < f.Indptr[v+1]; i++ {
			src[i] = uint32(v)
		}
	}
	return src
}

func openNPZ(path string) (*npz, error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil, badFile(path, "", "no such file", "an npz file", "check the path")
		}
		if info, err := os.Stat(path); err == nil && info.IsDir() {
			return nil, badFile(path, "", "a folder", "an npz file", "name the file inside it")
		}
		var system *fs.PathError
		if errors.As(err, &system) {
			return nil, err
		}
		return nil, badFile(path, "zip", graph.Sentence(err.Error()), "an npz file, which is a zip", "download it again")
	}
	return &npz{path, z, "gnn-benchmark"}, nil
}

func (z *npz) bad(field, found, want string) error {
	return badFile(z.path, field, found, want, z.fix())
}

func (z *npz) fix() string {
	return "this is no " + z.kind + " file, or it is damaged: download it again"
}

func (z *npz) find(name string) *zip.File {
	at := slices.IndexFunc(z.zip.File, func(f *zip.File) bool { return f.Name == name+".npy" })
	if at < 0 {
		return nil
	}
	return z.zip.File[at]
}

// open is an array's bytes, and how many there are.
func (z *npz) open(name string) (io.ReadCloser, int64, error) {
	f := z.find(name)
	if f == nil {
		return nil, 0, z.bad(name, "no such array", "the arrays of this format")
	}
	if f.UncompressedSize64 > f.CompressedSize64*maxInflate+1024 {
		return nil, 0, z.bad(name, fmt.Sprintf("%s unpacked from %d", event.Tally(f.UncompressedSize64, "byte"),
			f.CompressedSize64),
			"sizes that are possible")
	}
	r, err := f.Open()
	if err != nil {
		return nil, 0, z.bad(name, graph.Sentence(err.Error()), "an npy array")
	}
	return r, int64(f.UncompressedSize64), nil
}

func (z *npz) array(name string) (*ndarray, error) {
	r, size, err := z.open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	a, err := readArray(r, size)
	if err == nil {
		// The checksum is compared when the end is reached.
		_, err = io.Copy(io.Discard, r)
	}
	if err != nil {
		return nil, z.bad(name, graph.Sentence(err.Error()), "a whole array of numbers")
	}
	return a, nil
}

func (z *npz) sparse(prefix string) (*graph.Features, error) {
	var parts [4]*ndarray
	for i, name := range []string{"indptr", "indices", "data", "shape"} {
		a, err := z.array(prefix + "_" + name)
		if err != nil {
			return nil, err
		}
		parts[i] = a
	}
	shape, err := parts[3].int64s()
	if err != nil || len(shape) != 2 {
		return nil, z.bad(prefix+"_shape", fmt.Sprint(shape), "two sizes")
	}
	f, err := sparse(parts[0], parts[1], parts[2], shape[0], shape[1])
	if err != nil {
		return nil, table.Because(z.path, prefix+"_*", err, "a CSR matrix", z.fix())
	}
	return f, nil
}

func (z *npz) features(rows int) (*graph.Features, error) {
	var f *graph.Features
	switch {
	case z.find("attr_indptr") != nil:
		var err error
		if f, err = z.sparse("attr"); err != nil {
			return nil, err
		}
	case z.find("attr_matrix") != nil:
		a, err := z.array("attr_matrix")
		if err != nil {
			return nil, err
		}
		x, err := a.float32s()
		if err != nil || len(a.shape) != 2 {
			return nil, z.bad("attr_matrix", fmt.Sprintf("shape %v of %s", a.shape, a.descr), "a matrix of numbers")
		}
		f = &graph.Features{Rows: int(a.shape[0]), Cols: int(a.shape[1]), F32: x}
	default:
		return nil, nil
	}
	if f.Rows != rows || f.Cols == 0 {
		return nil, z.bad("attr_shape", fmt.Sprintf("%d×%d", f.Rows, f.Cols),
			fmt.Sprintf("one row per vertex (%d)", rows))
	}
	return f, nil
}

func (z *npz) labels(rows int, task string, notes *[]string) (*graph.Labels, error) {
	if z.find("labels") == nil {
		return nil, nil
	}
	if l, err := z.targets("labels", rows, task, notes); l != nil || err != nil {
		return l, err
	}
	return z.classes("labels", rows)
}

// classes reads one class per vertex; nil if no vertex has one.
func (z *npz) classes(name string, rows int) (*graph.Labels, error) {
	a, err := z.array(name)
	if err != nil {
		return nil, err
	}
	x, err := a.int64s()
	if err != nil || len(a.shape) != 1 || len(x) != rows {
		return nil, z.bad(name, fmt.Sprintf("shape %v of %s", a.shape, a.descr),
			fmt.Sprintf("an integer a vertex (%d)", rows))
	}
	l := &graph.Labels{Class: make([]int32, rows)}
	for v, c := range x {
		if c < -1 || c > maxClasses {
			return nil, z.bad(name, fmt.Sprintf("class %d at vertex %d", c, v), "classes from 0, or -1 for none")
		}
		l.Class[v] = int32(c)
		l.Classes = max(l.Classes, int(c)+1)
	}
	if l.Classes == 0 {
		return nil, nil
	}
	return l, nil
}

// maxClasses bounds class numbers, so that a wrong one does not make a wide layer.
const maxClasses = 1 << 20

// names reads node_names if it is text of fixed width (UTF-32, zero-padded).
func (z *npz) names(rows int) ([]string, error) {
	if z.find("node_names") == nil {
		return nil, nil
	}
	a, err := z.array("node_names")
	if err != nil || !strings.HasPrefix(a.descr, "U") || len(a.shape) != 1 || int(a.shape[0]) != rows {
		return nil, nil // names of another type are not used
	}
	width := len(a.data) / rows
	ids := make([]string, rows)
	for v := range ids {
		var name []rune
		for i := 0; i < width; i += 4 {
			b := a.data[v*width+i:]
			if c := rune(b[0]) | rune(b[1])<<8 | rune(b[2])<<16; c != 0 && c != '\n' {
				name = append(name, c)
			}
		}
		ids[v] = string(name)
	}
	return ids, nil
}

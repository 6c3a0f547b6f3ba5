package graph

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"starling/disk"
	"starling/event"
)

// Writer streams a dataset to disk, one array at a time, without holding
// one in memory. It writes to a hidden folder beside the target; Commit renames it.
//
//	w, err := graph.Create(dir, graph.WriterOptions{})
//	defer w.Abort()            // does nothing after Commit
//	w.Graph(g); w.Features(f)  // in any order, each at most once
//	err = w.Commit()
type Writer struct {
	Meta Meta // the caller sets Name, Source and Notes; the rest is filled in

	dir, tmp  string
	folder    *disk.Folder // nil: the folder was there before
	overwrite bool
	done      bool
	splits    Splits
	labels    *Labels
}

// WriterOptions says what Create may do.
type WriterOptions struct {
	Overwrite bool // replace an existing dataset (never any other folder)
}

// Create starts a dataset that will appear at dir.
func Create(dir string, opt WriterOptions) (*Writer, error) {
	if !littleEndian {
		return nil, errors.New("datasets cannot be written on a big-endian machine")
	}
	dir = filepath.Clean(dir)
	if err := checkTarget(dir, opt.Overwrite); err != nil {
		return nil, err
	}
	folder, err := NewFolder(dir)
	if err != nil {
		return nil, err
	}
	w := &Writer{dir: dir, tmp: folder.Tmp, folder: folder, overwrite: opt.Overwrite}
	w.Meta = Meta{Format: formatName, Version: formatVersion, Name: filepath.Base(dir), Checksum: "crc32c",
		Arrays: map[string]ArrayMeta{}}
	return w, nil
}

// Dir is where the dataset will appear.
func (w *Writer) Dir() string { return w.dir }

// checkTarget refuses to replace anything but a dataset, and that without overwrite.
func checkTarget(dir string, overwrite bool) error {
	if _, err := os.Lstat(dir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	if !IsDataset(dir) {
		return &InputError{File: dir, Found: "something that is no dataset", Want: "a new name or an existing dataset",
			Fix: "choose another output folder or remove this one yourself"}
	}
	if !overwrite {
		return &InputError{File: dir, Found: "an existing dataset", Want: "a new name",
			Fix: "choose another folder, or replace this one with --overwrite"}
	}
	return CheckReplaced(dir, "dataset", slices.Concat(folderFiles, piecePatterns)...)
}

// folderFiles are all files of a dataset folder.
var folderFiles = []string{metaFile, "indptr.npy", "indices.npy", "weights.npy", "edge_features.npy", "features.npy",
	"features_indptr.npy", "features_indices.npy", "features_values.npy", "labels.npy", "train.npy", "val.npy",
	"test.npy", "ids.npy", "ids.txt", relationsFile, edgeTimesFile, timesFile,
	preparationFile, "features_[0-9]*.npy", "labels_[0-9]*.npy", "train_[0-9]*.npy",
	"val_[0-9]*.npy", "test_[0-9]*.npy", "ids_[0-9]*.npy", "ids_[0-9]*.txt"}

// CheckReplaced refuses to replace a folder that holds anything that does not match the
// patterns: a run or notes kept in a dataset would be lost.
func CheckReplaced(dir, what string, patterns ...string) error {
	name, err := disk.Unexpected(dir, patterns...)
	if err != nil || name == "" {
		return err
	}
	return &InputError{File: dir, Found: name + " in it, which is no part of a " + what, Want: "a " + what +
		" and nothing else to replace",
		Fix: "move it away first, or choose another folder"}
}

// ArrayWriter writes one array; Close checks that it is complete.
type ArrayWriter struct {
	w     *Writer
	f     *os.File
	name  string
	meta  ArrayMeta
	want  int64
	sum   uint32
	bytes int64
	early int64 // bytes whose flush has started
}

// flushFrom is the number of bytes from which a flush is started before Close.
const flushFrom = 8 << 20

// Array starts an array of the given dtype (numpy's name, such as "<f4") and
// shape. Write takes its little-endian bytes; WriteSlice takes slices.
func (w *Writer) Array(name, descr string, shape ...int64) (*ArrayWriter, error) {
	h := NPYHeader{Descr: descr, Shape: shape}
	if err := h.checkSize(); err != nil {
		return nil, inFile(name, err)
	}
	a, err := w.open(name)
	if err != nil {
		return nil, err
	}
	head := npyHeader(descr, shape)
	a.meta = ArrayMeta{DType: descr, Shape: shape}
	a.want = int64(len(head)) + h.DataBytes()
	_, err = a.Write(head)
	return a, err
}

func (w *Writer) open(name string) (*ArrayWriter, error) {
	f, err := os.OpenFile(filepath.Join(w.tmp, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		return nil, err
	}
	return &ArrayWriter{w: w, f: f, name: name, want: -1}, nil
}

// Write appends bytes.
func (a *ArrayWriter) Write(b []byte) (int, error) {
	n, err := a.f.Write(b)
	a.sum = crc32.Update(a.sum, castagnoli, b[:n])
	a.bytes += int64(n)
	if a.bytes-a.early >= flushFrom {
		startFlush(a.f, a.early, a.bytes-a.early)
		a.early = a.bytes
	}
	return n, err
}

// Close syncs the array to disk and records its checksum.
func (a *ArrayWriter) Close() error {
	err := a.f.Sync()
	if err := errors.Join(err, a.f.Close()); err != nil {
		return err
	}
	if a.want >= 0 && a.bytes != a.want {
		return fmt.Errorf("%s: wrote %s of an array of %d", a.name, event.Tally(a.bytes, "byte"), a.want)
	}
	a.meta.Bytes, a.meta.CRC32C = a.bytes, fmt.Sprintf("%08x", a.sum)
	a.w.Meta.Arrays[a.name] = a.meta
	return nil
}

// WriteSlice appends elements of an array.
func WriteSlice[T element](a *ArrayWriter, s []T) error {
	_, err := a.Write(asBytes(s))
	return err
}

// writeArray writes a whole array.
func writeArray[T element](w *Writer, name string, s []T, shape ...int64) error {
	if shape == nil {
		shape = []int64{int64(len(s))}
	}
	a, err := w.Array(name, descrOf[T](), shape...)
	if err != nil {
		return err
	}
	if err := WriteSlice(a, s); err != nil {
		a.f.Close()
		return err
	}
	return a.Close()
}

// Graph writes the edges and records whether they are symmetric.
func (w *Writer) Graph(g *CSR) error {
	if err := g.Validate(); err != nil {
		return inFile(w.dir, err)
	}
	w.Meta.Nodes, w.Meta.Edges, w.Meta.Symmetric = int64(g.Nodes()), g.Edges(), g.Symmetric()
	if err := writeArray(w, "indptr.npy", g.Indptr); err != nil {
		return err
	}
	if err := writeArray(w, "indices.npy", g.Indices); err != nil {
		return err
	}
	if g.Weights != nil {
		if err := writeArray(w, "weights.npy", g.Weights); err != nil {
			return err
		}
	}
	if g.Relations != nil {
		if err := writeArray(w, relationsFile, g.Relations); err != nil {
			return err
		}
	}
	if g.EdgeTimes != nil {
		if err := w.EdgeTimes(g.EdgeTimes); err != nil {
			return err
		}
	}
	if g.EdgeFeatures == nil {
		return nil
	}
	w.Meta.EdgeDim = g.EdgeDim
	return writeArray(w, "edge_features.npy", g.EdgeFeatures, g.Edges(), int64(g.EdgeDim))
}

// Features writes features that are in memory (or mapped); values must be finite.
func (w *Writer) Features(f *Features) error {
	if err := f.Validate(); err != nil {
		return inFile(w.dir, err)
	}
	if err := f.CheckFinite(); err != nil {
		return inFile(w.dir, err)
	}
	w.featureMeta(f.Kind(), f.Cols)
	shape := []int64{int64(f.Rows), int64(f.Cols)}
	switch f.Kind() {
	case Dense:
		return writeArray(w, "features.npy", f.F32, shape...)
	case BFloat16:
		return writeArray(w, "features.npy", f.BF16, shape...)
	}
	if err := writeArray(w, "features_indptr.npy", f.Indptr); err != nil {
		return err
	}
	if err := writeArray(w, "features_indices.npy", f.Indices); err != nil {
		return err
	}
	return writeArray(w, "features_values.npy", f.Values)
}

// DenseFeatures starts dense features that are written row by row: with
// WriteSlice of float32 for Dense, of uint16 for BFloat16. The caller ensures
// finite values and calls Close.
func (w *Writer) DenseFeatures(kind FeatureKind, rows, cols int) (*ArrayWriter, error) {
	descr := map[FeatureKind]string{Dense: "<f4", BFloat16: "<u2"}[kind]
	w.featureMeta(kind, cols)
	return w.Array("features.npy", descr, int64(rows), int64(cols))
}

// featureMeta keeps the columns and the scale that the caller may have set before.
func (w *Writer) featureMeta(kind FeatureKind, cols int) {
	if w.Meta.Features == nil {
		w.Meta.Features = &FeatureMeta{}
	}
	w.Meta.Features.Kind, w.Meta.Features.Dim = kind, cols
}

// Labels writes the classes; Commit checks them against the graph.
func (w *Writer) Labels(l *Labels) error {
	w.labels, w.Meta.Task, w.Meta.Classes, w.Meta.ClassNames = l, l.Kind(), l.Classes, l.Names
	return w.labelArray("labels.npy", l)
}

func (w *Writer) labelArray(name string, l *Labels) error {
	switch l.Kind() {
	case MultiLabel:
		return writeArray(w, name, l.Multi, int64(l.Len()), int64(l.Classes))
	case Regression:
		return writeArray(w, name, l.Values, int64(l.Len()), int64(l.Classes))
	}
	return writeArray(w, name, l.Class)
}

// Splits writes the splits that are not empty; Commit checks them.
func (w *Writer) Splits(s Splits) error {
	w.splits = s
	return w.splitArrays("", s)
}

func (w *Writer) splitArrays(suffix string, s Splits) error {
	for _, sp := range s.named() {
		if len(sp.ids) == 0 {
			continue
		}
		if err := writeArray(w, sp.name+suffix+".npy", sp.ids); err != nil {
			return err
		}
	}
	return nil
}

// IntIDs writes the names of the vertices, if they were numbers.
func (w *Writer) IntIDs(ids []int64) error { return writeArray(w, "ids.npy", ids) }

// TextIDs writes the names of the vertices, one per line. Names cannot contain
// line breaks.
func (w *Writer) TextIDs(ids []string) error { return w.textIDs("ids.txt", ids) }

func (w *Writer) textIDs(name string, ids []string) error {
	a, err := w.open(name)
	if err != nil {
		return err
	}
	buf := make([]byte, 0, 1<<20)
	for v, id := range ids {
		if strings.ContainsRune(id, '\n') {
			a.f.Close()
			return &InputError{File: w.dir, Field: fmt.Sprintf("name of vertex %d", v), Found: fmt.Sprintf("%q", id),
				Want: "a name on one line", Fix: "rename the vertex"}
		}
		if buf = append(append(buf, id...), '\n'); len(buf) >= 1<<20 || v == len(ids)-1 {
			if _, err := a.Write(buf); err != nil {
				a.f.Close()
				return err
			}
			buf = buf[:0]
		}
	}
	return a.Close()
}

// Commit checks that the arrays fit together, writes meta.json and makes the
// folder appear under its name. On an error nothing is left behind.
func (w *Writer) Commit() (err error) {
	if w.done {
		return errors.New("the dataset was already committed or aborted")
	}
	defer func() {
		if err != nil {
			w.Abort()
		}
	}()
	if w.Meta.Schema != nil {
		w.Meta.Version = typedVersion
	}
	if err := w.check(); err != nil {
		return err
	}
	b, err := w.Meta.encode()
	if err != nil {
		return err
	}
	if err := disk.Write(filepath.Join(w.tmp, metaFile), func(f io.Writer) error {
		_, err := f.Write(b)
		return err
	}); err != nil {
		return err
	}
	if err := checkTarget(w.dir, w.overwrite); err != nil {
		return err
	}
	if err := w.folder.Commit(); err != nil {
		return err
	}
	w.done = true
	return nil
}

func (w *Writer) check() error {
	if err := w.Meta.validate(); err != nil {
		return inFile(w.dir, err)
	}
	n := w.Meta.Nodes
	for name, rows := range map[string]int64{"indptr.npy": n + 1, "indices.npy": w.Meta.Edges, "features.npy": n,
		"features_indptr.npy": n + 1, "ids.npy": n, edgeTimesFile: w.Meta.Edges, timesFile: n} {
		a, ok := w.Meta.Arrays[name]
		if !ok && (name == "indptr.npy" || name == "indices.npy") {
			return fmt.Errorf("%s: the dataset has no %s", w.dir, name)
		}
		if ok && a.Shape[0] != rows {
			return &InputError{File: w.dir, Field: name, Found: event.Tally(a.Shape[0], "row"),
				Want: fmt.Sprint(rows), Fix: "give one row per vertex, and of edges one per edge"}
		}
	}
	if w.labels != nil {
		if err := w.labels.Validate(int(n)); err != nil {
			return inFile(w.dir, err)
		}
	}
	return inFile(w.dir, w.splits.Validate(int(n), w.labels))
}

// Abort removes what was written so far. After Commit it does nothing.
func (w *Writer) Abort() {
	if !w.done {
		w.done = true
		w.folder.Abort()
	}
}

// Save writes a whole dataset from memory.
func Save(dir string, d *Dataset, opt WriterOptions) (err error) {
	w, err := Create(dir, opt)
	if err != nil {
		return err
	}
	defer w.Abort()
	if d.Meta.Name != "" {
		w.Meta.Name = d.Meta.Name
	}
	w.Meta.Source, w.Meta.Notes, w.Meta.Dates = d.Meta.Source, d.Meta.Notes, d.Meta.Dates
	if f := d.Meta.Features; f != nil {
		w.Meta.Features = &FeatureMeta{Columns: f.Columns, Scale: f.Scale}
	}
	if err := w.Graph(d.Graph); err != nil {
		return err
	}
	if d.Features != nil {
		if err := w.Features(d.Features); err != nil {
			return err
		}
	}
	if d.Labels != nil {
		if err := w.Labels(d.Labels); err != nil {
			return err
		}
	}
	if d.Times != nil {
		if err := w.Times(d.Times); err != nil {
			return err
		}
	}
	if err := w.Splits(d.Splits); err != nil {
		return err
	}
	return w.Commit()
}

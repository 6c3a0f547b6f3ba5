package graph

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
)

// Access hints how mapped pages will be read.
type Access int

// The hints, with the kernel's meaning.
const (
	Normal Access = iota
	Random
	Sequential
	WillNeed
	Release // pages leave this process's memory until they are read again
)

// SmallArray is the size up to which Open checks an array's checksum and
// contents without being asked. Sizes, shapes and dtypes are checked always.
const SmallArray = 256 << 20

// VerifyEnv, set to anything but "", makes every Open verify everything.
const VerifyEnv = "STARLING_VERIFY"

// OpenOptions says how much of the data Open reads before it trusts it.
type OpenOptions struct {
	Verify        bool // all checksums and contents, whatever the size
	CheckFeatures bool // look for NaN and infinity in the features
}

// Dataset is an open dataset folder. Its arrays are mapped, so they may be larger
// than memory, must not be written to, and are gone after Close.
type Dataset struct {
	Dir      string
	Meta     Meta
	Graph    *CSR
	Features *Features // nil: structure only
	Labels   *Labels   // nil: none
	Splits   Splits    // empty: none

	intIDs []int64
	text   struct {
		raw  []byte
		once sync.Once
		ends []int64
	}
	maps map[string][]byte
}

// Open maps the dataset in dir, with the default checks.
func Open(dir string) (*Dataset, error) { return OpenWith(dir, OpenOptions{}) }

// OpenWith maps the dataset in dir. A truncated file is always found; a damaged
// one is found when it is below SmallArray, or with opt.Verify, or with VerifyEnv set.
func OpenWith(dir string, opt OpenOptions) (*Dataset, error) {
	if !littleEndian {
		return nil, errors.New("datasets cannot be mapped on a big-endian machine")
	}
	meta, err := ReadMeta(dir)
	if err != nil {
		return nil, err
	}
	d := &Dataset{Dir: dir, Meta: *meta, maps: map[string][]byte{}}
	if err := d.load(opt.Verify || os.Getenv(VerifyEnv) != "", opt.CheckFeatures); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (d *Dataset) load(verify, finite bool) error {
	for _, part := range []func() error{d.loadGraph, d.loadFeatures, d.loadLabels, d.loadSplits, d.loadIDs} {
		if err := part(); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(d.Meta.Arrays) {
		if d.maps[name] == nil {
			return &InputError{File: filepath.Join(d.Dir, metaFile), Field: "arrays", Found: name, Want: "only files this dataset uses", Fix: "copy or make the dataset again"}
		}
		if verify || d.Meta.Arrays[name].Bytes <= SmallArray {
			if err := d.checkSum(name); err != nil {
				return err
			}
		}
	}
	return d.checkContents(verify, verify || finite)
}

func sortedKeys(m map[string]ArrayMeta) []string {
	var names []string
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Verify reads everything: checksums, ranges, finite features.
func (d *Dataset) Verify() error {
	for _, name := range sortedKeys(d.Meta.Arrays) {
		if err := d.checkSum(name); err != nil {
			return err
		}
	}
	return d.checkContents(true, true)
}

// CheckEdges refuses edges of vertices that are not there, which opening a large dataset does not look for.
func (d *Dataset) CheckEdges() error { return d.named(d.Graph.Validate()) }

// CheckSymmetric refuses a dataset that says that every edge has its reverse, and lies.
func (d *Dataset) CheckSymmetric() error {
	if !d.Meta.Symmetric || d.Graph.Symmetric() {
		return nil
	}
	return &InputError{File: filepath.Join(d.Dir, metaFile), Field: "symmetric", Found: "true", Want: "false, as some edges have no reverse", Fix: "correct it or make the dataset again"}
}

// checkContents checks what the shapes cannot show. Offsets are always checked,
// since a wrong one would send a reader outside the array.
func (d *Dataset) checkContents(all, finite bool) error {
	n := d.Graph.Nodes()
	if err := d.Graph.checkIndptr(); err != nil {
		return d.named(err)
	}
	if all || 4*d.Graph.Edges() <= SmallArray {
		if err := d.Graph.Validate(); err != nil {
			return d.named(err)
		}
	}
	if all {
		if err := d.CheckSymmetric(); err != nil {
			return err
		}
	}
	if f := d.Features; f != nil {
		if err := f.Validate(); err != nil {
			return d.named(err)
		}
		if finite {
			if err := f.CheckFinite(); err != nil {
				return d.named(err)
			}
		}
	}
	if d.Labels != nil {
		if err := d.Labels.Validate(n); err != nil {
			return d.named(err)
		}
	}
	return d.named(d.Splits.Validate(n, d.Labels))
}

// named adds the path of the array an InputError speaks of.
func (d *Dataset) named(err error) error {
	var in *InputError
	if errors.As(err, &in) && d.maps[in.Field+".npy"] != nil {
		return inFile(filepath.Join(d.Dir, in.Field+".npy"), err)
	}
	return inFile(d.Dir, err)
}

func (d *Dataset) checkSum(name string) error {
	want := d.Meta.Arrays[name].CRC32C
	if want == "" {
		return nil
	}
	if got := fmt.Sprintf("%08x", crc32.Checksum(d.maps[name], castagnoli)); got != want {
		return &InputError{File: filepath.Join(d.Dir, name), Field: "checksum", Found: got, Want: want,
			Fix: "the file is damaged: copy or make the dataset again"}
	}
	return nil
}

// mapName maps one file and checks its size against meta.json.
func (d *Dataset) mapName(name string) ([]byte, error) {
	path := filepath.Join(d.Dir, name)
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, &InputError{File: path, Found: "no such file", Want: "the array that meta.json announces", Fix: "copy or make the dataset again"}
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() { // to open a pipe is to wait for its other end
		return nil, &InputError{File: path, Found: info.Mode().Type().String(), Want: "a regular file", Fix: "copy or make the dataset again"}
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err != nil {
		return nil, err
	}
	if m, ok := d.Meta.Arrays[name]; ok && m.Bytes != info.Size() {
		return nil, &InputError{File: path, Field: "size", Found: fmt.Sprintf("%d bytes", info.Size()), Want: fmt.Sprintf("%d", m.Bytes),
			Fix: "the file was cut off or changed: copy or make the dataset again"}
	}
	b, err := mapFile(f, info.Size())
	if err != nil {
		return nil, err
	}
	d.maps[name] = b
	return b, nil
}

// array maps an npy file of the given shape; a -1 in shape fits any length.
func array[T element](d *Dataset, name string, shape ...int64) ([]T, error) {
	b, err := d.mapName(name)
	if err != nil {
		return nil, err
	}
	path := filepath.Join(d.Dir, name)
	h, err := ReadNPYHeader(bytes.NewReader(b))
	if err != nil {
		return nil, inFile(path, err)
	}
	bad := func(field, found, want, fix string) error {
		return &InputError{File: path, Field: field, Found: found, Want: want, Fix: fix}
	}
	if want := descrOf[T](); h.Descr != want {
		return nil, bad("dtype", h.Descr, want, "convert the array with numpy's astype and save it again")
	}
	if h.Fortran && len(h.Shape) > 1 {
		return nil, bad("fortran_order", "True", "False", "save numpy.ascontiguousarray(a)")
	}
	if !fits(h.Shape, shape) {
		return nil, bad("shape", fmt.Sprint(h.Shape), fmt.Sprint(shape)+" (-1: any)", "meta.json and the array disagree: make the dataset again")
	}
	if m, ok := d.Meta.Arrays[name]; ok && (m.DType != h.Descr || !slices.Equal(m.Shape, h.Shape)) {
		return nil, bad("header", fmt.Sprint(h.Descr, h.Shape), fmt.Sprint(m.DType, m.Shape)+" as in meta.json", "make the dataset again")
	}
	if got, want := int64(len(b))-h.Offset, h.DataBytes(); got != want {
		return nil, bad("array", fmt.Sprintf("%d bytes", got), fmt.Sprintf("%d for shape %v", want, h.Shape), "the file was cut off: copy or make it again")
	}
	return fromBytes[T](b[h.Offset:]), nil
}

func fits(shape, want []int64) bool {
	return slices.EqualFunc(shape, want, func(a, b int64) bool { return a == b || b == -1 })
}

func (d *Dataset) has(name string) bool {
	if _, ok := d.Meta.Arrays[name]; ok {
		return true
	}
	_, err := os.Stat(filepath.Join(d.Dir, name))
	return err == nil && len(d.Meta.Arrays) == 0 // a folder written by hand lists nothing
}

func (d *Dataset) loadGraph() (err error) {
	g := &CSR{}
	d.Graph = g
	if g.Indptr, err = array[int64](d, "indptr.npy", d.Meta.Nodes+1); err != nil {
		return err
	}
	if g.Indices, err = array[uint32](d, "indices.npy", d.Meta.Edges); err != nil {
		return err
	}
	if d.has("weights.npy") {
		if g.Weights, err = array[float32](d, "weights.npy", d.Meta.Edges); err != nil {
			return err
		}
	}
	if d.Meta.EdgeDim > 0 || d.hasFile("edge_features.npy") {
		return d.loadEdgeFeatures()
	}
	return nil
}

// hasFile reports whether there is such a file, listed or not: one may be added later.
func (d *Dataset) hasFile(name string) bool {
	_, err := os.Stat(filepath.Join(d.Dir, name))
	return err == nil || d.has(name)
}

func (d *Dataset) loadEdgeFeatures() (err error) {
	g, dim := d.Graph, int64(-1)
	if d.Meta.EdgeDim > 0 {
		dim = int64(d.Meta.EdgeDim)
	}
	if g.EdgeFeatures, err = array[float32](d, "edge_features.npy", d.Meta.Edges, dim); err != nil {
		return err
	}
	if d.Meta.Edges > 0 { // else it is what meta.json says
		d.Meta.EdgeDim = len(g.EdgeFeatures) / int(d.Meta.Edges)
	}
	g.EdgeDim = d.Meta.EdgeDim
	if _, listed := d.Meta.Arrays["edge_features.npy"]; !listed { // and so without a checksum
		err = inFile(filepath.Join(d.Dir, "edge_features.npy"), checkFinite("edge_features", g.EdgeFeatures, max(g.EdgeDim, 1)))
	}
	return err
}

func (d *Dataset) loadFeatures() (err error) {
	m := d.Meta.Features
	if m == nil {
		return nil
	}
	f := &Features{Rows: int(d.Meta.Nodes), Cols: m.Dim}
	d.Features = f
	switch m.Kind {
	case Dense:
		f.F32, err = array[float32](d, "features.npy", d.Meta.Nodes, int64(m.Dim))
	case BFloat16:
		f.BF16, err = array[uint16](d, "features.npy", d.Meta.Nodes, int64(m.Dim))
	case Sparse:
		if f.Indptr, err = array[int64](d, "features_indptr.npy", d.Meta.Nodes+1); err != nil {
			return err
		}
		if f.Indices, err = array[uint32](d, "features_indices.npy", -1); err != nil {
			return err
		}
		f.Values, err = array[float32](d, "features_values.npy", int64(len(f.Indices)))
	}
	return err
}

func (d *Dataset) loadLabels() (err error) {
	if d.Meta.Task == "" {
		return nil
	}
	d.Labels = &Labels{Classes: d.Meta.Classes}
	switch wide := int64(d.Meta.Classes); d.Meta.Task {
	case MultiLabel:
		d.Labels.Multi, err = array[uint8](d, "labels.npy", d.Meta.Nodes, wide)
		return err
	case Regression:
		d.Labels.Values, err = array[float32](d, "labels.npy", d.Meta.Nodes, wide)
		return err
	}
	d.Labels.Class, err = array[int32](d, "labels.npy", d.Meta.Nodes)
	return err
}

func (d *Dataset) loadSplits() (err error) {
	for name, ids := range map[string]*[]uint32{"train": &d.Splits.Train, "val": &d.Splits.Val, "test": &d.Splits.Test} {
		if !d.has(name + ".npy") {
			continue
		}
		if *ids, err = array[uint32](d, name+".npy", -1); err != nil {
			return err
		}
		if len(*ids) == 0 {
			return &InputError{File: filepath.Join(d.Dir, name+".npy"), Found: "an empty split", Want: "at least one vertex",
				Fix: "fill the split, or make the dataset again with other fractions"}
		}
	}
	return nil
}

func (d *Dataset) loadIDs() (err error) {
	if d.has("ids.npy") {
		d.intIDs, err = array[int64](d, "ids.npy", d.Meta.Nodes)
		return err
	}
	if !d.has("ids.txt") {
		return nil
	}
	if d.text.raw, err = d.mapName("ids.txt"); err != nil {
		return err
	}
	if lines := int64(bytes.Count(d.text.raw, []byte{'\n'})); lines != d.Meta.Nodes {
		return &InputError{File: filepath.Join(d.Dir, "ids.txt"), Found: fmt.Sprintf("%d lines", lines),
			Want: fmt.Sprintf("one a vertex (%d)", d.Meta.Nodes), Fix: "copy or make the dataset again"}
	}
	return nil
}

// ID is what vertex v was called before import; its number if nothing else.
func (d *Dataset) ID(v uint32) string {
	switch {
	case d.intIDs != nil:
		return strconv.FormatInt(d.intIDs[v], 10)
	case d.text.raw == nil:
		return strconv.FormatUint(uint64(v), 10)
	}
	d.text.once.Do(d.indexText)
	start := int64(0)
	if v > 0 {
		start = d.text.ends[v-1] + 1
	}
	return string(d.text.raw[start:d.text.ends[v]])
}

// indexText finds the ends of the lines of ids.txt, the first time one is asked for.
func (d *Dataset) indexText() {
	d.text.ends = make([]int64, 0, d.Meta.Nodes)
	for i, c := range d.text.raw {
		if c == '\n' {
			d.text.ends = append(d.text.ends, int64(i))
		}
	}
}

// HasIDs tells whether vertices had other names before import.
func (d *Dataset) HasIDs() bool { return d.intIDs != nil || d.text.raw != nil }

// AdviseFeatures tells the kernel how the features will be read: Random for
// sampled batches, Sequential for whole passes.
func (d *Dataset) AdviseFeatures(a Access) {
	for _, name := range []string{"features.npy", "features_indices.npy", "features_values.npy"} {
		advise(d.maps[name], a)
	}
}

// Close unmaps every array. Nothing of the dataset may be used afterwards.
func (d *Dataset) Close() error {
	var errs []error
	for _, b := range d.maps {
		errs = append(errs, unmapFile(b))
	}
	d.maps, d.Graph, d.Features, d.Labels, d.Splits = nil, nil, nil, nil, Splits{}
	return errors.Join(errs...)
}

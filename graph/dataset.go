package graph

import (
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"os"
	"path/filepath"
	"slices"
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
// contents by default. Sizes, shapes and dtypes are always checked.
const SmallArray = 256 << 20

// VerifyEnv, set to anything but "", makes every Open verify everything.
const VerifyEnv = "STARLING_VERIFY"

// OpenOptions says how much of the data Open checks.
type OpenOptions struct {
	Verify        bool // all checksums and contents, whatever the size
	CheckFeatures bool // look for NaN and infinity in the features
}

// Dataset is an open dataset folder. Its arrays are mapped, so they may be larger
// than memory, must not be written to, and must not be used after Close.
type Dataset struct {
	Dir      string
	Meta     Meta
	Graph    *CSR
	Features *Features // nil: structure only
	Labels   *Labels   // nil: none
	Splits   Splits    // empty: none
	Times    []int64   // of vertices, NoTime for those without; nil: none has one
	// TypeFeatures are the features of each type of a typed graph, nil where it has none. Features is nil then, and
	// SetTarget sets Labels and Splits.
	TypeFeatures []*Features
	Target       string // the type that Labels and Splits are of

	ids        vertexIDs
	typeLabels []*Labels
	typeSplits []Splits
	typeIDs    []vertexIDs
	idName     string // of the file of ids without its ending; "": ids
	maps       map[string][]byte
	pieces     map[string][][]byte // what is mapped of arrays in pieces
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
	parts := []func() error{d.loadGraph, d.loadFeatures, d.loadLabels, d.loadSplits, d.loadIDs, d.loadTimes,
		d.loadPreparation}
	if d.Typed() {
		parts = []func() error{d.loadGraph, d.loadTyped, d.loadTimes, d.loadPreparation}
	}
	for _, part := range parts {
		if err := part(); err != nil {
			return err
		}
	}
	for _, name := range sortedKeys(d.Meta.Arrays) {
		if d.maps[name] == nil {
			return &InputError{File: filepath.Join(d.Dir, metaFile), Field: "arrays", Found: name,
				Want: "only files this dataset uses", Fix: "copy or make the dataset again"}
		}
		if verify || d.Meta.Arrays[name].Bytes <= SmallArray {
			if err := d.checkSum(name); err != nil {
				return err
			}
		}
	}
	return d.checkContents(verify, verify || finite)
}

func sortedKeys(m map[string]ArrayMeta) []string { return slices.Sorted(maps.Keys(m)) }

// CheckEdges refuses edges of absent vertices, which Open does not check in a large dataset.
func (d *Dataset) CheckEdges() error { return d.named(d.Graph.Validate()) }

// CheckSymmetric refuses a dataset whose symmetric flag is wrong.
func (d *Dataset) CheckSymmetric() error {
	if !d.Meta.Symmetric || d.Graph.Symmetric() {
		return nil
	}
	return &InputError{File: filepath.Join(d.Dir, metaFile), Field: "symmetric", Found: "true",
		Want: "false, as some edges have no reverse", Fix: "correct it or make the dataset again"}
}

// checkContents checks values. Offsets are always checked,
// since a wrong one would make readers access memory outside the array.
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
	if err := d.checkTimes(all); err != nil {
		return err
	}
	if d.Typed() {
		return d.checkTyped(all, finite)
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

// named adds to an InputError the path of its array.
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
		if err := d.checkPieceSums(name); err != nil {
			return err
		}
		return &InputError{File: filepath.Join(d.Dir, name), Field: "checksum", Found: got, Want: want,
			Fix: "the file is damaged: copy or make the dataset again"}
	}
	return nil
}

// AdviseFeatures advises the kernel how the features will be read: Random for
// sampled batches, Sequential for whole passes.
func (d *Dataset) AdviseFeatures(a Access) {
	for _, name := range []string{"features.npy", "features_indices.npy", "features_values.npy"} {
		advise(d.maps[name], a)
	}
}

// Close unmaps every array. Nothing of the dataset may be used afterwards.
func (d *Dataset) Close() error {
	var errs []error
	for name, b := range d.maps {
		errs = append(errs, d.unmap(name, b))
	}
	d.maps, d.Graph, d.Features, d.Labels, d.Splits = nil, nil, nil, nil, Splits{}
	d.Times = nil
	d.TypeFeatures, d.typeLabels, d.typeSplits, d.typeIDs = nil, nil, nil, nil
	return errors.Join(errs...)
}

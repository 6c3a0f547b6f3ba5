package graph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"starling/event"
)

const (
	metaFile      = "meta.json"
	formatName    = "starling-dataset"
	formatVersion = 1 // of a graph without types
	typedVersion  = 2
	maxMetaBytes  = 64 << 20 // names of classes and columns may be many
)

// The tasks of a dataset: its vertices have one class each, or any number, or
// numbers to be predicted.
const (
	SingleLabel = "single-label"
	MultiLabel  = "multi-label"
	Regression  = "regression"
)

// Meta is meta.json.
type Meta struct {
	Format    string       `json:"format"`
	Version   int          `json:"version"`
	Name      string       `json:"name"`
	Nodes     int64        `json:"nodes"`
	Edges     int64        `json:"edges"`
	Symmetric bool         `json:"symmetric"`          // every edge has its reverse
	Features  *FeatureMeta `json:"features,omitempty"` // nil: structure only
	EdgeDim   int          `json:"edge_dim,omitempty"` // numbers per edge in edge_features.npy
	Dates     bool         `json:"dates,omitempty"`    // times are seconds since 1970, and not plain numbers
	// SingleLabel, MultiLabel, Regression, or empty without labels
	Task    string `json:"task,omitempty"`
	Classes int    `json:"classes,omitempty"` // of regression the numbers per vertex
	// ClassNames are what the classes were called before import; none: by their numbers
	ClassNames []string `json:"class_names,omitempty"`
	// Schema has the types of a typed graph; its features, labels and splits are by type then, and the fields above empty
	Schema *Schema `json:"schema,omitempty"`
	// where it came from: importer or generator with its options
	Source   string               `json:"source,omitempty"`
	Notes    []string             `json:"notes,omitempty"`
	Checksum string               `json:"checksum,omitempty"` // algorithm of the sums below
	Arrays   map[string]ArrayMeta `json:"arrays,omitempty"`
	// Preparation is what preparation.json says of the tables that it was read from; nil: there is none
	Preparation *Preparation `json:"-"`
	CRC32C      string       `json:"crc32c,omitempty"` // of this file with these eight digits as zeros
}

// FeatureMeta says how features are stored and how wide they are.
type FeatureMeta struct {
	Kind    FeatureKind `json:"kind"`
	Dim     int         `json:"dim"`
	Columns []string    `json:"columns,omitempty"` // names, as the imported table had them
	Scale   *Scale      `json:"scale,omitempty"`   // what the features were standardized by; nil: they were not
}

// ArrayMeta describes one file of the folder, header included.
type ArrayMeta struct {
	DType  string  `json:"dtype,omitempty"` // empty for ids.txt
	Shape  []int64 `json:"shape,omitempty"`
	Bytes  int64   `json:"bytes"`
	CRC32C string  `json:"crc32c,omitempty"`
	Pieces []Piece `json:"pieces,omitempty"` // the files that it is in, joined; none: it is one file
}

const noCRC = "00000000"

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encode writes meta.json with its own checksum.
func (m *Meta) encode() ([]byte, error) { return SealJSON(m, &m.CRC32C) }

// decodeMeta parses and checks meta.json. Unknown fields are refused: they are
// a newer format or a damaged name.
func decodeMeta(b []byte) (*Meta, error) {
	if bytes.Contains(b[:min(len(b), 1<<10)], []byte(`"starling-part"`)) { // package partition's
		return nil, &InputError{File: metaFile, Field: "format", Found: "a part of a partition", Want: "a dataset",
			Fix: "parts are used together: name the folder that book.json is in"}
	}
	var newer struct {
		Format  string
		Version int
	}
	// whatever fields it has
	if json.Unmarshal(b, &newer) == nil && newer.Format == formatName && newer.Version > piecedVersion {
		return nil, &InputError{File: metaFile, Field: "version", Found: fmt.Sprint(newer.Version),
			Want: fmt.Sprint("at most ", piecedVersion),
			Fix:  "the dataset was written by a newer starling: use that one"}
	}
	m := &Meta{}
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(m); err != nil {
		return nil, badMeta("JSON", Sentence(err.Error()), "the fields of a "+formatName)
	}
	if _, err := dec.Token(); err != io.EOF {
		return nil, badMeta("JSON", "more text after the object", "one object")
	}
	if m.CRC32C != "" {
		if err := checkMetaSum(b, m.CRC32C); err != nil {
			return nil, err
		}
	}
	return m, m.validate()
}

func checkMetaSum(b []byte, want string) error {
	at := bytes.LastIndex(b, []byte(`"crc32c": "`+want+`"`))
	if at < 0 {
		return badMeta("crc32c", "the field in an unexpected place", "the last field")
	}
	at += len(`"crc32c": "`)
	zeroed := bytes.Clone(b)
	copy(zeroed[at:], noCRC[:min(len(want), len(noCRC))])
	if got := fmt.Sprintf("%08x", crc32.Checksum(zeroed, castagnoli)); got != want {
		return &InputError{File: metaFile, Field: "crc32c", Found: "contents with checksum " + got, Want: want,
			Fix: "the file is damaged: write the dataset again (or, if you edited it by hand, delete this field)"}
	}
	return nil
}

func (m *Meta) validate() error {
	switch {
	case m.Format != formatName:
		return badMeta("format", fmt.Sprintf("%q", m.Format), fmt.Sprintf("%q", formatName))
	case m.Version < formatVersion || m.Version > piecedVersion || (m.Version == typedVersion) != (m.Schema != nil):
		return badMeta("version", fmt.Sprint(m.Version), "1, 2 with a schema, or 3 with arrays in pieces")
	case strings.ContainsFunc(m.Name, unicode.IsControl): // a terminal would interpret it
		return &InputError{File: metaFile, Field: "name", Found: fmt.Sprintf("%.60q", m.Name),
			Want: "a name without control characters", Fix: "give it another, with --name or by hand"}
	case m.Nodes < 1 || m.Nodes > MaxNodes:
		return badMeta("nodes", fmt.Sprint(m.Nodes), "1 to 2^32-1")
	case m.Edges < 0 || m.Edges > MaxEdges:
		return badMeta("edges", fmt.Sprint(m.Edges), "0 to 2^42")
	case m.EdgeDim < 0 || m.EdgeDim > 1<<16:
		return badMeta("edge_dim", fmt.Sprint(m.EdgeDim), "0 to 65536")
	case m.Features != nil && (m.Features.Dim < 1 || m.Features.Dim > 1<<31-1):
		return badMeta("features.dim", fmt.Sprint(m.Features.Dim), "1 to 2^31-1")
	case m.Features != nil && m.Features.Kind != Dense && m.Features.Kind != BFloat16 && m.Features.Kind != Sparse:
		return badMeta("features.kind", fmt.Sprintf("%q", m.Features.Kind), `"float32", "bfloat16" or "sparse"`)
	case m.Checksum != "" && m.Checksum != "crc32c":
		return badMeta("checksum", fmt.Sprintf("%q", m.Checksum), `"crc32c"`)
	}
	if err := m.checkPieces(); err != nil {
		return err
	}
	if err := validateTask("", m.Task, m.Classes, m.ClassNames); err != nil {
		return err
	}
	if m.Schema != nil {
		return m.Schema.Validate(m.Nodes)
	}
	return m.Features.validate()
}

// validateTask checks what meta.json says of labels; field is the prefix of its fields.
func validateTask(field, task string, classes int, names []string) error {
	switch {
	case task != "" && task != SingleLabel && task != MultiLabel && task != Regression:
		return badMeta(field+"task", fmt.Sprintf("%q", task), fmt.Sprintf("%q, %q or %q", SingleLabel, MultiLabel, Regression))
	case task != "" && (classes < 1 || classes > MaxClasses):
		return badMeta(field+"classes", fmt.Sprint(classes), "1 to 2^24")
	case len(names) != 0 && len(names) != classes:
		return badMeta(field+"class_names", event.Tally(len(names), "name"), fmt.Sprintf("%d, one per class",
			classes))
	}
	return nil
}

// validate checks that there is one column and one scale per feature.
func (f *FeatureMeta) validate() error {
	switch {
	case f == nil:
		return nil
	case len(f.Columns) != 0 && len(f.Columns) != f.Dim:
		return badMeta("features.columns", event.Tally(len(f.Columns), "name"), fmt.Sprint(f.Dim))
	case f.Scale != nil:
		return f.Scale.Validate(f.Dim)
	}
	return nil
}

func badMeta(field, found, want string) error {
	return &InputError{File: metaFile, Field: field, Found: found, Want: want,
		Fix: "the file is damaged or written by hand: correct it or write the dataset again"}
}

// ReadMeta reads and checks only the meta.json of a dataset folder.
func ReadMeta(dir string) (*Meta, error) {
	path := filepath.Join(dir, metaFile)
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return nil, &InputError{File: dir, Found: "a file", Want: "a dataset folder",
			Fix: "name the folder that meta.json is in, or make one with starling import"}
	}
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := MovedAside(dir); err != nil {
			return nil, err
		}
		found := "no " + metaFile + " in it"
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			found = "no such folder"
		}
		return nil, &InputError{File: dir, Found: found, Want: "a dataset folder",
			Fix: "make one with starling import or starling generate"}
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() || info.Size() > maxMetaBytes {
		return nil, &InputError{File: path, Found: fmt.Sprintf("%s of %s", info.Mode().Type(),
			event.Tally(info.Size(), "byte")),
			Want: fmt.Sprintf("a file of at most %d", maxMetaBytes), Fix: "this is no dataset folder"}
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	m, err := decodeMeta(b)
	var in *InputError
	if errors.As(err, &in) {
		in.File = path
	}
	return m, err
}

// IsDataset reports whether dir looks like a dataset folder, damaged or not.
func IsDataset(dir string) bool {
	b, err := os.ReadFile(filepath.Join(dir, metaFile))
	return err == nil && bytes.Contains(b, []byte(`"`+formatName+`"`))
}

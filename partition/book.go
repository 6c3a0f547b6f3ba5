package partition

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strconv"
	"strings"

	"starling/event"
	"starling/graph"
)

const (
	bookFile      = "book.json"
	partFile      = "meta.json"
	bookFormat    = "starling-partition"
	partFormat    = "starling-part"
	formatVersion = 1
	maxJSON       = 64 << 20 // far above 65,536 parts; bounds the memory a bad file can take
)

// Book says which part owns which vertex, and what all parts have in common. It is
// book.json, and a field of every part's meta.json.
type Book struct {
	Format  string `json:"format"`
	Version int    `json:"version"`
	// ID is the same in the book and in all its parts, and differs between partitions.
	ID        string  `json:"id"`
	Dataset   string  `json:"dataset"`
	Nodes     int64   `json:"nodes"`
	Edges     int64   `json:"edges"`
	Symmetric bool    `json:"symmetric"`
	Weighted  bool    `json:"weighted,omitempty"`
	EdgeDim   int     `json:"edge_dim,omitempty"` // numbers per edge in edge_features.npy
	Parts     int     `json:"parts"`
	Servers   int     `json:"servers"` // parts are spread over them evenly, in order
	Offsets   []int64 `json:"offsets"` // Parts+1: part k owns Offsets[k] to Offsets[k+1]-1

	Features *graph.FeatureMeta `json:"features,omitempty"`
	Task     string             `json:"task,omitempty"`
	Classes  int                `json:"classes,omitempty"`
	// ClassNames are the dataset's; none: classes are numbers.
	ClassNames []string `json:"class_names,omitempty"`
	Train      int64    `json:"train,omitempty"` // sizes of the splits over all parts
	Val        int64    `json:"val,omitempty"`
	Test       int64    `json:"test,omitempty"`

	// TrainClasses are the training vertices of each of two classes; none: there are other labels, or the folder is of
	// a version that did not keep them.
	TrainClasses []float64 `json:"train_classes,omitempty"`

	// Schema has the types of a typed graph; Features is nil then. Target is the type that labels and splits are of.
	Schema *graph.Schema `json:"schema,omitempty"`
	Target string        `json:"target,omitempty"`
	// Preparation is how tables became the dataset's numbers; nil: it was no table.
	Preparation *graph.Preparation `json:"preparation,omitempty"`
	// TypeRuns say of which types the vertices of a typed graph are, in ascending order.
	TypeRuns []TypeRun `json:"type_runs,omitempty"`

	// Contents identify the dataset; empty: the folder is of a version that did not keep them.
	Contents graph.Contents `json:"contents,omitzero"`

	Method     string `json:"method,omitempty"`
	Seed       uint64 `json:"seed"`
	EdgeCut    int64  `json:"edge_cut"`
	CommVolume int64  `json:"comm_volume"`

	// Dirs is where each part was written, if not beside the book.
	Dirs   []string `json:"dirs,omitempty"`
	CRC32C string   `json:"crc32c,omitempty"`
}

// Owner is the part of a vertex, by its new number.
func (b *Book) Owner(v uint32) int {
	return sort.Search(b.Parts-1, func(k int) bool { return int64(v) < b.Offsets[k+1] })
}

// Size is the number of core vertices of part k.
func (b *Book) Size(k int) int64 { return b.Offsets[k+1] - b.Offsets[k] }

// Server is the server of part k.
func (b *Book) Server(k int) int { return k / (b.Parts / max(b.Servers, 1)) }

// PartDir is the folder of part k, for a book in dir.
func (b *Book) PartDir(dir string, k int) string {
	if k < len(b.Dirs) && b.Dirs[k] != "" {
		return b.Dirs[k]
	}
	return filepath.Join(dir, "part"+strconv.Itoa(k))
}

// OpenBook reads the book of the partition folder dir.
func OpenBook(dir string) (*Book, error) {
	b := &Book{}
	path := filepath.Join(dir, bookFile)
	if err := readSealed(path, b, &b.CRC32C); err != nil {
		return nil, err
	}
	return b, inFile(path, b.validate(bookFormat, b.Format))
}

// IsPartition reports whether dir looks like a partition folder.
func IsPartition(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, bookFile))
	return err == nil
}

// readSealed reads a JSON file that carries its checksum.
func readSealed(path string, v any, crc *string) error {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := graph.MovedAside(filepath.Dir(path)); err != nil {
			return err
		}
		return &graph.InputError{File: path, Found: "no such file", Want: "a partition",
			Fix: "make one with starling partition"}
	}
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() || info.Size() > maxJSON {
		return &graph.InputError{File: path, Found: fmt.Sprintf("%s of %s", info.Mode().Type(),
			event.Tally(info.Size(), "byte")),
			Want: "a small JSON file", Fix: "this is no partition"}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	return inFile(path, graph.UnsealJSON(text, v, crc))
}

// inFile names the file in a user's mistake, and what can be done about damage.
func inFile(path string, err error) error {
	var in *graph.InputError
	if !errors.As(err, &in) {
		return err
	}
	named := *in
	if named.File == "" || named.File == filepath.Base(named.File) {
		named.File = path
	}
	named.Fix = "copy the partition again, or make it again with starling partition"
	return &named
}

// agrees compares a part's book with that of the partition. All fields must be the
// same, except the folders of parts.
func (b *Book) agrees(with *Book) error {
	one, other := reflect.ValueOf(*b), reflect.ValueOf(*with)
	for i := range one.NumField() {
		switch field := one.Type().Field(i); field.Name {
		case "Format", "Dirs", "CRC32C":
		default:
			if !reflect.DeepEqual(one.Field(i).Interface(), other.Field(i).Interface()) {
				name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
				return badBook("book."+name, "another than in "+bookFile, "the same")
			}
		}
	}
	return nil
}

func badBook(field string, found any, want string) error {
	return &graph.InputError{Field: field, Found: fmt.Sprint(found), Want: want}
}

func (b *Book) validate(want, format string) error {
	switch {
	case format != want:
		return badBook("format", fmt.Sprintf("%q", format), fmt.Sprintf("%q", want))
	case b.Version != formatVersion:
		return badBook("version", b.Version, fmt.Sprint(formatVersion))
	case b.Parts < 1 || b.Parts > MaxParts:
		return badBook("parts", b.Parts, fmt.Sprintf("1 to %d", MaxParts))
	case b.Servers < 1 || b.Parts%b.Servers != 0:
		return badBook("servers", b.Servers, "a number that divides the parts")
	case b.Nodes < 1 || b.Nodes > graph.MaxNodes || b.Edges < 0 || b.Edges > graph.MaxEdges:
		return badBook("nodes", fmt.Sprintf("%d, with %s", b.Nodes, event.Tally(b.Edges, "edge")),
			"fewer than 2^32 vertices and at most 2^42 edges")
	case len(b.Offsets) != b.Parts+1 || b.Offsets[0] != 0 || b.Offsets[b.Parts] != b.Nodes:
		return badBook("offsets", fmt.Sprintf("%d of them", len(b.Offsets)),
			fmt.Sprintf("%d, from 0 to %d", b.Parts+1, b.Nodes))
	case b.EdgeDim < 0 || b.EdgeDim > 1<<20:
		return badBook("edge_dim", b.EdgeDim, "0 or more numbers per edge")
	case len(b.ClassNames) != 0 && len(b.ClassNames) != b.Classes:
		return badBook("class_names", len(b.ClassNames), "one per class, or none")
	case len(b.Dirs) != 0 && len(b.Dirs) != b.Parts:
		return badBook("dirs", len(b.Dirs), "one per part, or none")
	}
	for k := range b.Parts {
		if b.Offsets[k] > b.Offsets[k+1] {
			return badBook("offsets", fmt.Sprintf("%d after %d", b.Offsets[k+1], b.Offsets[k]),
				"offsets that never fall")
		}
	}
	return b.validateTypes()
}

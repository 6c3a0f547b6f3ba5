package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"starling/graph"
	"starling/rng"
)

// ImportOptions are the options of Import.
type ImportOptions struct {
	Name string // of the dataset; planetoid also finds its files by it

	// How edges are stored. Planetoid and npz files list edges one way and are
	// always symmetrized.
	Symmetrize     bool
	KeepDuplicates bool // otherwise the first of equal edges stays
	KeepSelfLoops  bool

	// Edge lists only.
	Weights         bool   // a column is a weight: the one called so, or the third
	NegativeWeights bool   // some may be below 0
	Header          string // "yes", "no", or "" to look
	Nodes           int64  // ids are 0..Nodes-1 already; 0: ids are mapped unless they are 0..N-1
	Labels          string // file of id,label lines
	Features        string // .npy with one row per vertex, in the order of the ids; or a file of id,x,y,… lines
	Splits          string // file of id,split lines

	// Features of any format.
	Missing      string   // what becomes of missing ones: error, zero, mean; "": error
	Standardize  bool     // to mean 0 and variance 1 over the training vertices
	OneHot       []string // columns of words, by name or number (edge lists and parquet)
	FeaturesFrom string   // made from the structure, where there are none: see feature_source.go

	// Task is what labels of npz, parquet and edge lists are for: classify, regression, or
	// nothing: derived from the labels.
	Task string

	// Table says what columns of tables are (package dataset/schema).
	Table TableColumns

	Split     SplitOptions
	Seed      uint64
	Overwrite bool
	Progress  Progress

	scratch func() (*os.File, error) // beside the dataset; nil: in the system's temporary folder
}

// TableColumns are settings of tables.
type TableColumns struct {
	Src, Dst, Weight, Time                       string
	EdgeFeatures                                 []string
	Repeats                                      string
	Vertices, ID, Label, Split, VertexTime, Like string
	Drop                                         []string
}

// SettleTable sets what is the default of tables alone: columns of numbers are standardized, unless a flag or a
// preparation says so.
func (o *ImportOptions) SettleTable(format string, standardizeGiven bool) {
	if format == "table" && !standardizeGiven && o.Table.Like == "" {
		o.Standardize = true
	}
}

// given is the first setting that is there, "" if none is.
func (t *TableColumns) given() string {
	for _, x := range []struct {
		flag  string
		given bool
	}{{"src", t.Src != ""}, {"dst", t.Dst != ""}, {"weight", t.Weight != ""}, {"time", t.Time != ""},
		{"edge-features", t.EdgeFeatures != nil}, {"repeats", t.Repeats != ""}, {"vertices", t.Vertices != ""},
		{"id", t.ID != ""}, {"label", t.Label != ""}, {"split", t.Split != ""}, {"vertex-time", t.VertexTime != ""},
		{"drop", t.Drop != nil}} {
		if x.given {
			return x.flag
		}
	}
	return ""
}

// Check refuses options that are invalid, or that the format does not use: an option
// without effect is a mistake.
func (o ImportOptions) Check(format string) error {
	if o.Nodes < 0 || o.Nodes > graph.MaxNodes {
		return badParam("nodes", fmt.Sprint(o.Nodes), "the number of vertices, below 2^32, or 0: the number found")
	}
	for _, x := range []struct {
		flag  string
		given bool
		of    []string
	}{
		{cmp.Or(o.Table.given(), "src"), o.Table.given() != "", []string{"table"}},
		{"like", o.Table.Like != "", []string{"table", "schema"}},
		{"weights", o.Weights, []string{"edgelist", "parquet", "metis"}}, // which has them anyway
		{"nodes", o.Nodes != 0, []string{"edgelist", "parquet"}},
		{"header", o.Header != "", []string{"edgelist", "table"}},
		{"labels", o.Labels != "", []string{"edgelist"}},
		{"features", o.Features != "", []string{"edgelist", "table"}},
		{"splits", o.Splits != "", []string{"edgelist"}},
		{"one-hot", len(o.OneHot) > 0, []string{"edgelist", "parquet", "table"}},
		{"negative-weights", o.NegativeWeights, []string{"edgelist", "parquet", "metis", "table"}},
		{"standardize", o.Standardize, withFeatures},
		{"missing", o.Missing != "", withFeatures},
		// the others have splits, or no labels
		{o.Split.flag(), o.Split != SplitOptions{}, []string{"npz", "geom", "parquet", "edgelist", "table"}},
	} {
		if x.given && !slices.Contains(x.of, format) {
			return badParam(x.flag, "a setting without effect on "+format, "it only for "+strings.Join(x.of, " or "))
		}
	}
	if err := o.Split.check(); err != nil {
		return err
	}
	if format == "edgelist" && o.Labels == "" && (o.Split != SplitOptions{}) {
		return badParam(o.Split.flag(), "a setting without effect", "it beside labels, which splits are made of")
	}
	if err := o.checkFeatures(format); err != nil {
		return err
	}
	return o.checkTask(format)
}

// withFeatures are the formats that may have features.
var withFeatures = []string{"planetoid", "npz", "ogb", "saint", "dgl-reddit", "dgl", "geom", "parquet", "edgelist", "table"}

// checkFeatures refuses settings of features that contradict each other.
func (o ImportOptions) checkFeatures(format string) error {
	_, _, err := featureSource(cmp.Or(o.FeaturesFrom, "degree"))
	switch {
	case err != nil:
		return err
	case o.Missing != "" && !slices.Contains(missingChoices, o.Missing):
		return badParam("missing", fmt.Sprintf("%q", o.Missing), "error, zero or mean")
	case format == "table":
		return nil // which has its own rules
	case o.FeaturesFrom != "" && (o.Features != "" || o.prepares() || len(o.OneHot) > 0):
		return badParam("features-from", "it beside settings of features that are read",
			"it alone: it makes features where there are none")
	case format == "edgelist" && (o.prepares() || len(o.OneHot) > 0) && o.Features == "":
		return badParam("features", "nothing", "a file of features, for --standardize, --missing and --one-hot")
	case len(o.OneHot) > 0 && strings.HasSuffix(o.Features, ".npy"):
		return badParam("one-hot", "it with an .npy file", "a file of id,x,y,... lines, which may have words")
	case o.Splits != "" && o.Split != (SplitOptions{}):
		return badParam("splits", "it beside "+o.Split.flag(), "one of the two")
	}
	return nil
}

// SplitOptions says how to split data that comes without splits: PerClass
// training vertices of each class with ValCount and TestCount others if PerClass is
// above 0, else by the fractions. All zero means the importer's own default.
type SplitOptions struct {
	Train, Val, Test              float64
	PerClass, ValCount, TestCount int
}

// flag is the first one that was given.
func (s SplitOptions) flag() string {
	switch {
	case s.Train != 0:
		return "train"
	case s.Val != 0:
		return "val"
	case s.Test != 0:
		return "test"
	}
	return "per-class"
}

// check refuses invalid counts, and contradictions.
func (s SplitOptions) check() error {
	for _, f := range []struct {
		flag string
		n    int
	}{{"per-class", s.PerClass}, {"val-count", s.ValCount}, {"test-count", s.TestCount}} {
		switch {
		case f.n < 0:
			return badParam(f.flag, fmt.Sprint(f.n), "0 or more")
		case f.n > 0 && s.PerClass == 0:
			return badParam(f.flag, "a setting without effect", "it beside per-class; shares are train, val and test")
		}
	}
	if s.PerClass > 0 && (s.Train != 0 || s.Val != 0 || s.Test != 0) {
		return badParam("per-class", "it beside shares (train, val, test)", "one of the two")
	}
	return nil
}

func (s SplitOptions) or(other SplitOptions) SplitOptions {
	if s == (SplitOptions{}) {
		return other
	}
	return s
}

func (s SplitOptions) split(labels *graph.Labels, seed uint64) (graph.Splits, error) {
	k := rng.New(seed).Fold(SplitStream)
	if s.PerClass > 0 {
		return SplitPerClass(labels, s.PerClass, s.ValCount, s.TestCount, k)
	}
	return SplitByFraction(labels.Len(), labels, s.Train, s.Val, s.Test, k)
}

// read is the result of an importer.
type read struct {
	name        string
	graph       *graph.CSR // the graph,
	edges       *edgeFeed  // or its source of edges
	features    *graph.Features
	rows        *rowFeed     // or their source
	columns     []string     // names of the columns, if they have any
	oneHot      int          // how many of the columns, the last ones, are words
	scale       *graph.Scale // what they were standardized by
	featureFile string       // the file they are from, if it is not the source
	labels      *graph.Labels
	splits      graph.Splits
	intIDs      []int64
	textIDs     []string
	notes       []string

	symmetrize bool // the format lists edges one way
}

var importers = map[string]func(src string, opt ImportOptions) (*read, error){
	"planetoid":  readPlanetoid,
	"npz":        readNPZ,
	"ogb":        readOGB,
	"saint":      readSAINT,
	"dgl-reddit": readReddit,
	"dgl":        readDGL,
	"geom":       readGeom,
	"metis":      readMETIS,
	"parquet":    readParquet,
	"edgelist":   readEdgeList,
}

// Formats lists the importers.
func Formats() []string {
	return []string{"planetoid", "npz", "ogb", "saint", "dgl-reddit", "dgl", "geom", "metis", "parquet", "edgelist"}
}

// Import reads src in the given format and writes a dataset to out.
func Import(format, src string, opt ImportOptions, out string) (Summary, error) {
	reader, ok := importers[format]
	if !ok {
		return Summary{}, badParam("format", fmt.Sprintf("%q", format), strings.Join(Formats(), ", "))
	}
	if err := opt.Check(format); err != nil {
		return Summary{}, err
	}
	if _, err := os.Stat(src); src != "-" && errors.Is(err, fs.ErrNotExist) { // readers refuse standard input
		return Summary{}, badFile(src, "", "no such file or folder", "what "+format+" is to be read from",
			"check the path")
	}
	w, err := graph.Create(out, graph.WriterOptions{Overwrite: opt.Overwrite})
	if err != nil {
		return Summary{}, err
	}
	defer w.Abort()
	opt.scratch = w.Scratch
	r, err := reader(src, opt)
	if err == nil {
		err = r.check(opt)
	}
	if err != nil {
		return Summary{}, inPath(src, err)
	}
	if opt.Progress != nil {
		opt.Progress("write", 0, 1)
	}
	return r.write(w, format, opt)
}

// check checks features, labels and splits before anything is written, and prepares the features.
func (r *read) check(opt ImportOptions) (err error) {
	n := 0
	if r.graph != nil {
		n = r.graph.Nodes()
	} else {
		n = r.edges.nodes
	}
	if r.labels != nil {
		err = r.labels.Validate(n)
	}
	if err == nil {
		err = r.splits.Validate(n, r.labels)
	}
	if err == nil && opt.FeaturesFrom != "" && (r.features != nil || r.rows != nil) {
		err = badParam("features-from", "a source that has features", "it only where there are none")
	}
	if err == nil {
		err = r.prepare(opt)
	}
	if err == nil && r.features != nil {
		err = r.checkFinite()
	}
	if err != nil && r.edges != nil && r.edges.close != nil {
		r.edges.close()
	}
	return err
}

// checkFinite tells of missing values what can be done about them.
func (r *read) checkFinite() error {
	err := r.features.CheckFinite()
	var in *graph.InputError
	if errors.As(err, &in) {
		named := *in
		named.File, named.Fix = cmp.Or(r.featureFile, in.File), fillIn
		return &named
	}
	return err
}

// fillIn is what can be done about missing features.
const fillIn = "fill it in, or give --missing zero or --missing mean"

func (r *read) write(w *graph.Writer, format string, opt ImportOptions) (Summary, error) {
	w.Meta.Name, w.Meta.Source = r.name, "import "+format
	if err := r.writeGraph(w, opt); err != nil {
		return Summary{}, err
	}
	notes, err := LookAtEdges(w, opt.NegativeWeights)
	if err != nil {
		return Summary{}, err
	}
	r.notes = append(r.notes, notes...)
	if opt.FeaturesFrom != "" {
		note, err := MakeFeatures(w, opt.FeaturesFrom, opt.Seed)
		if err != nil {
			return Summary{}, err
		}
		r.notes = append(r.notes, note)
	} else if r.columns != nil || r.scale != nil {
		w.Meta.Features = &graph.FeatureMeta{Columns: r.columns, Scale: r.scale}
	}
	if r.rows != nil {
		if err := r.rows.write(w); err != nil {
			return Summary{}, err
		}
	}
	if r.features != nil {
		if err := w.Features(r.features); err != nil {
			return Summary{}, err
		}
	}
	if r.labels != nil {
		if err := w.Labels(r.labels); err != nil {
			return Summary{}, err
		}
	}
	if w.Meta.Features == nil {
		r.notes = append(r.notes, NoFeatures)
	}
	w.Meta.Notes = r.notes
	if r.intIDs != nil {
		if err := w.IntIDs(r.intIDs); err != nil {
			return Summary{}, err
		}
	}
	if r.textIDs != nil {
		if err := w.TextIDs(r.textIDs); err != nil {
			return Summary{}, err
		}
	}
	return Commit(w, r.splits)
}

// buildOptions are the options for edges.
func (o ImportOptions) buildOptions() graph.BuildOptions {
	return graph.BuildOptions{Symmetrize: o.Symmetrize, DropDuplicates: !o.KeepDuplicates,
		DropSelfLoops: !o.KeepSelfLoops}
}

// writeGraph writes the edges, sorting them if they are streamed.
func (r *read) writeGraph(w *graph.Writer, opt ImportOptions) error {
	if r.edges == nil {
		return w.Graph(r.graph)
	}
	opt.Symmetrize = opt.Symmetrize || r.symmetrize
	listed, err := r.edges.write(w, opt.buildOptions())
	if err == nil {
		r.note(listed, w.Meta.Edges, opt)
	}
	return err
}

// build sorts the edges as the options say and notes what was dropped.
func (r *read) build(n int, src, dst []uint32, weights []float32, opt ImportOptions) (err error) {
	r.graph, err = graph.FromEdges(n, src, dst, weights, opt.buildOptions())
	if err != nil {
		return err
	}
	r.note(int64(len(src)), r.graph.Edges(), opt)
	return nil
}

// note reports how many listed edges were stored.
func (r *read) note(listed, stored int64, opt ImportOptions) {
	note := fmt.Sprintf("edges: %d listed, %d stored", listed, stored)
	if opt.Symmetrize {
		note += ", the reverse of each among them"
	}
	if !opt.KeepDuplicates {
		note += "; repeats dropped"
	}
	if !opt.KeepSelfLoops {
		note += "; self-loops dropped"
	}
	r.notes = append(r.notes, note)
}

// reciprocitySamples is how many edges are looked for in reverse.
const reciprocitySamples = 20_000

// NoFeatures is the note on a dataset without features.
var NoFeatures = "no features: training needs some; --features-from " + strings.Join(FeatureSources(), ", ") +
	" makes them from the structure"

// LookAtEdges says whether the graph that was written is nearly symmetric or directed, and refuses negative
// weights, which the importer may not have looked at, unless they are to be kept.
func LookAtEdges(w *graph.Writer, negative bool) (notes []string, err error) {
	_, weighted := w.Meta.Arrays["weights.npy"]
	if w.Meta.Symmetric && !weighted {
		return nil, nil
	}
	g, unmap, err := w.Written()
	if err != nil {
		return nil, err
	}
	defer unmap()
	if least := g.LeastWeight(); least < 0 && !negative {
		return nil, &graph.InputError{Field: "weights", Found: fmt.Sprintf("%g", least), Want: "weights of 0 or more, as gcn " +
			"divides by the root of their sum", Fix: "give --negative-weights to keep them for models that do not"}
	}
	if w.Meta.Symmetric {
		return nil, nil
	}
	share := g.Reciprocity(reciprocitySamples)
	switch {
	case share == 1 && weighted: // only the weights differ
	case share >= 0.9:
		notes = append(notes, fmt.Sprintf("nearly symmetric: %.1f%% of edges have their reverse; --symmetrize adds "+
			"those that are missing", min(100*share, 99.9)))
	default:
		notes = append(notes, fmt.Sprintf("directed: %.1f%% of edges have their reverse; vertices hear from the sources "+
			"of their in-edges only; --symmetrize adds the reverse of every edge", 100*share))
	}
	return notes, nil
}

// matching lists the paths in a folder whose names match a pattern. The folder's own name
// may have brackets and stars in it.
func matching(dir, pattern string) (paths []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if ok, _ := filepath.Match(pattern, e.Name()); ok {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

func badFile(file, field, found, want, fix string) error {
	return &graph.InputError{File: file, Field: field, Found: found, Want: want, Fix: fix}
}

// badParam is the error for a flag.
func badParam(field, found, want string) error {
	return &graph.InputError{Field: "--" + field, Found: found, Want: want}
}

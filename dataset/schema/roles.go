package schema

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"starling/dataset"
	"starling/dataset/table"
	"starling/graph"
)

// Columns say what the columns of two tables are: one of edges, and perhaps one of vertices. What is left out is
// found
// where there is one choice only; where there are several, the error is a question that lists them.
type Columns struct {
	Edges, Vertices string // files, patterns or folders

	Src, Dst, Weight, Time string
	EdgeFeatures           []string

	ID, Label     string   // Label none: there is none
	Features      []string // columns, or files of a row per vertex; none of the two: all numbers
	Drop          []string
	OneHot        []string
	Split         string
	Shares        [3]float64 // to train on, to validate on and to test on; zeros: the usual
	VertexTime    string
	Task          string
	Missing       string // of features; "": mean
	Standardize   bool
	Repeats       string
	Symmetrize    bool
	SelfLoops     bool
	Negative      bool
	Header        string
	Like          *graph.Preparation // says all of the columns; nil: it is said here
	LikeFeatures  []string           // files of features that the preparation has apart
	WithoutLabels bool               // labels and splits are not looked for, as in predictions
}

// None is the label of a graph without labels.
const None = "none"

// Schema is the schema of the tables.
func (c *Columns) Schema() (*Schema, error) {
	r := &roles{Columns: c}
	if err := r.open(); err != nil {
		return nil, err
	}
	s := &Schema{Name: nameOf(c.Edges), Untyped: true, Like: c.Like}
	for _, find := range []func() error{r.like, r.dropped, r.edge, r.vertex} {
		if err := find(); err != nil {
			return nil, err
		}
	}
	s.Edges = []Edge{r.e}
	s.Nodes = []Node{r.n}
	return s, s.check()
}

// roles finds what columns are.
type roles struct {
	*Columns
	edges, vertices *table.Table
	n               Node
	e               Edge
	whyN, whyE      map[string]string
	byTime          *dataset.TimeSplit
}

func (r *roles) open() (err error) {
	if err := r.splitByTime(); err != nil {
		return err
	}
	source := func(path string) Source { return Source{Files: []string{path}, Header: r.Header} }
	r.whyN, r.whyE = map[string]string{}, map[string]string{}
	r.e = Edge{Table: source(r.Edges), at: place{r.Edges, ""}, Untyped: &UntypedEdge{Symmetrize: r.Symmetrize,
		SelfLoops: r.SelfLoops, Negative: r.Negative, why: r.whyE}}
	r.n = Node{Edges: true, why: r.whyN, at: place{r.Edges, ""}}
	names := append([]string{r.Src, r.Dst, r.Weight, r.Time}, r.EdgeFeatures...)
	of := append([]string{r.ID, r.Label, r.Split, r.VertexTime}, r.Features...)
	if r.Like != nil {
		names, of = likeNames(r.Like)
	}
	if r.edges, err = r.e.Table.open(names...); err != nil || r.Vertices == "" {
		return err
	}
	r.n = Node{Table: source(r.Vertices), why: r.whyN, at: place{r.Vertices, ""}}
	of = slices.DeleteFunc(append(of, r.OneHot...), func(n string) bool { return isFile(n) || n == None })
	r.vertices, err = r.n.Table.open(of...)
	return err
}

// likeNames are the columns that a preparation names, of edges and of vertices.
func likeNames(p *graph.Preparation) (edges, vertices []string) {
	if e := p.Edges; e != nil {
		edges = []string{e.Source, e.Target, e.Weight}
		for i := range e.Features {
			edges = append(edges, e.Features[i].Column)
		}
	}
	t := &p.Types[0]
	vertices = []string{t.ID}
	for i := range t.Features {
		if !t.Features[i].File {
			vertices = append(vertices, t.Features[i].Column)
		}
	}
	return edges, vertices
}

// isFile tells whether an entry of --features is a file and no column.
func isFile(name string) bool {
	return strings.HasSuffix(name, ".npy") || strings.HasSuffix(name, ".parquet") || strings.ContainsRune(name,
		filepath.Separator)
}

func flag(name, found, want, fix string) error {
	return &graph.InputError{Field: "--" + name, Found: found, Want: want, Fix: fix}
}

// known refuses a name that is no column of a table.
func known(flagged, name string, t *table.Table) error {
	if t == nil {
		return flag(flagged, name+" without a table of vertices", "--vertices TABLE beside it", "")
	}
	if t.Find(name) != nil {
		return nil
	}
	var names []string
	for i := range t.Columns {
		names = append(names, t.Columns[i].Name)
	}
	return flag(flagged, fmt.Sprintf("%.60q, which is no column of %s", name, t.Pattern), "one of "+t.Names(),
		suggest(name, names, "correct the name"))
}

// dropped notes the columns that are to be left out.
func (r *roles) dropped() error {
	for _, name := range r.Drop {
		of := r.whyE
		if r.vertices != nil && r.vertices.Find(name) != nil {
			of = r.whyN
		} else if r.edges.Find(name) == nil {
			t := r.edges
			if r.vertices != nil {
				t = r.vertices
			}
			return known("drop", name, t)
		}
		of[name] = "--drop"
	}
	return nil
}

// The words that columns are called by whose meaning needs no question.
var (
	sourceWords = []string{"src", "source", "from", "u", "src_id", "source_id", "from_id", "fromnodeid"}
	targetWords = []string{"dst", "target", "to", "v", "dst_id", "target_id", "to_id", "dest", "destination",
		"tonodeid"}
	idWords    = []string{"id", "node", "node_id", "nodeid", "vertex", "vertex_id"}
	labelWords = []string{"label", "labels", "class", "y"}
)

// called are the columns of a table that are called one of the words.
func called(t *table.Table, words []string) (out []string) {
	for i := range t.Columns {
		if slices.Contains(words, strings.ToLower(t.Columns[i].Name)) {
			out = append(out, t.Columns[i].Name)
		}
	}
	return out
}

// listed are columns with what they hold, for a question.
func listed(columns []table.Column) string {
	var names []string
	for i := range columns[:min(len(columns), 12)] {
		names = append(names, fmt.Sprintf("%.60s (%s)", columns[i].Name, columns[i].String()))
	}
	if n := len(columns) - len(names); n > 0 {
		names = append(names, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(names, ", ")
}

// edge finds source, target, weight, time and features of edges.
func (r *roles) edge() error {
	u := r.e.Untyped
	if err := r.ends(); err != nil {
		return err
	}
	for _, x := range []struct {
		flag, name string
		to         *string
	}{{"src", r.Src, &r.e.Src}, {"dst", r.Dst, &r.e.Dst}, {"weight", r.Weight, &u.Weight}, {"time", r.Time,
		&u.Time}} {
		if x.name == "" {
			continue
		}
		if err := known(x.flag, x.name, r.edges); err != nil {
			return err
		}
		*x.to = x.name
	}
	if r.e.Src == r.e.Dst {
		return flag("dst", r.e.Dst+", which is the source too", "another column", "")
	}
	for _, name := range r.EdgeFeatures {
		if err := known("edge-features", name, r.edges); err != nil {
			return err
		}
		if slices.Contains([]string{r.e.Src, r.e.Dst}, name) {
			return flag("edge-features", name+", which is an end of the edges", "other columns", "")
		}
		u.Features = append(u.Features, r.feature(name, r.edges, "edge-features"))
	}
	repeats, ok := graph.RepeatsNamed(r.Repeats)
	if !ok && r.Repeats != "" {
		return flag("repeats", fmt.Sprintf("%.40q", r.Repeats), "sum, mean, count, keep or first", "")
	}
	u.Repeats = repeats
	for i := range r.edges.Columns {
		name := r.edges.Columns[i].Name
		if r.whyE[name] == "" {
			r.whyE[name] = "not named"
		}
	}
	return nil
}

// ends finds the columns of source and target.
func (r *roles) ends() error {
	may := slices.Clone(r.edges.Columns)
	may = slices.DeleteFunc(may, func(c table.Column) bool {
		used := []string{r.Weight, r.Time, r.Src, r.Dst}
		return c.Kind != table.Text && c.Kind != table.Whole || slices.Contains(used,
			c.Name) || r.whyE[c.Name] != "" ||
			slices.Contains(r.EdgeFeatures, c.Name)
	})
	src, dst := called(r.edges, sourceWords), called(r.edges, targetWords)
	switch {
	case r.Src != "" && r.Dst != "":
	case r.Src == "" && r.Dst == "" && len(src) == 1 && len(dst) == 1:
		r.Src, r.Dst = src[0], dst[0]
	case r.Src == "" && r.Dst == "" && len(may) == 2 && len(r.edges.Columns) == 2:
		r.Src, r.Dst = may[0].Name, may[1].Name
	case r.Src == "" && r.Dst != "" && len(may) == 1:
		r.Src = may[0].Name
	case r.Dst == "" && r.Src != "" && len(may) == 1:
		r.Dst = may[0].Name
	case len(may)+len(r.Src+r.Dst) == 0 || len(may) == 1 && r.Src+r.Dst == "":
		return place{r.Edges, "columns"}.wrong(listed(r.edges.Columns), "two columns of ids, whole numbers or text",
			"name them with --src and --dst")
	default:
		missing := "--src and --dst"
		if r.Src != "" {
			missing = "--dst"
		} else if r.Dst != "" {
			missing = "--src"
		}
		return place{r.Edges, ""}.wrong(graph.Sentence("which columns are the ends of an edge is a question: "+
			""+listed(may)), missing,
			fmt.Sprintf("for example --src %s --dst %s", quoted(r.Src, likely(may, sourceWords, 0)),
				quoted(r.Dst, likely(may, targetWords, 1))))
	}
	return nil
}

// likely is the column for an example: one with a word in its name, as from_user, else the one at a place.
func likely(columns []table.Column, words []string, place int) string {
	for i := range columns {
		for part := range strings.FieldsFuncSeq(strings.ToLower(columns[i].Name), isSeparator) {
			if len(part) > 1 && slices.Contains(words, part) {
				return columns[i].Name
			}
		}
	}
	return columns[min(place, len(columns)-1)].Name
}

func isSeparator(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// quoted is a name for a shell.
func quoted(name, other string) string {
	if name == "" {
		name = other
	}
	if strings.ContainsAny(name, " \t'\"$&;|<>()*?`\\") {
		return "'" + strings.ReplaceAll(name, "'", `'\''`) + "'"
	}
	return name
}

// feature is a column of features.
func (r *roles) feature(name string, t *table.Table, flagged string) Feature {
	f := Feature{Col: name, Missing: r.Missing, at: place{t.Pattern, "--" + flagged}}
	if f.Missing == "" {
		f.Missing = "mean"
	}
	f.OneHot = slices.Contains(r.OneHot, name)
	f.Vague = !f.OneHot
	c := t.Find(name)
	f.Standardize = r.Standardize && !f.OneHot && c != nil && (c.Kind == table.Whole || c.Kind == table.Real)
	return f
}

// vertex finds id, label, features, split and time of vertices.
func (r *roles) vertex() error {
	if r.vertices == nil {
		return r.withoutVertices()
	}
	for _, x := range []struct {
		flag, name string
	}{{"id", r.ID}, {"label", r.Label}, {"split", r.Split}, {"vertex-time", r.VertexTime}} {
		if x.name == "" || x.flag == "label" && x.name == None {
			continue
		}
		if err := known(x.flag, x.name, r.vertices); err != nil {
			return err
		}
	}
	if err := r.id(); err != nil {
		return err
	}
	r.findSplit()
	if err := r.checkOneHot(); err != nil {
		return err
	}
	for _, name := range r.Features {
		if err := r.named(name); err != nil {
			return err
		}
	}
	r.n.ID, r.n.Time = r.ID, r.VertexTime
	if err := r.label(); err != nil {
		return err
	}
	if len(r.Features) == 0 && r.Like == nil {
		r.allNumbers()
	}
	r.splits()
	for i := range r.vertices.Columns {
		c := &r.vertices.Columns[i]
		if r.whyN[c.Name] == "" {
			r.whyN[c.Name] = "not named"
			if c.Kind == table.Text && len(r.Features) == 0 {
				r.whyN[c.Name] = "text; --one-hot " + quoted(c.Name, "") + " makes a feature of every word"
			}
		}
	}
	return nil
}

// withoutVertices refuses what needs a table of vertices.
func (r *roles) withoutVertices() error {
	for _, x := range []struct{ flag, value string }{{"id", r.ID}, {"label", r.Label}, {"features",
		strings.Join(r.Features, ",")},
		{"split", r.Split}, {"vertex-time", r.VertexTime}} {
		if x.value != "" {
			return flag(x.flag, x.value+" without a table of vertices", "--vertices TABLE beside it", "")
		}
	}
	if r.Shares != [3]float64{} {
		return flag("train", "shares without a table of vertices", "--vertices TABLE beside it, with labels", "")
	}
	for _, name := range r.OneHot {
		if !slices.Contains(r.EdgeFeatures, name) {
			return flag("one-hot", name+", which is no feature", "columns of --edge-features", "")
		}
	}
	return nil
}

// id finds the column of ids.
func (r *roles) id() error {
	if r.ID != "" {
		return nil
	}
	var may []table.Column
	for _, c := range r.vertices.Columns {
		if c.Kind == table.Text || c.Kind == table.Whole {
			may = append(may, c)
		}
	}
	switch words := called(r.vertices, idWords); {
	case len(words) == 1:
		r.ID = words[0]
	case len(may) == 1 && len(r.vertices.Columns) == 1:
		r.ID = may[0].Name
	case len(may) == 0:
		return place{r.Vertices, "columns"}.wrong(listed(r.vertices.Columns),
			"a column of ids, whole numbers or text",
			"name it with --id")
	default:
		return place{r.Vertices, ""}.wrong(graph.Sentence("which column has the ids is a question: "+listed(may)),
			"--id",
			"for example --id "+quoted(may[0].Name, ""))
	}
	return nil
}

// findSplit takes the column that is called split, where nothing else says how vertices are divided.
func (r *roles) findSplit() {
	words := called(r.vertices, []string{"split"})
	if r.Split == "" && r.Shares == [3]float64{} && r.Label != None && r.Like == nil && len(words) == 1 &&
		r.whyN[words[0]] == "" && !slices.Contains(r.Features, words[0]) {
		r.Split = words[0]
	}
}

func (r *roles) checkOneHot() error {
	for _, name := range r.OneHot {
		if slices.Contains(r.EdgeFeatures, name) {
			continue
		}
		if err := known("one-hot", name, r.vertices); err != nil {
			return err
		}
		if len(r.Features) > 0 && !slices.Contains(r.Features, name) {
			r.Features = append(r.Features, name)
		}
	}
	return nil
}

// named adds a feature that was named: a column, or a file.
func (r *roles) named(name string) error {
	if isFile(name) && r.vertices.Find(name) == nil {
		r.n.Features = append(r.n.Features, Feature{Table: Source{Files: []string{name}}, Missing: r.Missing,
			at: place{name, "--features"}})
		return nil
	}
	if err := known("features", name, r.vertices); err != nil {
		return err
	}
	for _, x := range []struct{ flag, name string }{{"id", r.ID}, {"label", r.Label}, {"split", r.Split}} {
		if x.name == name {
			return flag("features", name+", which is --"+x.flag, "other columns",
				"a model that sees its label learns nothing else")
		}
	}
	if r.whyN[name] != "" {
		return flag("features", name+", which --drop leaves out", "one of the two", "")
	}
	r.n.Features = append(r.n.Features, r.feature(name, r.vertices, "features"))
	return nil
}

// label finds the column that is learnt.
func (r *roles) label() error {
	if r.Label == None || r.WithoutLabels {
		if r.Split != "" && !r.WithoutLabels {
			return flag("split", r.Split+" without labels", "a label", "leave it out")
		}
		return nil
	}
	if r.Label == "" {
		left := r.left()
		words := called(r.vertices, labelWords)
		words = slices.DeleteFunc(words, func(name string) bool { return r.whyN[name] != "" })
		switch {
		case len(words) == 1:
			r.Label = words[0]
		case len(left) == 0:
			return nil
		case len(left) == 1 && len(r.vertices.Columns) == 2:
			r.Label = left[0].Name
		default:
			return place{r.Vertices, ""}.wrong(graph.Sentence("which column is to be learnt is a question: "+
				""+listed(left)), "--label",
				fmt.Sprintf("for example --label %s, or --label none for a graph without labels",
					quoted(left[len(left)-1].Name, "")))
		}
	}
	if r.whyN[r.Label] != "" {
		return flag("label", r.Label+", which --drop leaves out", "one of the two", "")
	}
	r.n.Label = &Label{Col: r.Label, Task: r.Task, at: place{r.Vertices, "--label"}}
	return nil
}

// left are the columns of vertices that have no meaning yet.
func (r *roles) left() (out []table.Column) {
	for _, c := range r.vertices.Columns {
		used := slices.Contains([]string{r.ID, r.Split, r.VertexTime}, c.Name) || r.whyN[c.Name] != "" ||
			slices.Contains(r.Features, c.Name) || slices.Contains(r.OneHot, c.Name)
		if !used && c.Kind != table.Vector && c.Kind != table.Time {
			out = append(out, c)
		}
	}
	return out
}

// allNumbers makes features of all columns of numbers and vectors, and of those of --one-hot.
func (r *roles) allNumbers() {
	for i := range r.vertices.Columns {
		c := &r.vertices.Columns[i]
		if slices.Contains([]string{r.ID, r.Label, r.Split, r.VertexTime}, c.Name) || r.whyN[c.Name] != "" {
			continue
		}
		lower := strings.ToLower(c.Name)
		switch {
		case slices.Contains(r.OneHot, c.Name):
		case c.Kind == table.Text || c.Kind == table.Time:
			continue
		case c.Kind == table.Whole && (strings.HasSuffix(lower, "_id") || lower == "id"):
			r.whyN[c.Name] = "an id by its name; --features takes it"
			continue
		}
		r.n.Features = append(r.n.Features, r.feature(c.Name, r.vertices, "features"))
	}
}

// splitByTime takes time:A,B, which is no column, out of the split.
func (r *roles) splitByTime() error {
	s, ok, err := dataset.ParseTimeSplit(r.Split)
	switch {
	case !ok || err != nil:
		return err
	case r.VertexTime == "" && (r.Like == nil || r.Like.Types[0].Time == nil):
		return flag("split", r.Split+" of vertices without times", "the column of their times",
			"add --vertex-time COLUMN")
	case r.Label == None || r.WithoutLabels:
		return flag("split", r.Split+" without labels", "a label", "leave it out")
	}
	r.byTime, r.Split = &s, ""
	return nil
}

func (r *roles) splits() {
	at := place{r.Vertices, "--split"}
	switch {
	case r.n.Label == nil:
	case r.byTime != nil:
		r.n.Split = &Split{Time: r.byTime, at: at}
	case r.Split != "":
		r.n.Split = &Split{Col: r.Split, at: at}
	case r.Shares != [3]float64{}:
		r.n.Split = &Split{Train: r.Shares[0], Val: r.Shares[1], Test: r.Shares[2], at: at}
	}
}

// like takes what a preparation says of columns.
func (r *roles) like() error {
	p := r.Like
	if p == nil {
		return nil
	}
	if p.Edges == nil {
		return flag("like", "the preparation of a graph with types", "that of two tables", "import schema takes it")
	}
	r.Src, r.Dst, r.Weight = p.Edges.Source, p.Edges.Target, p.Edges.Weight
	u := r.e.Untyped
	u.Symmetrize, u.SelfLoops, u.Negative = p.Edges.Symmetrize, p.Edges.SelfLoops, p.Edges.Negative
	r.Repeats = string(p.Edges.Repeats)
	if p.Edges.Time != nil {
		r.Time = p.Edges.Time.Column
	}
	r.EdgeFeatures = nil
	for i := range p.Edges.Features {
		r.EdgeFeatures = append(r.EdgeFeatures, p.Edges.Features[i].Column)
	}
	t := &p.Types[0]
	if r.vertices == nil {
		if len(t.Features) > 0 {
			return flag("vertices", "none", "the table of vertices: the preparation has "+t.Columns(), "")
		}
		return nil
	}
	r.ID, r.Label = t.ID, None
	if r.ID == "" {
		return flag("like", "a preparation without a column of ids", "one with", "")
	}
	if t.Label != nil && !r.WithoutLabels && r.vertices.Find(t.Label.Column) != nil {
		r.Label = t.Label.Column
	}
	if t.Split != "" && r.Label != None && r.vertices.Find(t.Split) != nil {
		r.Split = t.Split
	}
	if t.Time != nil {
		r.VertexTime = t.Time.Column
	}
	return r.likeFeatures(t)
}

// likeFeatures are the features of a preparation, those of files from the files that are given.
func (r *roles) likeFeatures(t *graph.PrepType) error {
	files := slices.Clone(r.LikeFeatures)
	r.Features, r.OneHot = nil, nil
	for i := range t.Features {
		c := &t.Features[i]
		if !c.File {
			r.Features = append(r.Features, c.Column)
			continue
		}
		if len(files) == 0 {
			return flag("features", "no file of "+c.Column, "a file of a row per vertex, called "+c.Column+".npy", "")
		}
		if nameOf(files[0]) != c.Column {
			return flag("features", files[0], "a file called "+c.Column+".npy, as when the preparation was made",
				"rename it")
		}
		r.Features, files = append(r.Features, files[0]), files[1:]
	}
	if len(files) > 0 {
		return flag("features", files[0], "nothing: the preparation has no such file", "leave it out")
	}
	return nil
}

package dataset

import (
	"archive/zip"
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"starling/graph"
)

// OGB node-property datasets (ogbn-arxiv, -products, -proteins, -papers100M): the
// folder that holds raw/ and split/, as the ogb package unpacks it. raw/ has either
//
//	edge.csv.gz               source,target
//	num-node-list.csv.gz      the number of vertices
//	node-feat.csv.gz          numbers a vertex, if there are features
//	node-label.csv.gz         a class, or a 0/1 column a class; empty or nan: none
//
// or, as papers100M and ogb's own DatasetSaver,
//
//	data.npz                  edge_index [2,edges], num_nodes_list, node_feat
//	node-label.npz            node_label, NaN where there is none
//
// and split/NAME has train, valid and test as csv.gz, or split_dict.pt. The loader of
// ogb adds the reverse of every edge to products and proteins; so do we, by the
// dataset's name. Everything as large as edges or features is streamed.
//
// W. Hu et al.: Open graph benchmark, 2020.

type ogb struct {
	dir, raw, name string
	opt            ImportOptions
}

var ogbInverse = []string{"products", "proteins"}

func readOGB(dir string, opt ImportOptions) (*read, error) {
	o := ogb{dir: dir, raw: filepath.Join(dir, "raw"), name: opt.Name, opt: opt}
	if _, err := os.Stat(o.raw); err != nil {
		return nil, badFile(dir, "raw", "no such folder", "an OGB dataset, which has raw and split", "name the folder that holds raw")
	}
	if o.name == "" {
		o.name = strings.ReplaceAll(baseName(dir), "_", "-")
	}
	r := &read{name: o.name}
	for _, word := range ogbInverse {
		if strings.Contains(o.name, word) && !opt.Symmetrise {
			r.symmetrise = true
			r.notes = append(r.notes, "the reverse of every edge was added, as ogb's loader does for "+word)
		}
	}
	var n int
	var err error
	if _, missing := os.Stat(filepath.Join(o.raw, "data.npz")); missing == nil {
		n, err = o.binary(r)
	} else {
		n, err = o.text(r)
	}
	if err == nil {
		err = o.splits(r, n)
	}
	if err != nil && r.edges != nil && r.edges.close != nil {
		r.edges.close()
	}
	return r, err
}

func baseName(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = path
	}
	return filepath.Base(abs)
}

// file is a file of raw, packed or not.
func (o *ogb) file(name string) (path string, ok bool) {
	for _, path := range []string{filepath.Join(o.raw, name+".csv.gz"), filepath.Join(o.raw, name+".csv")} {
		if _, err := os.Stat(path); err == nil {
			return path, true
		}
	}
	return filepath.Join(o.raw, name+".csv.gz"), false
}

// text reads the CSV files.
func (o *ogb) text(r *read) (n int, err error) {
	if n, err = o.nodes(); err != nil {
		return 0, err
	}
	path, _ := o.file("edge")
	e, err := readEdges(path, layout{delim: ',', columns: 2}, ImportOptions{Progress: o.opt.Progress, scratch: o.opt.scratch}, parseNumbers(nil))
	if err == errNames {
		return 0, badFile(path, "", "ids that are no whole numbers", fmt.Sprintf("0 to %d", n-1), "download the dataset again")
	}
	if err != nil {
		return 0, err
	}
	r.edges = &edgeFeed{nodes: n, expected: e.total, fill: func(s *graph.Sorter) error { return inPath(path, e.fill(s)) }, close: e.Close}
	if path, ok := o.file("node-feat"); ok {
		if r.rows, err = csvRows(path, n, o.opt); err != nil {
			return 0, err
		}
	}
	if _, ok := o.file("edge-feat"); ok {
		r.notes = append(r.notes, "edge-feat is not used")
	}
	if path, ok := o.file("node-label"); ok {
		r.labels, err = csvLabels(path, n, o.opt)
	}
	return n, err
}

// inPath names the file in a mistake that does not know its own.
func inPath(path string, err error) error {
	if in, ok := err.(*graph.InputError); ok && in.File == "" {
		in.File = path
	}
	return err
}

// nodes reads the one number of num-node-list.
func (o *ogb) nodes() (int, error) {
	path, _ := o.file("num-node-list")
	in, err := openInput(path)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, 1<<10))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	if err != nil || n < 1 || n > graph.MaxNodes {
		return 0, badFile(path, "", fmt.Sprintf("%.40q", bytes.TrimSpace(b)), "one number of vertices", "only datasets of one graph can be read")
	}
	return int(n), nil
}

const maxRowBytes = 4 << 20

// csvRows streams a table of numbers without ids.
func csvRows(path string, n int, opt ImportOptions) (*rowFeed, error) {
	in, err := openInput(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	head := make([]byte, maxRowBytes)
	k, err := io.ReadFull(in, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	first, _, _ := bytes.Cut(head[:k], newline)
	if len(bytes.TrimSpace(first)) == 0 {
		return nil, badFile(path, "line 1", "nothing", "numbers", "download the file again")
	}
	cols := bytes.Count(first, []byte{','}) + 1
	return &rowFeed{file: path, rows: n, cols: cols, each: func(put func([]float32) error) error {
		return lineBlocks(path, maxRowBytes, opt, func(data []byte) ([]float32, *lineError) { return parseRows(data, cols) }, put)
	}}, nil
}

// parseRows reads lines of cols numbers.
func parseRows(data []byte, cols int) ([]float32, *lineError) {
	var out []float32
	var line int64
	for rest := data; len(rest) > 0; {
		row, more, _ := bytes.Cut(rest, newline)
		rest = more
		line++
		if row = bytes.TrimSpace(row); len(row) == 0 {
			continue
		}
		got := 0
		for field := range bytes.SplitSeq(row, []byte{','}) {
			x, err := strconv.ParseFloat(text(bytes.TrimSpace(field)), 32)
			if got++; err != nil || got > cols {
				return nil, &lineError{line: line, found: fmt.Sprintf("%.60q", row), want: fmt.Sprintf("%d numbers", cols)}
			}
			out = append(out, float32(x))
		}
		if got != cols {
			return nil, &lineError{line: line, found: fmt.Sprintf("%d numbers", got), want: fmt.Sprint(cols)}
		}
	}
	return out, nil
}

// csvLabels reads a table of classes, one column, or of 0/1 marks, several.
func csvLabels(path string, n int, opt ImportOptions) (*graph.Labels, error) {
	type part struct {
		values []float32
		cols   int
	}
	var all labelRows
	all.file = path
	err := lineBlocks(path, maxRowBytes, opt, func(data []byte) (part, *lineError) {
		first, _, _ := bytes.Cut(data, newline)
		cols := bytes.Count(first, []byte{','}) + 1
		// A vertex without a label has an empty line or field in some files.
		if cols == 1 {
			data = bytes.ReplaceAll(append([]byte{'\n'}, data...), []byte("\n\n"), []byte("\nnan\n"))[1:]
		}
		x, err := parseRows(data, cols)
		return part{x, cols}, err
	}, func(p part) error { return all.add(p.values, p.cols, n) })
	if err != nil {
		return nil, err
	}
	return all.labels(n)
}

// labelRows collects labels that come as numbers, NaN for none: one a vertex is its
// class, several are marks.
type labelRows struct {
	file  string
	cols  int
	class []int32
	marks []uint8
	most  int32
	known bool
}

func (l *labelRows) bad(row int, found, want string) error {
	return badFile(l.file, fmt.Sprintf("row %d", row), found, want, "download the file again")
}

func (l *labelRows) rows() int {
	if l.cols > 1 {
		return len(l.marks) / l.cols
	}
	return len(l.class)
}

// add takes whole rows of cols numbers, in order.
func (l *labelRows) add(x []float32, cols, n int) error {
	if l.cols == 0 {
		l.cols = cols
	}
	if len(x) == 0 {
		return nil
	}
	if cols != l.cols || l.rows()+len(x)/cols > n {
		return l.bad(l.rows(), fmt.Sprintf("rows of %d, %d of them", cols, l.rows()+len(x)/cols), fmt.Sprintf("%d rows of %d", n, l.cols))
	}
	if cols > 1 {
		return l.addMarks(x)
	}
	for _, c := range x {
		switch {
		case c != c:
			l.class = append(l.class, -1)
			continue
		case c < -1 || c > maxClasses || c != float32(int32(c)):
			return l.bad(len(l.class), fmt.Sprint(c), "a class from 0")
		}
		l.class = append(l.class, int32(c))
		l.most = max(l.most, int32(c)+1)
	}
	return nil
}

func (l *labelRows) addMarks(x []float32) error {
	for ; len(x) > 0; x = x[l.cols:] {
		row := x[:l.cols]
		missing := 0
		for _, m := range row {
			switch {
			case m != m:
				missing++
				l.marks = append(l.marks, 0)
			case m == 0 || m == 1:
				l.marks = append(l.marks, uint8(m))
			default:
				return l.bad(l.rows(), fmt.Sprint(m), "0 or 1 for each class")
			}
		}
		if missing == l.cols {
			for i := len(l.marks) - l.cols; i < len(l.marks); i++ {
				l.marks[i] = graph.NoLabel
			}
		} else {
			l.known = true
		}
	}
	return nil
}

// labels is what was collected for n vertices; nil if no vertex has any.
func (l *labelRows) labels(n int) (*graph.Labels, error) {
	if l.rows() != n {
		return nil, l.bad(l.rows(), "the end", fmt.Sprintf("a row a vertex (%d)", n))
	}
	switch {
	case l.cols > 1 && l.known:
		return &graph.Labels{Classes: l.cols, Multi: l.marks}, nil
	case l.cols == 1 && l.most > 0:
		return &graph.Labels{Classes: int(l.most), Class: l.class}, nil
	}
	return nil, nil
}

// binary reads data.npz and node-label.npz.
func (o *ogb) binary(r *read) (n int, err error) {
	z, err := openNPZ(filepath.Join(o.raw, "data.npz"))
	if err != nil {
		return 0, err
	}
	z.kind = "OGB"
	a, err := z.array("num_nodes_list")
	var sizes []int64
	if err == nil {
		sizes, err = a.int64s()
	}
	if err == nil && (len(sizes) != 1 || sizes[0] < 1 || sizes[0] > graph.MaxNodes) {
		err = z.bad("num_nodes_list", fmt.Sprintf("%.60v", sizes), "the size of one graph")
	}
	if err != nil {
		z.zip.Close()
		return 0, err
	}
	n = int(sizes[0])
	r.edges = &edgeFeed{nodes: n, close: func() { z.zip.Close() }}
	if r.edges.fill, r.edges.expected, err = z.edgeIndex("edge_index", o.opt); err != nil {
		return 0, err
	}
	if z.find("node_feat") != nil {
		// The archive is opened again: edges may be done, and closed, when rows are read.
		r.rows, err = rowsOf(z.path, "node_feat", n, func() (*arrayStream, error) { return openInNPZ(z.path, "OGB", "node_feat") })
		if err != nil {
			return 0, err
		}
	}
	if z.find("edge_feat") != nil {
		r.notes = append(r.notes, "edge_feat is not used")
	}
	path := filepath.Join(o.raw, "node-label.npz")
	if _, missing := os.Stat(path); missing != nil {
		return n, nil
	}
	r.labels, err = npzLabels(path, "node_label", n)
	return n, err
}

// openInNPZ streams one array of an npz, which is closed with it.
func openInNPZ(path, kind, name string) (*arrayStream, error) {
	z, err := openNPZ(path)
	if err != nil {
		return nil, err
	}
	z.kind = kind
	a, err := z.stream(name)
	if err != nil {
		z.zip.Close()
		return nil, err
	}
	entry := a.close
	a.close = func() error {
		entry()
		return z.zip.Close()
	}
	return a, nil
}

// npzLabels reads [n], [n,1] or [n,classes] labels.
func npzLabels(path, name string, n int) (*graph.Labels, error) {
	a, err := openInNPZ(path, "OGB", name)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	cols := int64(1)
	if len(a.shape) == 2 {
		cols = a.shape[1]
	}
	if len(a.shape) < 1 || len(a.shape) > 2 || a.shape[0] != int64(n) || cols < 1 || cols > maxClasses {
		return nil, badFile(path, name, fmt.Sprintf("shape %v", a.shape), fmt.Sprintf("a row a vertex (%d)", n), "download the file again")
	}
	l := labelRows{file: path}
	x := make([]float32, max(1, pieceNumbers/cols)*cols)
	for a.left > 0 {
		x = x[:min(int64(len(x)), a.left)]
		if err := a.reals(x); err != nil {
			return nil, badFile(path, name, err.Error(), "a whole array of numbers", "download the file again")
		}
		if err := l.add(x, int(cols), n); err != nil {
			return nil, err
		}
	}
	return l.labels(n)
}

// splits reads the only folder of split/, or that which Split names.
func (o *ogb) splits(r *read, n int) error {
	found, _ := filepath.Glob(filepath.Join(o.dir, "split", "*"))
	found = slices.DeleteFunc(found, func(p string) bool {
		info, err := os.Stat(p)
		return err != nil || !info.IsDir()
	})
	if len(found) == 0 {
		r.notes = append(r.notes, "no split folder: the dataset has no splits")
		return nil
	}
	if len(found) > 1 {
		return badFile(filepath.Join(o.dir, "split"), "", fmt.Sprintf("%d splits", len(found)), "one", "move the others away")
	}
	dir := found[0]
	if _, missing := os.Stat(filepath.Join(dir, "split_dict.pt")); missing == nil {
		return o.splitDict(r, filepath.Join(dir, "split_dict.pt"), n)
	}
	for _, s := range []struct {
		name string
		ids  *[]uint32
	}{{"train", &r.splits.Train}, {"valid", &r.splits.Val}, {"test", &r.splits.Test}} {
		path := filepath.Join(dir, s.name+".csv.gz")
		if _, missing := os.Stat(path); missing != nil {
			path = filepath.Join(dir, s.name+".csv")
		}
		if err := lineBlocks(path, maxLine, o.opt, parseIDs, func(x []uint32) error {
			*s.ids = append(*s.ids, x...)
			return nil
		}); err != nil {
			return err
		}
		if err := checkSplit(path, s.ids, n); err != nil {
			return err
		}
	}
	return o.labelled(r)
}

// parseIDs reads a vertex a line.
func parseIDs(data []byte) (ids []uint32, bad *lineError) {
	var line int64
	for row := range bytes.Lines(data) {
		line++
		if row = bytes.TrimSpace(row); len(row) == 0 {
			continue
		}
		x, ok := smallNumber(row)
		if !ok {
			return nil, &lineError{line: line, found: fmt.Sprintf("%.40q", row), want: "a vertex number"}
		}
		ids = append(ids, x)
	}
	return ids, nil
}

// checkSplit sorts a split and refuses vertices that do not exist or come twice.
func checkSplit(path string, ids *[]uint32, n int) error {
	slices.Sort(*ids)
	for i, v := range *ids {
		if int(v) >= n || i > 0 && (*ids)[i-1] == v {
			return badFile(path, "", fmt.Sprintf("vertex %d", v), fmt.Sprintf("0 to %d, each once", n-1), "the split is of another dataset: download it again")
		}
	}
	return nil
}

// labelled drops vertices without a label from the splits: papers100M has none.
func (o *ogb) labelled(r *read) error {
	if r.labels == nil {
		return nil
	}
	for _, ids := range []*[]uint32{&r.splits.Train, &r.splits.Val, &r.splits.Test} {
		before := len(*ids)
		*ids = slices.DeleteFunc(*ids, func(v uint32) bool { return !r.labels.Has(int(v)) })
		if d := before - len(*ids); d > 0 {
			r.notes = append(r.notes, fmt.Sprintf("%d vertices without a label left out of a split", d))
		}
	}
	return nil
}

// splitDict reads what torch.save wrote of a dict of numpy arrays: a zip with a
// pickle in it.
func (o *ogb) splitDict(r *read, path string, n int) error {
	bad := func(found string) error {
		return badFile(path, "", found, "a dict of the numpy arrays train, valid and test", "save it again with numpy arrays, or as train.csv.gz, valid.csv.gz and test.csv.gz")
	}
	z, err := zip.OpenReader(path)
	if err != nil {
		return bad(err.Error())
	}
	defer z.Close()
	at := slices.IndexFunc(z.File, func(f *zip.File) bool { return strings.HasSuffix(f.Name, "/data.pkl") })
	if at < 0 || z.File[at].UncompressedSize64 > min(maxPickleBytes, z.File[at].CompressedSize64*maxInflate+1024) {
		return bad("no data.pkl")
	}
	f, err := z.File[at].Open()
	if err != nil {
		return bad(err.Error())
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxPickleBytes))
	if err != nil {
		return bad(err.Error())
	}
	v, err := unpickle(b)
	if err != nil {
		return bad(err.Error())
	}
	d, ok := v.(*dict)
	if !ok {
		return bad(errShape.Error())
	}
	for _, s := range []struct {
		name string
		ids  *[]uint32
	}{{"train", &r.splits.Train}, {"valid", &r.splits.Val}, {"test", &r.splits.Test}} {
		a, err := asArray(d.get(s.name))
		if err == nil {
			*s.ids, err = a.uint32s()
		}
		if err != nil {
			return bad(s.name + ": " + err.Error())
		}
		if err := checkSplit(path, s.ids, n); err != nil {
			return err
		}
	}
	return o.labelled(r)
}

package dataset

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"starling/dataset/table"
	"starling/event"
	"starling/graph"
)

// OGB node-property datasets (ogbn-arxiv, -products, -proteins, -papers100M): the
// folder with raw/ and split/, as the ogb package unpacks it. raw/ has either
//
//	edge.csv.gz               source,target
//	num-node-list.csv.gz      the number of vertices
//	node-feat.csv.gz          numbers per vertex, if there are features
//	edge-feat.csv.gz          numbers per edge, in the order of edge.csv.gz, if there are any
//	node-label.csv.gz         a class, or one 0/1 column per class; empty or nan: none
//
// or, as papers100M and ogb's own DatasetSaver,
//
//	data.npz                  edge_index [2,edges], num_nodes_list, node_feat, edge_feat
//	node-label.npz            node_label, NaN where there is none
//
// and split/NAME has train, valid and test as csv.gz, or split_dict.pt. The loader of
// ogb adds the reverse of every edge to products and proteins; so does this one, by the
// dataset's name. Everything as large as edges or features is streamed.
//
// W. Hu et al.: Open graph benchmark, 2020.

type ogb struct {
	dir, raw, name string
	opt            ImportOptions
}

var ogbInverse = []string{"products", "proteins"}

func readOGB(dir string, opt ImportOptions) (*read, error) {
	o := ogb{dir: dir, raw: filepath.Join(dir, "raw"), opt: opt,
		name: cmp.Or(opt.Name, strings.ReplaceAll(baseName(dir), "_", "-"))}
	if _, err := os.Stat(o.raw); err != nil {
		return nil, badFile(dir, "raw", "no such folder", "an OGB dataset, which has raw and split",
			"name the folder that holds raw")
	}
	r := &read{name: o.name}
	for _, word := range ogbInverse {
		if strings.Contains(o.name, word) && !opt.Symmetrize {
			r.symmetrize = true
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

// file is a file of raw, compressed or not.
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
	if n, err = o.number("num-node-list", 1); err != nil {
		return 0, err
	}
	path, _ := o.file("edge")
	e, err := readEdges(path, layout{delim: ',', columns: 2},
		ImportOptions{Progress: o.opt.Progress, scratch: o.opt.scratch}, parseNumbers(nil))
	if err == errNames {
		return 0, badFile(path, "", "ids that are no whole numbers", fmt.Sprintf("0 to %d", n-1),
			"download the dataset again")
	}
	if err != nil {
		return 0, err
	}
	if list, ok := o.file("num-edge-list"); ok {
		if want, err := o.number("num-edge-list", 0); err != nil || int64(want) != e.total {
			e.Close()
			if err == nil {
				err = badFile(path, "", event.Tally(e.total, "edge"),
					fmt.Sprintf("%d, as %s says", want, filepath.Base(list)),
					"the file was cut off or is of another dataset: download it again")
			}
			return 0, err
		}
	}
	r.edges = &edgeFeed{nodes: n, expected: e.total,
		fill: func(s *graph.Sorter) error { return inPath(path, e.fill(s)) }, close: e.Close}
	if path, ok := o.file("node-feat"); ok {
		if r.rows, err = csvRows(path, n, o.opt); err != nil {
			return 0, err
		}
	}
	if path, ok := o.file("edge-feat"); ok {
		if r.edges.features, err = csvRows(path, int(e.total), o.opt); err != nil {
			return 0, err
		}
	}
	if path, ok := o.file("node-label"); ok {
		r.labels, err = csvLabels(path, n, o.opt)
	}
	return n, err
}

// inPath adds the file to an InputError that does not name one.
func inPath(path string, err error) error {
	if in, ok := err.(*graph.InputError); ok && in.File == "" && !strings.HasPrefix(in.Field, "--") {
		in.File = path
	}
	return err
}

// number reads the one number of num-node-list or num-edge-list.
func (o *ogb) number(list string, least int64) (int, error) {
	path, _ := o.file(list)
	in, err := table.OpenText(path)
	if err != nil {
		return 0, err
	}
	defer in.Close()
	b, err := io.ReadAll(io.LimitReader(in, 1<<10))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	if err != nil || n < least || n > graph.MaxNodes {
		return 0, badFile(path, "", fmt.Sprintf("%.40q", bytes.TrimSpace(b)),
			fmt.Sprintf("one number from %d, below 2^32", least), "only datasets of one graph can be read")
	}
	return int(n), nil
}

const maxRowBytes = 4 << 20

// csvRows streams a table of numbers without ids.
func csvRows(path string, n int, opt ImportOptions) (*rowFeed, error) {
	in, err := table.OpenText(path)
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
		return lineBlocks(path, maxRowBytes, opt,
			func(data []byte) ([]float32, *lineError) { return parseRows(data, cols, false) }, put)
	}}, nil
}

// parseRows reads lines of cols numbers. With holes, empty fields are NaN, also in quotes,
// as pandas writes a line of nothing else.
func parseRows(data []byte, cols int, holes bool) ([]float32, *lineError) {
	var out []float32
	var line int64
	for rest := data; len(rest) > 0; {
		row, more, _ := bytes.Cut(rest, newline)
		rest = more
		line++
		if row = bytes.TrimSpace(row); len(row) == 0 && !(holes && cols == 1) {
			continue
		}
		got := 0
		for field := range bytes.SplitSeq(row, []byte{','}) {
			field = bytes.TrimSpace(field)
			if holes && (len(field) == 0 || string(field) == `""`) {
				field = []byte("nan")
			}
			x, err := strconv.ParseFloat(text(field), 32)
			if got++; err != nil || got > cols {
				return nil, &lineError{line: line, found: fmt.Sprintf("%.60q", row),
					want: event.Tally(cols, "number")}
			}
			out = append(out, float32(x))
		}
		if got != cols {
			return nil, &lineError{line: line, found: event.Tally(got, "number"), want: fmt.Sprint(cols)}
		}
	}
	return out, nil
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
		r.rows, err = rowsOf(z.path, "node_feat", n,
			func() (*table.Array, error) { return openInNPZ(z.path, "OGB", "node_feat") })
		if err != nil {
			return 0, err
		}
	}
	if z.find("edge_feat") != nil {
		r.edges.features, err = rowsOf(z.path, "edge_feat", int(r.edges.expected),
			func() (*table.Array, error) { return openInNPZ(z.path, "OGB", "edge_feat") })
		if err != nil {
			return 0, err
		}
	}
	path := filepath.Join(o.raw, "node-label.npz")
	if _, missing := os.Stat(path); missing != nil {
		return n, nil
	}
	r.labels, err = npzLabels(path, "node_label", n)
	return n, err
}

// openInNPZ streams one array of an npz, which is closed with it.
func openInNPZ(path, kind, name string) (*table.Array, error) {
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
	entry := a.Closing
	a.Closing = func() error {
		entry()
		return z.zip.Close()
	}
	return a, nil
}

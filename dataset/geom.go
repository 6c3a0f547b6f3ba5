package dataset

import (
	"bufio"
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"starling/dataset/table"
	"starling/event"
	"starling/graph"
)

// Geom-GCN text (Actor/film, Chameleon, Squirrel, Cornell, Texas, Wisconsin): a
// folder with two tab-separated files, each with a header,
//
//	out1_graph_edges.txt            source, target
//	out1_node_feature_label.txt     vertex, features, label
//
// perhaps after a prefix such as film_. Features are numbers between commas, as many
// in each row; film instead lists the columns of its ones, which its header shows
// by feature_amount. A file *_split_*.npz (train_mask, val_mask, test_mask) beside
// them gives the splits if there is exactly one.
//
// H. Pei et al.: Geom-GCN, 2020.

var geomSplit = SplitOptions{Train: 0.48, Val: 0.32, Test: 0.20}

const maxGeomLine = 4 << 20

func readGeom(dir string, opt ImportOptions) (*read, error) {
	edgePath, prefix, err := geomFile(dir, opt.Name, "out1_graph_edges.txt")
	if err != nil {
		return nil, err
	}
	nodePath, _, err := geomFile(dir, opt.Name, "out1_node_feature_label.txt")
	if err != nil {
		return nil, err
	}
	r := &read{name: cmp.Or(opt.Name, strings.Trim(prefix, "_-."), baseName(dir))}
	nodes := geomNodes{path: nodePath}
	if err := eachGeomLine(nodePath, 3, nodes.header, nodes.add); err != nil {
		return nil, err
	}
	if r.features, r.labels, err = nodes.finish(); err != nil {
		return nil, err
	}
	n := len(nodes.ids)
	var src, dst []uint32
	err = eachGeomLine(edgePath, 2, nil, func(f []string) string {
		u, ok1 := smallNumber([]byte(f[0]))
		v, ok2 := smallNumber([]byte(f[1]))
		if !ok1 || !ok2 || int(max(u, v)) >= n {
			return fmt.Sprintf("two vertices from 0 to %d", n-1)
		}
		src, dst = append(src, u), append(dst, v)
		return ""
	})
	if err != nil {
		return nil, err
	}
	if err := geomSplits(dir, prefix, n, r, opt); err != nil {
		return nil, err
	}
	return r, r.build(n, src, dst, nil, opt)
}

// geomFile finds the only file that ends in suffix, or the one with a name.
func geomFile(dir, name, suffix string) (path, prefix string, err error) {
	found := matching(dir, "*"+suffix)
	if len(found) > 1 && name != "" {
		found = slices.DeleteFunc(found, func(p string) bool { return !strings.HasPrefix(filepath.Base(p), name) })
	}
	if len(found) != 1 {
		return "", "", badFile(dir, "", fmt.Sprintf("%s *%s", event.Tally(len(found), "file"), suffix), "one",
			"name the folder of one dataset, or give --name film")
	}
	return found[0], strings.TrimSuffix(filepath.Base(found[0]), suffix), nil
}

// eachGeomLine reads tab-separated lines of a number of fields after the header. f
// returns "" or what it wanted.
func eachGeomLine(path string, fields int, header func(string), f func([]string) string) error {
	in, err := table.OpenText(path)
	if err != nil {
		return err
	}
	defer in.Close()
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 1<<16), maxGeomLine)
	n := 1
	for ; lines.Scan(); n++ {
		if n == 1 {
			if header != nil {
				header(lines.Text())
			}
			continue
		}
		line := strings.TrimRight(lines.Text(), "\r\n ")
		if line == "" {
			continue
		}
		want := fmt.Sprintf("%s between tabs", event.Tally(fields, "field"))
		if parts := strings.Split(line, "\t"); len(parts) == fields {
			want = f(parts)
		}
		if want != "" {
			return badFile(path, fmt.Sprintf("line %d", n), fmt.Sprintf("%.60q", line), want,
				"correct the line, or download the file again")
		}
	}
	if err := lines.Err(); err == bufio.ErrTooLong {
		return badFile(path, "", fmt.Sprintf("a line above %d bytes", maxGeomLine), "one vertex per line",
			"download the file again")
	} else if err != nil {
		return err
	}
	if n == 1 {
		return badFile(path, "", "nothing", "a header, then one line per vertex", "download the file again")
	}
	return nil
}

// geomNodes collects the vertices, which are in any order.
type geomNodes struct {
	path   string
	ones   bool // features are columns of ones
	amount int
	cols   int
	ids    []uint32
	label  []int32
	ptr    []int64
	index  []uint32
	values []float32
}

func (g *geomNodes) header(line string) {
	if m := regexp.MustCompile(`feature_amount:(\d+)`).FindStringSubmatch(line); m != nil {
		g.ones = true
		g.amount, _ = strconv.Atoi(m[1])
	}
}

func (g *geomNodes) add(f []string) string {
	id, ok := smallNumber([]byte(f[0]))
	label, err := strconv.ParseInt(f[2], 10, 32)
	if !ok || err != nil || label < -1 || label > maxClasses {
		return "a vertex, its features and a class from 0"
	}
	g.ids, g.label = append(g.ids, id), append(g.label, int32(label))
	width := 0
	for s := range strings.SplitSeq(f[1], ",") {
		if s == "" {
			continue
		}
		if g.ones {
			c, ok := smallNumber([]byte(s))
			if !ok || c >= math.MaxInt32 {
				return "the columns of ones between commas"
			}
			g.index, g.values = append(g.index, c), append(g.values, 1)
			g.cols = max(g.cols, int(c)+1)
			continue
		}
		x, err := strconv.ParseFloat(s, 32)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return "finite numbers between commas"
		}
		if x != 0 {
			g.index, g.values = append(g.index, uint32(width)), append(g.values, float32(x))
		}
		width++
	}
	if !g.ones {
		if len(g.ids) == 1 {
			g.cols = width
		}
		if width != g.cols {
			return fmt.Sprintf("as many features as in the first row (%d)", g.cols)
		}
	}
	g.ptr = append(g.ptr, int64(len(g.index)))
	return ""
}

// finish sorts the rows by vertex. Rows of which less than a tenth
// is not zero stay sparse.
func (g *geomNodes) finish() (*graph.Features, *graph.Labels, error) {
	n := len(g.ids)
	row := make([]int, n)
	for i, v := range g.ids {
		if int(v) >= n || row[v] != 0 {
			return nil, nil, badFile(g.path, "node_id", fmt.Sprint(v), fmt.Sprintf("0 to %d, each once", n-1),
				"download the file again")
		}
		row[v] = i + 1
	}
	if n == 0 || g.cols == 0 {
		return nil, nil, badFile(g.path, "", fmt.Sprintf("%s of %s", event.Tally(n, "vertex"),
			event.Tally(g.cols, "feature")), "some",
			"download the file again")
	}
	if g.ones && g.amount <= 16*g.cols+1024 {
		g.cols = max(g.cols, g.amount)
	}
	f := &graph.Features{Rows: n, Cols: g.cols, Indptr: make([]int64, 1, n+1)}
	l := &graph.Labels{Class: make([]int32, n)}
	for v, i := range row {
		lo := int64(0)
		if i--; i > 0 {
			lo = g.ptr[i-1]
		}
		f.Indices, f.Values = append(f.Indices, g.index[lo:g.ptr[i]]...), append(f.Values, g.values[lo:g.ptr[i]]...)
		f.Indptr = append(f.Indptr, int64(len(f.Indices)))
		l.Class[v] = g.label[i]
		l.Classes = max(l.Classes, int(g.label[i])+1)
	}
	if l.Classes == 0 {
		l = nil
	}
	if !g.ones && 10*len(f.Values) > n*g.cols {
		dense := &graph.Features{Rows: n, Cols: g.cols, F32: make([]float32, n*g.cols)}
		for v := range n {
			f.CopyRow(dense.F32[v*g.cols:(v+1)*g.cols], uint32(v))
		}
		f = dense
	}
	return f, l, nil
}

// geomSplits reads the masks beside the files, or draws a split.
func geomSplits(dir, prefix string, n int, r *read, opt ImportOptions) (err error) {
	found := slices.DeleteFunc(matching(dir, "*split_*.npz"),
		func(p string) bool { return !strings.HasPrefix(filepath.Base(p), prefix) })
	if opt.Split == (SplitOptions{}) && len(found) == 1 {
		return geomMasks(found[0], n, r)
	}
	if r.labels == nil {
		return nil
	}
	r.splits, err = opt.Split.or(geomSplit).split(r.labels, opt.Seed)
	if len(found) > 1 {
		r.notes = append(r.notes, fmt.Sprintf("%s of splits and none chosen: the split is drawn at random",
			event.Tally(len(found), "file")))
	}
	return err
}

func geomMasks(path string, n int, r *read) error {
	z, err := openNPZ(path)
	if err != nil {
		return err
	}
	defer z.zip.Close()
	z.kind = "Geom-GCN split"
	for _, s := range []struct {
		name string
		ids  *[]uint32
	}{{"train_mask", &r.splits.Train}, {"val_mask", &r.splits.Val}, {"test_mask", &r.splits.Test}} {
		a, err := z.array(s.name)
		if err != nil {
			return err
		}
		x, err := a.float32s()
		if err != nil || len(x) != n {
			return z.bad(s.name, fmt.Sprintf("shape %v of %s", a.shape, a.descr),
				fmt.Sprintf("0 or 1 per vertex (%d)", n))
		}
		for v, m := range x {
			if m != 0 && (r.labels == nil || r.labels.Has(v)) {
				*s.ids = append(*s.ids, uint32(v))
			}
		}
	}
	r.notes = append(r.notes, "splits of "+filepath.Base(path))
	return nil
}

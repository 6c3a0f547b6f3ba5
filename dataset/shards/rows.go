package shards

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"starling/dataset/table"
	"starling/disk/tasks"
	"starling/event"
	"starling/graph"
)

// vertexColumns are the columns of the shards of vertices.
type vertexColumns struct {
	ID, Label, Split string
	List             string   // a column of vectors,
	Numbers          []string // or columns of numbers: the features
	Width            int      // of the features
}

var (
	idNames      = []string{"id", "node_id", "node", "vertex", "name"}
	labelNames   = []string{"label", "labels", "y", "class"}
	splitNames   = []string{"split", "role"}
	featureNames = []string{"features", "feat", "feature", "x", "embedding", "embeddings"}
)

// describeVertexTable finds the columns by their names.
func (j *job) describeVertexTable() error {
	if len(j.vertices) == 0 {
		return nil
	}
	t, err := j.openVertices(j.vertices...)
	if err != nil {
		return err
	}
	find := func(names []string) string {
		for _, name := range names {
			for _, c := range t.Columns {
				if strings.EqualFold(c.Name, name) {
					return c.Name
				}
			}
		}
		return ""
	}
	c := &j.plan.Columns
	c.ID, c.Label, c.Split, c.List = find(idNames), find(labelNames), find(splitNames), find(featureNames)
	if c.ID == "" {
		return &graph.InputError{File: j.vertices[0], Field: "columns", Found: t.Names(), Want: "a column id", Fix: "rename the column of ids"}
	}
	if c.List != "" {
		if col := t.Find(c.List); col.Kind != table.Vector || col.Width == 0 {
			c.List = ""
		} else {
			c.Width = col.Width
		}
	}
	if c.List == "" {
		for _, col := range t.Columns {
			if col.Name != c.ID && col.Name != c.Label && col.Name != c.Split && (col.Kind == table.Whole || col.Kind == table.Real) {
				c.Numbers = append(c.Numbers, col.Name)
			}
		}
		c.Width = len(c.Numbers)
	}
	return nil
}

func (j *job) openVertices(files ...string) (*table.Table, error) {
	return table.Open(table.Options{Header: j.opt.Header}, files...)
}

// rowWords is how many words a vertex takes: its number, its label, its split and its features.
func (j *job) rowWords() int { return 3 + j.plan.Columns.Width }

// vertexResult is what is known of a shard of vertices beside its ids.
type vertexResult struct {
	readResult
	Labels []string `json:",omitempty"` // words; a row has 1 + the place of its own
}

const (
	splitTrain = 1 + iota
	splitVal
	splitTest

	mostLabels = 1 << 20 // words that a process holds
)

var splitWords = map[string]uint32{"": 0, "none": 0, "train": splitTrain, "val": splitVal, "valid": splitVal, "validation": splitVal,
	"test": splitTest}

// readVertices reads a shard of vertices.
func (j *job) readVertices(k int, out *tasks.Out) (any, error) {
	from, path := j.plan.Vertices[k], j.vertices[k]
	if err := j.unchanged(path, from); err != nil {
		return nil, err
	}
	t, err := j.openVertices(path)
	if err != nil {
		return nil, err
	}
	c := &j.plan.Columns
	want := []table.Want{{Name: c.ID, As: table.ID}}
	for _, w := range []table.Want{{Name: c.Label, As: table.Text}, {Name: c.Split, As: table.Text}, {Name: c.List, As: table.Vector}} {
		if w.Name != "" {
			want = append(want, w)
		}
	}
	for _, name := range c.Numbers {
		want = append(want, table.Want{Name: name, As: table.Real})
	}
	r := &vertexReader{j: j, out: out, path: path, labels: map[string]uint32{}, row: make([]uint32, j.rowWords())}
	if r.text = j.opt.IDs == "text"; !r.text {
		if r.text, err = namesIn(t, c.ID); err != nil {
			return nil, err
		}
	}
	if r.w, err = j.newShardWriter(r.text, out); err != nil {
		return nil, err
	}
	r.w.chunk.mostEnds = int(max(j.opt.Memory/4/int64(4*j.rowWords()), 16))
	if r.rows, err = out.Create("rows"); err != nil {
		return nil, err
	}
	if err := t.Read(want, r.batch); err != nil {
		return nil, err
	}
	result := vertexResult{Labels: r.words}
	if result.readResult, err = r.w.finish(); err != nil {
		return nil, err
	}
	return result, j.unchanged(path, from)
}

// namesIn tells whether one of the ids is no whole number.
func namesIn(t *table.Table, id string) (names bool, err error) {
	err = t.Read([]table.Want{{Name: id, As: table.ID}}, func(b *table.Batch) error {
		for _, s := range b.Columns[0].Text {
			if x, err := strconv.ParseInt(s, 10, 64); err != nil || strconv.FormatInt(x, 10) != s {
				names = true
				return io.EOF
			}
		}
		return nil
	})
	if names {
		err = nil
	}
	return names, err
}

type vertexReader struct {
	j      *job
	out    *tasks.Out
	path   string
	text   bool
	w      *shardWriter
	rows   *tasks.Writer
	labels map[string]uint32
	words  []string
	row    []uint32
}

func (r *vertexReader) refuse(b *table.Batch, i int, column, found, want, fix string) error {
	return &graph.InputError{File: r.path, Field: fmt.Sprintf("%s, column %.60s", b.Place(i), column), Found: found, Want: want, Fix: fix}
}

// batch takes rows of the shard.
func (r *vertexReader) batch(b *table.Batch) error {
	if err := r.j.ctx.Err(); err != nil {
		return err
	}
	c := &r.j.plan.Columns
	for i := range b.Rows {
		at := 0
		next := func() *table.Values { at++; return &b.Columns[at-1] }
		if err := r.id(b, i, next()); err != nil {
			return err
		}
		r.row[1], r.row[2] = 0, 0
		if c.Label != "" {
			if v := next(); !v.IsMissing(i) && !table.IsMissing(v.Text[i]) {
				n, err := r.label(v.Text[i])
				if err != nil {
					return err
				}
				r.row[1] = n
			}
		}
		if c.Split != "" {
			word := strings.ToLower(next().Text[i])
			n, ok := splitWords[word]
			if !ok {
				return r.refuse(b, i, c.Split, fmt.Sprintf("%.40q", word), "train, val, test or nothing", "correct it")
			}
			r.row[2] = n
		}
		if err := r.features(b, i, b.Columns[at:]); err != nil {
			return err
		}
		if _, err := r.rows.Write(bytesOf(r.row)); err != nil {
			return err
		}
		r.w.result.Edges++
	}
	return nil
}

func (r *vertexReader) id(b *table.Batch, i int, v *table.Values) error {
	if v.IsMissing(i) {
		return r.refuse(b, i, r.j.plan.Columns.ID, "no id", "an id in every row", "fill it in, or remove the row")
	}
	c := r.w.chunk
	if c.full(1 << 10) {
		if err := r.w.flush(); err != nil {
			return err
		}
	}
	switch {
	case !r.text && v.Text == nil:
		c.ends = append(c.ends, c.number(v.Whole[i]))
	case !r.text:
		x, err := strconv.ParseInt(v.Text[i], 10, 64)
		if err != nil {
			return err
		}
		c.ends = append(c.ends, c.number(x))
	case v.Text == nil:
		c.ends = append(c.ends, c.name(strconv.AppendInt(nil, v.Whole[i], 10)))
	default:
		c.ends = append(c.ends, c.name([]byte(v.Text[i])))
	}
	return nil
}

func (r *vertexReader) label(word string) (uint32, error) {
	n := r.labels[word]
	if n == 0 {
		if len(r.words) == mostLabels {
			return 0, &graph.InputError{File: r.path, Field: "column " + r.j.plan.Columns.Label, Found: "more than a million labels",
				Want: "classes", Fix: "numbers to predict are not imported in shards: leave --workers out"}
		}
		r.words = append(r.words, strings.Clone(word))
		n = uint32(len(r.words))
		r.labels[r.words[n-1]] = n
	}
	return n, nil
}

func (r *vertexReader) features(b *table.Batch, i int, values []table.Values) error {
	c := &r.j.plan.Columns
	for f := range c.Width {
		var x float32
		name := c.List
		if c.List != "" {
			if values[0].Width != c.Width {
				return r.refuse(b, i, name, fmt.Sprintf("lists of %d", values[0].Width), fmt.Sprint(c.Width)+", as in "+r.j.vertices[0],
					"write the shards again")
			}
			x = values[0].Vector[i*c.Width+f]
		} else {
			name = c.Numbers[f]
			x = float32(values[f].Real[i])
		}
		if x != x || math.IsInf(float64(x), 0) {
			if r.j.opt.Missing != "zero" {
				return r.refuse(b, i, name, "no finite number", "one in every row", "fill it in, or give --missing zero")
			}
			x = 0
		}
		r.row[3+f] = math.Float32bits(x)
	}
	return nil
}

// spreadRows is the part of stage rows that goes shard by shard: it groups rows by piece.
func (j *job) spreadRows() error {
	if len(j.vertices) == 0 {
		return nil
	}
	return j.f.Do(j.ctx, "spreadrows", len(j.vertices), func(k int, out *tasks.Out) (any, error) {
		k += len(j.edges)
		r := &spreadResult{Chunks: []int64{0}}
		l, err := j.newLookup(k)
		defer l.Close()
		if err != nil {
			return nil, err
		}
		ends, err := j.f.Open("read", k, "ends")
		if err != nil {
			return nil, err
		}
		defer ends.Close()
		rows, err := j.f.Open("read", k, "rows")
		if err != nil {
			return nil, err
		}
		defer rows.Close()
		to, err := out.Create("rows")
		if err != nil {
			return nil, err
		}
		index, err := out.Create("starts")
		if err != nil {
			return nil, err
		}
		words := j.rowWords()
		for _, c := range j.counts[k].Chunks {
			numbers, err := l.next(c)
			if err != nil {
				return nil, err
			}
			at, all := make([]uint32, c.Ends), make([]uint32, c.Ends*words)
			if _, err := io.ReadFull(ends, bytesOf(at)); err != nil {
				return nil, err
			}
			if _, err := io.ReadFull(rows, bytesOf(all)); err != nil {
				return nil, err
			}
			starts, order := make([]uint32, len(j.pieces)+1), make([]uint32, c.Ends)
			for i, x := range at {
				all[i*words] = numbers[x]
				order[i] = uint32(i)
				starts[j.pieceOf(numbers[x])+1]++
			}
			slices.SortStableFunc(order, func(a, b uint32) int { return cmp.Compare(all[int(a)*words], all[int(b)*words]) })
			for p := range j.pieces {
				starts[p+1] += starts[p]
			}
			if _, err := index.Write(bytesOf(starts)); err != nil {
				return nil, err
			}
			for _, i := range order {
				if _, err := to.Write(bytesOf(all[int(i)*words : (int(i)+1)*words])); err != nil {
					return nil, err
				}
			}
			r.Chunks = append(r.Chunks, r.Chunks[len(r.Chunks)-1]+int64(c.Ends))
		}
		return r, nil
	})
}

func (j *job) pieceOf(v uint32) int {
	k, _ := slices.BinarySearchFunc(j.pieces, int64(v), func(p piece, v int64) int {
		switch {
		case v < p.first:
			return 1
		case v >= p.first+p.rows:
			return -1
		}
		return 0
	})
	return k
}

// rowsResult is what is known of a piece after stage rows.
type rowsResult struct{ Train, Val, Test int64 }

// rows is stage rows.
func (j *job) rows() error {
	if len(j.vertices) == 0 {
		return nil
	}
	if err := j.spreadRows(); err != nil {
		return err
	}
	if err := j.learnLabels(); err != nil {
		return err
	}
	if err := j.f.Do(j.ctx, "rows", len(j.pieces), j.rowsOfPiece); err != nil {
		return err
	}
	if err := j.f.Drop("spreadrows", 0, len(j.vertices)); err != nil {
		return err
	}
	return j.f.Do(j.ctx, "splits", 1, func(_ int, out *tasks.Out) (any, error) { return j.writeSplits(out) })
}

// classes are the labels of all shards.
type classes struct {
	names []string // in order; nil: classes are numbers
	count int
	of    []map[uint32]int32 // of each shard, by the places of its words
}

// learnLabels numbers the labels: whole numbers are classes, words are in alphabetical order.
func (j *job) learnLabels() error {
	words, numbers, real := map[string]int32{}, true, true
	lists := make([][]string, len(j.vertices))
	for k := range j.vertices {
		var r vertexResult
		if err := j.f.Result("read", len(j.edges)+k, &r); err != nil {
			return err
		}
		lists[k] = r.Labels
		for _, w := range r.Labels {
			words[w] = 0
			x, err := strconv.ParseInt(w, 10, 32)
			numbers = numbers && err == nil && x >= 0 && x < graph.MaxClasses
			_, err = strconv.ParseFloat(w, 64)
			real = real && err == nil
		}
	}
	if real && !numbers {
		return &graph.InputError{File: j.vertices[0], Field: "column " + j.plan.Columns.Label, Found: "numbers to predict", Want: "classes",
			Fix: "leave --workers out for regression, or rename the column"}
	}
	j.classes = classes{}
	names := slices.Sorted(maps.Keys(words))
	for i, w := range names {
		words[w] = int32(i)
		if numbers {
			x, _ := strconv.ParseInt(w, 10, 32)
			words[w] = int32(x)
		}
		j.classes.count = max(j.classes.count, int(words[w])+1)
	}
	if !numbers {
		j.classes.names = names
	}
	if j.classes.count > graph.MaxClasses {
		return &graph.InputError{File: j.vertices[0], Field: "column " + j.plan.Columns.Label, Found: event.Tally(len(names), "label"),
			Want: "at most 2^24 classes", Fix: "leave --workers out for numbers to predict"}
	}
	for _, list := range lists {
		of := map[uint32]int32{0: -1}
		for i, w := range list {
			of[uint32(i+1)] = words[w]
		}
		j.classes.of = append(j.classes.of, of)
	}
	return nil
}

// rowsOfPiece puts the rows of a piece in order.
func (j *job) rowsOfPiece(k int, out *tasks.Out) (any, error) {
	p, words, width := j.pieces[k], j.rowWords(), j.plan.Columns.Width
	features, labels := make([]uint32, p.rows*int64(width)), make([]int32, p.rows)
	splits, seen := make([]byte, p.rows), make([]bool, p.rows)
	buf := make([]uint32, words*256)
	for s := range j.vertices {
		if err := j.eachRowOf(s, k, buf, func(row []uint32) error {
			at := int64(row[0]) - p.first
			if seen[at] {
				return &graph.InputError{File: j.vertices[s], Field: "ids", Found: j.nameOf(int64(row[0])) + " in a second row",
					Want: "every id once", Fix: "remove one of the rows"}
			}
			seen[at], labels[at], splits[at] = true, j.classes.of[s][row[1]], byte(row[2])
			copy(features[at*int64(width):], row[3:])
			return nil
		}); err != nil {
			return nil, err
		}
	}
	if at := slices.Index(seen, false); at >= 0 {
		return nil, &graph.InputError{File: j.dir, Field: "ids", Found: j.nameOf(p.first+int64(at)) + ", which edges name and no shard of vertices has",
			Want: "a row for every vertex", Fix: "add it, or check that no shard of vertices is missing"}
	}
	var r rowsResult
	lists := [4][]uint32{}
	for i, s := range splits {
		if s > 0 && labels[i] >= 0 {
			lists[s] = append(lists[s], uint32(p.first)+uint32(i))
		}
	}
	r.Train, r.Val, r.Test = int64(len(lists[splitTrain])), int64(len(lists[splitVal])), int64(len(lists[splitTest]))
	for name, b := range map[string][]byte{"features.npy": bytesOf(features), "labels.npy": bytesOf(labels),
		"train.npy": bytesOf(lists[splitTrain]), "val.npy": bytesOf(lists[splitVal]), "test.npy": bytesOf(lists[splitTest])} {
		w, err := out.Create(name)
		if err == nil {
			_, err = w.Write(b)
		}
		if err != nil {
			return nil, err
		}
	}
	return r, j.ctx.Err()
}

// nameOf is the id of a vertex, for messages.
func (j *job) nameOf(v int64) string {
	name := strconv.FormatInt(v, 10)
	if j.numbers.identity {
		return name
	}
	_ = j.eachID(v, v+1, func(key []byte) error {
		if name = fmt.Sprintf("%.60q", key); !j.text {
			name = strconv.FormatInt(numberOf(key), 10)
		}
		return nil
	})
	return name
}

// eachRowOf passes the rows of a piece in a shard of vertices.
func (j *job) eachRowOf(s, k int, buf []uint32, each func(row []uint32) error) error {
	var r spreadResult
	if err := j.f.Result("spreadrows", s, &r); err != nil {
		return err
	}
	index, err := j.open("spreadrows", s, "starts")
	if err != nil {
		return err
	}
	defer index.Close()
	rows, err := j.open("spreadrows", s, "rows")
	if err != nil {
		return err
	}
	defer rows.Close()
	words := int64(j.rowWords())
	for c := range len(r.Chunks) - 1 {
		var at [8]byte
		if _, err := index.ReadAt(at[:], 4*(int64(c)*int64(len(j.pieces)+1)+int64(k))); err != nil {
			return err
		}
		from, to := int64(binary.LittleEndian.Uint32(at[:])), int64(binary.LittleEndian.Uint32(at[4:]))
		for from < to {
			n := min(to-from, int64(len(buf))/words)
			if _, err := rows.ReadAt(bytesOf(buf[:n*words]), 4*words*(r.Chunks[c]+from)); err != nil {
				return err
			}
			for i := range n {
				if err := each(buf[i*words : (i+1)*words]); err != nil {
					return err
				}
			}
			from += n
		}
	}
	return nil
}

// writeSplits joins the splits of all pieces.
func (j *job) writeSplits(out *tasks.Out) (any, error) {
	out.Last = true
	var sum rowsResult
	for k := range j.pieces {
		var r rowsResult
		if err := j.f.Result("rows", k, &r); err != nil {
			return nil, err
		}
		sum.Train, sum.Val, sum.Test = sum.Train+r.Train, sum.Val+r.Val, sum.Test+r.Test
	}
	made := placed{}
	for name, n := range map[string]int64{"train.npy": sum.Train, "val.npy": sum.Val, "test.npy": sum.Test} {
		if n == 0 {
			continue
		}
		w, err := out.Create(name)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(graph.JoinedHeader("<u4", n)); err != nil {
			return nil, err
		}
		for k := range j.pieces {
			if err := j.copyFile(w, "rows", k, name); err != nil {
				return nil, err
			}
		}
		if made[name], err = (&pieceWriter{Writer: w}).done(n); err != nil {
			return nil, err
		}
	}
	return made, nil
}

// vertexArrays are the arrays of vertices that are in pieces.
func (j *job) vertexArrays() (list []arrayOf) {
	if len(j.vertices) == 0 {
		return nil
	}
	if width := int64(j.plan.Columns.Width); width > 0 {
		list = append(list, arrayOf{"features.npy", "<f4", []int64{j.numbers.n, width}})
	}
	if j.classes.count > 0 {
		list = append(list, arrayOf{"labels.npy", "<i4", []int64{j.numbers.n}})
	}
	return list
}

func (j *job) vertexRowBytes(a arrayOf) int64 {
	if len(a.shape) == 2 {
		return 4 * a.shape[1]
	}
	return 4
}

// describeVertices completes meta.json.
func (j *job) describeVertices(m *graph.Meta, dir string) error {
	if len(j.vertices) == 0 {
		m.Notes = append(m.Notes, "no features: training needs some; shards of vertices, called nodes…, have them")
		return nil
	}
	c := &j.plan.Columns
	if c.Width > 0 {
		m.Features = &graph.FeatureMeta{Kind: graph.Dense, Dim: c.Width, Columns: c.Numbers}
	}
	if j.classes.count > 0 {
		m.Task, m.Classes, m.ClassNames = graph.SingleLabel, j.classes.count, j.classes.names
	}
	var made placed
	if err := j.f.Result("splits", 0, &made); err != nil {
		return err
	}
	for name, f := range made {
		if err := j.link("splits", 0, name, dir+"/"+name); err != nil {
			return err
		}
		m.Arrays[name] = graph.ArrayMeta{DType: "<u4", Shape: []int64{f.Rows}, Bytes: f.Bytes, CRC32C: f.CRC32C}
	}
	if j.classes.count > 0 && len(made) == 0 {
		m.Notes = append(m.Notes, "no splits: a column split with train, val and test makes them")
	}
	return nil
}

package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"starling/dataset/table"
)

// EdgeShard is one file of a table of edges that is in several: text in the manner of edge lists, or Parquet. It is read
// on one core, in pieces of bounded size.
type EdgeShard struct {
	Path    string
	opt     ImportOptions
	lay     layout
	parquet bool
}

// ErrNames tells that ids are no whole numbers.
var ErrNames = errors.New("ids are names")

// OpenEdgeShard looks at the head of a file.
func OpenEdgeShard(path string, opt ImportOptions) (s *EdgeShard, err error) {
	s = &EdgeShard{Path: path, opt: opt}
	if s.parquet, err = isParquet(path); err != nil {
		return nil, err
	}
	if s.parquet {
		t, err := openEdgeTable(path, opt)
		if err != nil {
			return nil, err
		}
		t.file.Close()
		return s, nil
	}
	s.lay, err = sniff(path, opt)
	return s, err
}

func isParquet(path string) (bool, error) {
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer f.Close()
	var head [4]byte
	n, _ := f.Read(head[:])
	return string(head[:n]) == "PAR1", nil
}

// Names reads all edges, with ids as text that is good until put returns.
func (s *EdgeShard) Names(put func(src, dst []byte, weight float32) error) error {
	if s.parquet {
		return s.batches(func(b *table.Batch) error { return s.putNames(b, put) })
	}
	return s.lines(func(b *block) error {
		var failed error
		edges := 0
		b.eachLine(s.lay, s.opt.Weights, func(u, v []byte) error {
			var w float32
			if s.opt.Weights {
				w = b.weights[edges]
			}
			edges++
			failed = put(u, v, w)
			return failed
		})
		return failed
	})
}

// Numbers reads all edges, whose ids are whole numbers; else it ends with ErrNames. weights is nil without weights.
func (s *EdgeShard) Numbers(put func(src, dst []int64, weights []float32) error) error {
	if s.parquet {
		return s.batches(func(b *table.Batch) error { return s.putNumbers(b, put) })
	}
	var src, dst []int64
	return s.lines(func(b *block) error {
		src, dst = src[:0], dst[:0]
		if !s.opt.Weights && b.plain(s.lay) {
			for i := range b.src {
				src, dst = append(src, int64(b.src[i])), append(dst, int64(b.dst[i]))
			}
			return put(src, dst, nil)
		}
		b.src, b.dst, b.line = b.src[:0], b.dst[:0], 0
		b.eachLine(s.lay, s.opt.Weights, func(u, v []byte) error {
			x, ok1 := canonicalNumber(u)
			y, ok2 := canonicalNumber(v)
			if !ok1 || !ok2 {
				return ErrNames
			}
			src, dst = append(src, x), append(dst, y)
			return nil
		})
		if b.err != nil {
			return b.err.err // nil: the line is bad, and lines says which it is
		}
		if !s.opt.Weights {
			return put(src, dst, nil)
		}
		return put(src, dst, b.weights)
	})
}

// canonicalNumber reads a number that is written as numbers are: 7, and not 007.
func canonicalNumber(s []byte) (int64, bool) {
	if x, ok := smallNumber(s); ok && (s[0] != '0' || len(s) == 1) {
		return int64(x), true
	}
	x, err := strconv.ParseInt(text(s), 10, 64)
	var digits [20]byte
	return x, err == nil && bytes.Equal(strconv.AppendInt(digits[:0], x, 10), s)
}

// lines reads blocks of whole lines.
func (s *EdgeShard) lines(each func(b *block) error) error {
	in, err := table.OpenText(s.Path)
	if err != nil {
		return err
	}
	defer in.Close()
	split := blocks{path: s.Path, in: in, longest: maxLine}
	var b block
	var buf []byte
	for before := int64(0); ; before += b.line {
		k, data, err := split.next(buf)
		if err != nil || data == nil {
			return err
		}
		b = block{data: data, index: int(k), src: b.src[:0], dst: b.dst[:0], weights: b.weights[:0]}
		err = each(&b)
		if b.err != nil && b.err.err == nil {
			return b.err.at(s.Path, before)
		}
		if err != nil {
			return err
		}
		buf = data
	}
}

// batches reads rows of a Parquet table.
func (s *EdgeShard) batches(each func(b *table.Batch) error) error {
	e, err := openEdgeTable(s.Path, s.opt)
	if err != nil {
		return err
	}
	want := []table.Want{{Name: e.src.Name, As: table.ID}, {Name: e.dst.Name, As: table.ID}}
	if e.weight != nil {
		want = append(want, table.Want{Name: e.weight.Name, As: table.Real})
	}
	e.file.Close()
	t, err := table.Open(table.Options{}, s.Path)
	if err != nil {
		return err
	}
	return t.Read(want, func(b *table.Batch) error {
		for c := range b.Columns {
			for i := range b.Rows {
				if b.Columns[c].IsMissing(i) {
					return badFile(s.Path, fmt.Sprintf("%s, column %s", b.Place(i), want[c].Name), "a missing value",
						"one in every row", "fill it in, or remove the row")
				}
			}
		}
		return each(b)
	})
}

// weightsOf are the weights of a batch, which has no missing ones.
func (s *EdgeShard) weightsOf(b *table.Batch, to []float32) ([]float32, error) {
	for i, x := range b.Columns[2].Real {
		if math.Abs(x) > math.MaxFloat32 || x < 0 && !s.opt.NegativeWeights {
			return nil, badFile(s.Path, b.Place(i)+", the weight", fmt.Sprint(x), "a weight of 0 or more that a float32 can hold",
				"correct it; --negative-weights keeps those below 0 for models that can take them")
		}
		to = append(to, float32(x))
	}
	return to, nil
}

func (s *EdgeShard) putNumbers(b *table.Batch, put func(src, dst []int64, weights []float32) error) (err error) {
	if b.Columns[0].Text != nil || b.Columns[1].Text != nil {
		return ErrNames
	}
	var weights []float32
	if s.opt.Weights {
		if weights, err = s.weightsOf(b, nil); err != nil {
			return err
		}
	}
	return put(b.Columns[0].Whole, b.Columns[1].Whole, weights)
}

func (s *EdgeShard) putNames(b *table.Batch, put func(src, dst []byte, weight float32) error) (err error) {
	var weights []float32
	if s.opt.Weights {
		if weights, err = s.weightsOf(b, nil); err != nil {
			return err
		}
	}
	var x, y []byte
	for i := range b.Rows {
		x, y = idText(x[:0], &b.Columns[0], i), idText(y[:0], &b.Columns[1], i)
		var w float32
		if weights != nil {
			w = weights[i]
		}
		if bytes.IndexByte(x, '\n') >= 0 || bytes.IndexByte(y, '\n') >= 0 {
			return badFile(s.Path, b.Place(i), "a name with a line break", "names on one line", "rename the vertex")
		}
		if err := put(x, y, w); err != nil {
			return err
		}
	}
	return nil
}

func idText(to []byte, v *table.Values, i int) []byte {
	if v.Text != nil {
		return append(to, v.Text[i]...)
	}
	return strconv.AppendInt(to, v.Whole[i], 10)
}

// EdgeShards lists the files of edges of a folder of shards, and those of vertices, in natural order: those
// whose names, or folders, begin with edge, and with node or vert. A folder without any of these has shards of edges.
// Gaps in the numbers of a folder's shards are refused.
func EdgeShards(src string) (edges, vertices []string, err error) {
	files, err := table.Find(src)
	if err != nil {
		return nil, nil, err
	}
	if info, err := os.Stat(src); err != nil || !info.IsDir() {
		return files, nil, nil
	}
	if err := checkNumbers(src, files); err != nil {
		return nil, nil, err
	}
	var other []string
	for _, path := range files {
		rel, _ := filepath.Rel(src, path)
		switch name := strings.ToLower(rel); {
		case strings.HasPrefix(name, "edge"):
			edges = append(edges, path)
		case strings.HasPrefix(name, "node"), strings.HasPrefix(name, "vert"):
			vertices = append(vertices, path)
		default:
			other = append(other, path)
		}
	}
	if len(edges) == 0 && len(vertices) == 0 {
		return other, nil, nil
	}
	if len(other) > 0 || len(edges) == 0 {
		found := "no file that begins with edges"
		if len(other) > 0 {
			found = filepath.Base(other[0]) + " beside files called edges or nodes"
		}
		return nil, nil, badFile(src, "", found, "shards called edges… and nodes…, or none so called",
			"rename the files, or move them elsewhere")
	}
	return edges, vertices, nil
}

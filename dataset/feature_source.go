package dataset

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"

	"starling/dataset/table"
	"starling/event"
	"starling/graph"
	"starling/rng"
)

// Features for graphs that have none, made from the structure (--features-from):
//
//	degree          log(1+d), and a one in the column of ⌊log2(1+d)⌋; of a graph that is not
//	                symmetric of in- and out-degree, one after the other
//	one-hot         a column per vertex, sparse: every vertex learns weights of its own
//	random[:W]      W independent normal numbers (64)
//	position[:W]    W smooth functions over the graph (32), near the leading eigenvectors of
//	                its random walk (Dwivedi et al., Benchmarking Graph Neural Networks, section 4)
//
// Only degree means the same in another graph; the others know this one only.

// featureSources are the names, with the width when none is given.
var featureSources = map[string]int{"degree": 0, "one-hot": 0, "random": 64, "position": 32}

// FeatureSources lists the values of ImportOptions.FeaturesFrom.
func FeatureSources() []string { return []string{"degree", "one-hot", "random", "position"} }

// featureStream keys the draws of features under a seed.
const featureStream = 9

// featureSource reads NAME or NAME:WIDTH.
func featureSource(text string) (name string, width int, err error) {
	name, given, has := strings.Cut(text, ":")
	width, ok := featureSources[name]
	want := "degree, one-hot, random, random:WIDTH, position or position:WIDTH"
	if !ok || has && width == 0 {
		return "", 0, badParam("features-from", fmt.Sprintf("%q", text), want)
	}
	if has {
		if width, err = strconv.Atoi(given); err != nil || width < 1 || width > 1<<16 {
			return "", 0, badParam("features-from", fmt.Sprintf("%q", text), want+", of 1 to 65536")
		}
	}
	return name, width, nil
}

// MakeFeatures writes features that come from the written edges, by one of FeatureSources, and says which.
func MakeFeatures(w *graph.Writer, from string, seed uint64) (note string, err error) {
	name, width, err := featureSource(from)
	if err != nil {
		return "", err
	}
	g, unmap, err := w.Written()
	if err != nil {
		return "", err
	}
	defer unmap()
	key := rng.New(seed).Fold(featureStream)
	switch name {
	case "one-hot":
		err = w.Features(oneHotFeatures(g.Nodes()))
	case "position":
		err = w.Features(positions(g, min(width, max(g.Nodes()-1, 1)), key))
	case "random":
		err = randomRows(g.Nodes(), width, key).write(w)
	default:
		err = degreeRows(g, w.Meta.Symmetric).write(w)
	}
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("features made from the structure: %s, %s", name, event.Counted(w.Meta.Features.Dim, "column")), nil
}

func oneHotFeatures(n int) *graph.Features {
	f := &graph.Features{Rows: n, Cols: n, Indptr: make([]int64, n+1), Indices: make([]uint32, n),
		Values: slices.Repeat([]float32{1}, n)}
	for v := range n {
		f.Indptr[v+1], f.Indices[v] = int64(v+1), uint32(v)
	}
	return f
}

// eachRow is a source of rows that are computed.
func eachRow(n, cols int, fill func(v int, row []float32)) *rowFeed {
	return &rowFeed{rows: n, cols: cols, each: func(put func(x []float32) error) error {
		step := max(1, table.PieceNumbers/cols)
		buf := make([]float32, step*cols)
		for lo := 0; lo < n; lo += step {
			hi := min(lo+step, n)
			graph.Parallel(int64(hi-lo), 256, func(a, b int64) {
				for i := a; i < b; i++ {
					row := buf[int(i)*cols : (int(i)+1)*cols]
					clear(row)
					fill(lo+int(i), row)
				}
			})
			if err := put(buf[:(hi-lo)*cols]); err != nil {
				return err
			}
		}
		return nil
	}}
}

func randomRows(n, width int, key rng.Key) *rowFeed {
	return eachRow(n, width, func(v int, row []float32) { normals(row, key.Fold(uint64(v))) })
}

func normals(row []float32, key rng.Key) {
	for c := range row {
		row[c] = float32(key.Normal(uint64(c)))
	}
}

// degreeRows has one block of columns per kind of degree.
func degreeRows(g *graph.CSR, symmetric bool) *rowFeed {
	n := g.Nodes()
	in := make([]uint32, n)
	for v := range n {
		in[v] = uint32(g.Degree(uint32(v)))
	}
	kinds := [][]uint32{in}
	if !symmetric {
		out := make([]uint32, n)
		for _, u := range g.Indices {
			out[u]++
		}
		kinds = append(kinds, out)
	}
	bucket := func(d uint32) int { return bits.Len64(uint64(d)+1) - 1 }
	width, starts := 0, []int{}
	for _, d := range kinds {
		starts = append(starts, width)
		width += 2 + bucket(slices.Max(d))
	}
	return eachRow(n, width, func(v int, row []float32) {
		for k, d := range kinds {
			row[starts[k]] = float32(math.Log1p(float64(d[v])))
			row[starts[k]+1+bucket(d[v])] = 1
		}
	})
}

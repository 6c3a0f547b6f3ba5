package partition

import (
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"starling/graph"
)

// Whatever the JSON says, opening is an error or a book whose numbers can be used.
func FuzzBook(f *testing.F) {
	f.Add([]byte(`{"format":"starling-partition","version":1,"id":"a","nodes":5,"edges":3,"parts":2,"servers":1,"offsets":[0,2,5]}`))
	f.Add([]byte(`{"format":"starling-partition","version":1,"nodes":5,"parts":2,"servers":2,"offsets":[0,7,5]}`))
	f.Add([]byte(`{}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(filepath.Join(dir, bookFile), text, 0o644); err != nil {
			t.Fatal(err)
		}
		b, err := OpenBook(dir)
		if err != nil {
			if !errors.Is(err, graph.ErrInput) {
				t.Fatal(err)
			}
			return
		}
		for _, v := range []uint32{0, uint32(b.Nodes / 2), uint32(b.Nodes - 1)} {
			k := b.Owner(v)
			if int64(v) < b.Offsets[k] || int64(v) >= b.Offsets[k+1] || b.Server(k) >= b.Servers {
				t.Fatalf("%d is in part %d of %v", v, k, b.Offsets)
			}
		}
	})
}

// A part's meta.json may say anything; opening must not crash.
func FuzzPart(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	g := randomGraph(f, r, 20)
	parts := make([]uint32, 20)
	for v := range parts {
		parts[v] = uint32(v % 2)
	}
	src := filepath.Join(f.TempDir(), "d")
	if err := graph.Save(src, &graph.Dataset{Graph: g}, graph.WriterOptions{}); err != nil {
		f.Fatal(err)
	}
	d := open(f, src)
	dir := filepath.Join(f.TempDir(), "p")
	if err := Write(context.Background(), d, parts, 2, Measure(g, parts, 2, nil, false, 1), WriteOptions{Dir: dir}); err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(dir, "part0", partFile)
	text, _ := os.ReadFile(path)
	f.Add(text)
	f.Fuzz(func(t *testing.T, text []byte) {
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
		p, err := OpenPart(dir, 0)
		if err != nil {
			if !errors.Is(err, graph.ErrInput) {
				t.Fatal(err)
			}
			return
		}
		p.Close()
	})
}

// FuzzBalance reads lists of constraints.
func FuzzBalance(f *testing.F) {
	g, _ := graph.FromEdges(3, []uint32{0, 1}, []uint32{1, 2}, nil, graph.BuildOptions{})
	d := &graph.Dataset{Graph: g, Splits: graph.Splits{Train: []uint32{1}}}
	f.Add("vertices:0.05,edges:0.1,train")
	f.Add("val:,")
	f.Fuzz(func(t *testing.T, text string) {
		cons, err := ParseConstraints(text, d)
		if err != nil && !errors.Is(err, graph.ErrInput) {
			t.Fatal(err)
		}
		for i := range cons {
			if limit := cons[i].Limit(cons[i].Total(3), 2); limit < 0 || cons[i].Tolerance < 0 {
				t.Fatalf("%+v", cons[i])
			}
		}
	})
}

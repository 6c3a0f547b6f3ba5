package partition

import (
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
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

// FuzzPart reads the meta.json of a part: what passes has sizes that fit the book.
func FuzzPart(f *testing.F) {
	f.Add([]byte(`{"format":"starling-part","part":1,"core":3,"halo":2,"edges":3,"book":{"version":1,"nodes":5,"edges":3,"parts":2,"servers":1,"offsets":[0,2,5]}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		m := &PartMeta{}
		if graph.UnsealJSON(text, m, &m.CRC32C) != nil || m.validate() != nil {
			return
		}
		if m.Core+m.Halo > m.Book.Nodes || m.Edges > graph.MaxEdges || m.Core < 0 || m.Halo < 0 {
			t.Fatalf("%+v", m)
		}
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

// TestPartsAgreeWithTheBook: what one part says of all of them is what the others find.
func TestPartsAgreeWithTheBook(t *testing.T) {
	dir, _, _, _ := written(t, rand.New(rand.NewPCG(3, 3)), 50)
	path := filepath.Join(dir, "part0", partFile)
	for field, change := range map[string]func(*Book){
		"":               func(b *Book) { b.Dirs = []string{"elsewhere"} },
		"book.symmetric": func(b *Book) { b.Symmetric = !b.Symmetric },
		"book.edge_cut":  func(b *Book) { b.EdgeCut++ },
		"book.dataset":   func(b *Book) { b.Dataset += "?" },
	} {
		m := &PartMeta{}
		if err := readSealed(path, m, &m.CRC32C); err != nil {
			t.Fatal(err)
		}
		was := *m
		change(&m.Book)
		if err := writeSealed(path, m, &m.CRC32C); err != nil {
			t.Fatal(err)
		}
		p, err := OpenPart(dir, 0)
		if field == "" && err == nil {
			p.Close()
		} else if !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), field) {
			t.Errorf("%q: %v", field, err)
		}
		if err := writeSealed(path, &was, &was.CRC32C); err != nil {
			t.Fatal(err)
		}
	}
}

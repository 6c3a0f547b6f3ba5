package graph

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
)

// sortedBy builds a dataset with a Sorter, chunks added by several goroutines.
func sortedBy(t *testing.T, n int, src, dst []uint32, w []float32, opt BuildOptions, expected int64) (*Dataset, error) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "d")
	out, err := Create(dir, WriterOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer out.Abort()
	s := out.Sorter(n, expected, w != nil, opt)
	defer s.Close()
	const chunk = 777
	chunks := (len(src) + chunk - 1) / chunk
	var wg sync.WaitGroup
	for k := range 3 {
		wg.Go(func() {
			for c := k; c < chunks; c += 3 {
				lo, hi := c*chunk, min((c+1)*chunk, len(src))
				var part []float32
				if w != nil {
					part = w[lo:hi]
				}
				s.Add(int64(c), src[lo:hi], dst[lo:hi], part)
			}
		})
	}
	wg.Wait()
	if err := s.Finish(); err != nil {
		return nil, err
	}
	if err := out.Commit(); err != nil {
		t.Fatal(err)
	}
	d, err := OpenWith(dir, OpenOptions{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d, nil
}

// The twin is FromEdges, which holds everything.
func TestSorterEqualsFromEdges(t *testing.T) {
	r := rand.New(rand.NewPCG(4, 4))
	for trial := range 60 {
		n := []int{1, 2, 5, 300, 70_000}[trial%5]
		m := []int{0, 1, 100, 20_000}[r.IntN(4)]
		src, dst := make([]uint32, m), make([]uint32, m)
		var w []float32
		for i := range src {
			src[i], dst[i] = uint32(r.IntN(n)), uint32(r.IntN(1+r.IntN(n))) // low targets are hubs
		}
		if r.IntN(2) == 0 {
			w = make([]float32, m)
			for i := range w {
				w[i] = r.Float32()
			}
		}
		opt := BuildOptions{Symmetrize: r.IntN(2) == 0, DropDuplicates: r.IntN(2) == 0, DropSelfLoops: r.IntN(2) == 0}
		// A large expectation makes many buckets, and with them spills.
		expected := []int64{0, int64(m), 3_000_000_000}[r.IntN(3)]
		t.Run(fmt.Sprintf("n=%d/m=%d/%+v", n, m, opt), func(t *testing.T) {
			d, err := sortedBy(t, n, src, dst, w, opt, expected)
			if err != nil {
				t.Fatal(err)
			}
			g, err := FromEdges(n, src, dst, w, opt)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(d.Graph.Indptr, g.Indptr) || !slices.Equal(d.Graph.Indices, g.Indices) ||
				!slices.Equal(d.Graph.Weights, g.Weights) {
				t.Error("another graph than FromEdges builds")
			}
			if d.Meta.Symmetric != g.Symmetric() {
				t.Errorf("symmetric %v", d.Meta.Symmetric)
			}
		})
	}
}

func TestSorterSpills(t *testing.T) {
	const n, m = 50_000, 400_000
	r := rand.New(rand.NewPCG(5, 5))
	src, dst, w := make([]uint32, m), make([]uint32, m), make([]float32, m)
	for i := range src {
		src[i], dst[i], w[i] = uint32(r.IntN(n)), uint32(r.IntN(n)), r.Float32()
	}
	dir := filepath.Join(t.TempDir(), "d")
	out, _ := Create(dir, WriterOptions{})
	defer out.Abort()
	s := out.Sorter(n, 1<<30, true, BuildOptions{})
	s.full = 10
	if err := s.Add(0, src, dst, w); err != nil {
		t.Fatal(err)
	}
	if s.file == nil || s.end.Load() < m*11 {
		t.Fatalf("nothing spilled: %d bytes", s.end.Load())
	}
	if err := s.Finish(); err != nil {
		t.Fatal(err)
	}
	if err := out.Commit(); err != nil {
		t.Fatal(err)
	}
	d, err := OpenWith(dir, OpenOptions{Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	g, _ := FromEdges(n, src, dst, w, BuildOptions{})
	if !slices.Equal(d.Graph.Indices, g.Indices) || !slices.Equal(d.Graph.Weights, g.Weights) {
		t.Error("another graph than FromEdges builds")
	}
	if left, _ := os.ReadDir(filepath.Dir(dir)); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
}

func TestSorterRefuses(t *testing.T) {
	_, err := sortedBy(t, 3, []uint32{0, 1, 2}, []uint32{1, 7, 0}, nil, BuildOptions{}, 3)
	if !errors.Is(err, ErrInput) || !bytes.Contains([]byte(err.Error()), []byte("edge 1")) {
		t.Error(err)
	}
}

func TestJoinCRC(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	for i := range 100 {
		poly := []uint32{crc32.IEEE, crc32.Castagnoli}[i%2]
		table := crc32.MakeTable(poly)
		b := make([]byte, r.IntN(5000))
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		cut := r.IntN(len(b) + 1)
		got := JoinCRC(poly, crc32.Checksum(b[:cut], table), crc32.Checksum(b[cut:], table), int64(len(b)-cut))
		if want := crc32.Checksum(b, table); got != want {
			t.Fatalf("%d at %d: %08x, want %08x", len(b), cut, got, want)
		}
	}
}

func TestMultiLabel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	g, _ := FromEdges(3, []uint32{0, 1}, []uint32{1, 2}, nil, BuildOptions{})
	l := &Labels{Classes: 2, Multi: []uint8{1, 0, 1, 1, NoLabel, NoLabel}}
	if err := Save(dir, &Dataset{Graph: g, Labels: l, Splits: Splits{Train: []uint32{0, 1}}},
		WriterOptions{}); err != nil {
		t.Fatal(err)
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.Meta.Task != MultiLabel || !slices.Equal(d.Labels.Multi, l.Multi) || !d.Labels.Has(1) || d.Labels.Has(2) ||
		d.Labels.Len() != 3 {
		t.Errorf("%+v", d.Labels)
	}
	for _, bad := range [][]uint8{{1, 2, 0, 0, 0, 0}, {NoLabel, 0, 0, 0, 0, 0}, {0, NoLabel, 0, 0, 0, 0}, {0, 0}} {
		if err := (&Labels{Classes: 2, Multi: bad}).Validate(3); !errors.Is(err, ErrInput) {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if err := (&Splits{Train: []uint32{2}}).Validate(3, l); !errors.Is(err, ErrInput) {
		t.Errorf("an unlabelled vertex trains: %v", err)
	}
}

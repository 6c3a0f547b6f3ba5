package store_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sync"
	"testing"

	"starling/coflow"
	"starling/graph"
	"starling/rng"
	"starling/store"
	"starling/train/traintest"
	"starling/wire"
)

// TestRowsHaveAPlacement: rows of edges, which are placed otherwise than vertices, are pulled from
// wherever they are and pushed to there.
func TestRowsHaveAPlacement(t *testing.T) {
	for _, workers := range []int{1, 2, 4} {
		d := traintest.Communities(t, 60, false)
		parts := traintest.Cut(t, d, "random", workers)
		offsets := []int64{0}
		for k := range workers {
			offsets = append(offsets, offsets[k]+int64(3*k+5))
		}
		all := int(offsets[workers])
		var added sync.WaitGroup
		added.Add(workers)
		onStores(t, parts, true, store.Options{}, func(s *store.Store, rank int) error {
			r := &store.Rows{Name: "edges", Width: 4, PushWidth: 4, Offsets: offsets, Kind: wire.Topology}
			for n := offsets[rank]; n < offsets[rank+1]; n++ {
				r.Data = binary.LittleEndian.AppendUint32(r.Data, uint32(100+n))
			}
			r.Apply = func(rows []uint32, values []byte) error {
				for i, v := range rows {
					old := binary.LittleEndian.Uint32(r.Data[4*v:])
					binary.LittleEndian.PutUint32(r.Data[4*v:], old+binary.LittleEndian.Uint32(values[4*i:]))
				}
				return nil
			}
			table := s.AddRows(r)
			added.Done()
			added.Wait()
			var numbers []uint32
			for i := range 3 * all {
				numbers = append(numbers, uint32(rng.New(5).IntN(uint64(i), all)))
			}
			got := make([]byte, 4*len(numbers))
			if err := s.Puller().Rows(context.Background(), coflow.ID{}, table, got, numbers); err != nil {
				return err
			}
			for i, n := range numbers {
				if x := binary.LittleEndian.Uint32(got[4*i:]); x != 100+n {
					return fmt.Errorf("row %d is %d", n, x)
				}
			}
			if workers > 1 {
				return nil
			}
			if err := s.Push(context.Background(), coflow.ID{}, table, []uint32{2}, []byte{7, 0, 0, 0}); err != nil {
				return err
			}
			if x := binary.LittleEndian.Uint32(r.Data[8:]); x != 109 {
				return fmt.Errorf("row 2 is %d after a push", x)
			}
			return nil
		})
	}
}

// TestColumnsAreChosenByTheOwner: a range of columns is what the dataset has there, in fewer bytes.
func TestColumnsAreChosenByTheOwner(t *testing.T) {
	for _, kind := range []graph.FeatureKind{graph.Dense, graph.BFloat16} {
		d := traintest.Communities(t, 60, false)
		if kind == graph.BFloat16 {
			d.Features = traintest.Rounded(d.Features)
			d.Meta.Features.Kind = kind
		}
		parts := traintest.Cut(t, d, "random", 3)
		ids, _ := numbering(parts)
		onStores(t, parts, true, store.Options{}, func(s *store.Store, rank int) error {
			p := s.Puller()
			if p.Columns(3, 99) == nil || p.Columns(2, 2) == nil {
				return fmt.Errorf("columns that there are not")
			}
			if err := p.Columns(2, 5); err != nil {
				return err
			}
			var numbers []uint32
			for n := range ids {
				numbers = append(numbers, uint32(n))
			}
			var f graph.Features
			if err := p.Features(context.Background(), coflow.ID{}, &f, numbers); err != nil {
				return err
			}
			got, want := make([]float32, 3), make([]float32, d.Features.Cols)
			for n, id := range ids {
				f.CopyRow(got, uint32(n))
				d.Features.CopyRow(want, id)
				if !slices.Equal(got, want[2:5]) {
					return fmt.Errorf("vertex %d: %v, want %v", id, got, want[2:5])
				}
			}
			return nil
		})
	}
}

// TestEmbeddingsAreUpdatedByOwners: rows after a few steps of all workers equal the rows of a dumb twin
// with the sums of their gradients.
func TestEmbeddingsAreUpdatedByOwners(t *testing.T) {
	const dim, steps = 3, 4
	d := traintest.Communities(t, 40, false)
	for _, adagrad := range []bool{false, true} {
		parts := traintest.Cut(t, d, "random", 3)
		gradient := func(rank, step int, v uint32, c int) float64 {
			return rng.New(9).Fold(uint64(rank)).Fold(uint64(step)).Normal(uint64(v)*dim + uint64(c))
		}
		onStores(t, parts, true, store.Options{}, func(s *store.Store, rank int) error {
			e, err := s.AddEmbeddings(dim, 8, adagrad, 1)
			if err != nil {
				return err
			}
			rows, _ := e.Own()
			x := e.Numbers(rows)
			for step := range steps {
				var numbers []uint32
				var gradients []float64
				for v := range uint32(40) {
					if (int(v)+rank+step)%3 == 0 {
						continue
					}
					numbers = append(numbers, v)
					for c := range dim {
						gradients = append(gradients, gradient(rank, step, v, c))
					}
				}
				if err := e.Step(context.Background(), coflow.ID{}, step, 0.1, numbers, e.Bytes(gradients)); err != nil {
					return err
				}
			}
			rows, _ = e.Own()
			first := uint32(s.Book.Offsets[rank])
			for i, got := range e.Numbers(rows) {
				m, q := 0.0, 0.0
				for step := range steps {
					v, c, g := first+uint32(i/dim), i%dim, 0.0
					for r := range parts {
						if (int(v)+r+step)%3 != 0 {
							g += gradient(r, step, v, c)
						}
					}
					if adagrad {
						q += g * g
						x[i] -= 0.1 * g / (math.Sqrt(q) + 1e-8)
						continue
					}
					m, q = 0.9*m+0.1*g, 0.999*q+0.001*g*g
					at := float64(step + 1)
					x[i] -= 0.1 * m / (1 - math.Pow(0.9, at)) / (math.Sqrt(q/(1-math.Pow(0.999, at))) + 1e-8)
				}
				if math.Abs(got-x[i]) > 1e-12 {
					return fmt.Errorf("number %d is %g, want %g", i, got, x[i])
				}
			}
			return nil
		})
	}
}

// TestStepEndsWithTheEndpoint: a worker that waits for the gradients of others stops when its endpoint ends, though its
// context does not.
func TestStepEndsWithTheEndpoint(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 30, false), "chunk", 2)
	ends := wire.NewGroup(2, wire.DefaultOptions())
	defer traintest.Close(ends)
	s, err := store.Open(context.Background(), parts[0], ends[0], store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e, err := s.AddEmbeddings(2, 4, false, 1)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- e.Step(context.Background(), coflow.ID{}, 0, 0.1, []uint32{1}, make([]byte, 8)) }()
	ends[0].Close()
	if err := <-ended; err == nil {
		t.Error("a step without the gradients of worker 1 succeeds")
	}
}

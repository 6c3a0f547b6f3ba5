package store_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"starling/coflow"
	"starling/graph"
	"starling/internal/testseed"
	"starling/partition"
	"starling/rng"
	"starling/sample"
	"starling/store"
	"starling/train/traintest"
	"starling/wire"
)

// TestGuidedBlocksAreThoseOfOneMachine: wherever the owners are, batches are drawn by the masks of
// the worker that asks, as a sampler with the whole graph draws them.
func TestGuidedBlocksAreThoseOfOneMachine(t *testing.T) {
	seed := testseed.New(t)
	for _, remote := range []bool{true, false} {
		d := traintest.Communities(t, 120, false)
		parts := traintest.Cut(t, d, "random", 3)
		ids, number := numbering(parts)
		fanouts := []int{3, 2, sample.All}
		method, err := (&sample.Neighbour{Graph: d.Graph, SeedVertices: d.Splits.Train, Size: 40, Fanouts: fanouts,
			Seed: seed}).Prepare()
		if err != nil {
			t.Fatal(err)
		}
		var opened, done sync.WaitGroup // all serve; none asks any more
		opened.Add(len(parts))
		done.Add(len(parts))
		onStores(t, parts, remote, store.Options{}, func(s *store.Store, rank int) error {
			defer done.Wait()
			defer done.Done()
			if err := s.ServeGuides(); err != nil {
				return err
			}
			opened.Done()
			opened.Wait()
			list := masked(parts[rank])
			if err := s.GuideBy(context.Background(), list, 0.1); err != nil {
				return err
			}
			sampler, local := s.Sampler(fanouts, seed, store.Options{}), method.Sampler().(sample.SeedSampler)
			for version := range uint32(4) {
				masks := make([]byte, len(list))
				for i := range masks {
					masks[i] = byte(1 + rng.New(seed).Fold(uint64(version)).IntN(uint64(i+1000*rank), 255))
				}
				if err := s.TellMasks(context.Background(), version+1, masks, 77); err != nil {
					return err
				}
				sampler.Guide(version + 1)
				local.Guide(guideOf(s, list, masks, number))
				if err := sameGuided(s, sampler, local, number, rank, version); err != nil {
					return fmt.Errorf("version %d: %w", version, err)
				}
				if version == 2 { // the one before is still there, the one before that is not
					var b sample.Batch
					var known store.Known
					seeds := count(len(ids))
					sampler.Guide(version)
					if err := sampler.Sample(context.Background(), &b, &known, seeds, 0, 0); err != nil {
						return err
					}
					sampler.Guide(version - 1)
					if err := sampler.Sample(context.Background(), &b, &known, seeds, 0, 0); err == nil ||
						!strings.Contains(err.Error(), "version 1") {
						return fmt.Errorf("draws by masks of long ago: %v", err)
					}
				}
			}
			return nil
		})
	}
}

// masked are some of a part's remote vertices.
func masked(p *partition.Part) (list []uint32) {
	for i, v := range p.Halo {
		if i%3 > 0 {
			list = append(list, v)
		}
	}
	return list
}

// guideOf is the guide of a sampler with the whole graph.
func guideOf(s *store.Store, list []uint32, masks []byte, number []uint32) *sample.Guide {
	return &sample.Guide{Deviation: 0.1, Mask: func(source uint32) (float64, bool) {
		n := number[source]
		if s.Book.Owner(n) == s.Part.Meta.Part {
			return 1, false
		}
		if at, ok := slices.BinarySearch(list, n); ok {
			return float64(masks[at]) / 255, true
		}
		return 77.0 / 255, true
	}}
}

func sameGuided(s *store.Store, sampler *store.Sampler, local sample.SeedSampler, number []uint32, rank int,
	version uint32) error {
	var want, got sample.Batch
	var known store.Known
	var seeds, numbers []uint32
	for _, id := range rng.New(uint64(rank)).Fold(uint64(version)).Perm(len(number))[:30] {
		seeds, numbers = append(seeds, id), append(numbers, number[id])
	}
	local.SampleSeeds(&want, seeds, 2, int(version))
	if err := sampler.Sample(context.Background(), &got, &known, numbers, 2, int(version)); err != nil {
		return err
	}
	if !slices.Equal(known.IDs[:len(want.Vertices)], want.Vertices) {
		return fmt.Errorf("vertices %v, want %v", known.IDs, want.Vertices)
	}
	for l := range want.Blocks {
		w, g := &want.Blocks[l], &got.Blocks[l]
		if !slices.Equal(w.Indptr, g.Indptr) || !slices.Equal(w.Indices, g.Indices) ||
			!slices.Equal(w.RowWeights, g.RowWeights) {
			return fmt.Errorf("layer %d:\n%+v, want\n%+v", l, g, w)
		}
	}
	return nil
}

func count(n int) (list []uint32) {
	for i := range uint32(n) {
		list = append(list, i)
	}
	return list
}

// TestKeptColumns: rows of other workers have the columns that were asked for and zeros, own rows are
// whole, whatever the form of rows and the cache; and fewer bytes travel.
func TestKeptColumns(t *testing.T) {
	for _, kind := range []graph.FeatureKind{graph.Dense, graph.BFloat16, graph.Sparse} {
		for _, packed := range []store.Packed{store.Unpacked, store.BF16, store.Int8} {
			if packed != store.Unpacked && kind != graph.Dense {
				continue
			}
			d := traintest.Communities(t, 90, kind == graph.Sparse)
			if kind == graph.BFloat16 {
				d.Features = traintest.Rounded(d.Features)
				d.Meta.Features.Kind = kind
			}
			parts := traintest.Cut(t, d, "random", 3)
			ids, _ := numbering(parts)
			var before int64
			for _, n := range []int{12, 5, 1} {
				sent := sentByStores(t, parts, true, store.Options{Rows: packed}, func(s *store.Store, rank int) error {
					return pullsKept(s, d, ids, n, packed, false)
				})
				if before > 0 && sent[0] >= before {
					t.Errorf("%v %v: %d bytes of %d columns, more had %d", kind, packed, sent[0], n, before)
				}
				before = sent[0]
			}
			sentByStores(t, parts, false, store.Options{Rows: packed}, func(s *store.Store, rank int) error {
				return pullsKept(s, d, ids, 5, store.Unpacked, false)
			})
			if kind != graph.Sparse {
				sentByStores(t, parts, true, store.Options{Rows: packed}, func(s *store.Store, rank int) error {
					if err := s.UseStatic(context.Background(), 20, s.HaloDegrees()); err != nil {
						return err
					}
					return pullsKept(s, d, ids, 5, packed, true)
				})
			}
		}
	}
}

// pullsKept pulls the first columns of all vertices, twice, and checks them.
func pullsKept(s *store.Store, d *graph.Dataset, ids []uint32, n int, packed store.Packed, everywhere bool) error {
	p := s.Puller()
	keep := store.NewColumns(count(n), d.Features.Cols)
	keep.Everywhere = everywhere
	if err := p.Keep(keep); err != nil {
		return err
	}
	var f graph.Features
	for range 2 {
		if err := p.Features(context.Background(), coflow.ID{}, &f, count(len(ids))); err != nil {
			return err
		}
		got, want := make([]float32, f.Cols), make([]float32, f.Cols)
		for v, id := range ids {
			f.CopyRow(got, uint32(v))
			d.Features.CopyRow(want, id)
			own := s.Book.Owner(uint32(v)) == s.Part.Meta.Part
			if !own || everywhere {
				clear(want[n:])
			}
			for c := range want {
				if off := got[c] - want[c]; off != 0 && (own || packed == store.Unpacked || want[c] == 0 ||
					max(off, -off) > 0.05) {
					return fmt.Errorf("vertex %d: %v, want %v", v, got, want)
				}
			}
		}
	}
	return nil
}

// TestGuidesRefused: what no worker of the same build asks.
func TestGuidesRefused(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 30, false), "chunk", 2)
	ends := wire.NewGroup(2, wire.DefaultOptions())
	defer traintest.Close(ends)
	s, err := store.Open(context.Background(), parts[0], ends[0], store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.ServeGuides(); err != nil {
		t.Fatal(err)
	}
	zeros := strings.Repeat("\x00", 16)
	for _, c := range []struct{ service, request, want string }{
		{"guide", "short", "5 bytes"},
		{"guide", "\x01" + zeros[:7], "has not sent"},
		{"guide", zeros[:10], "10 bytes"},
		{"guide", zeros[:14] + "\xf0\x7f", "a deviation of"},
		{"draw edges", zeros[:8] + "\x01\x00\x00\x00\x10\x00\x00\x00", "without the version"},
		{"draw edges", zeros[:8] + "\x01\x00\x00\x00\x10\x00\x00\x00\x05\x00\x00\x00", "has not sent"},
		{"pull rows", "\x40", "0 numbers for the bits"},
		{"pull rows", "\x40\xff\xff\x00\x00", "column 12 of 12"},
		{"pull rows", "\x41\x00\x00\x00\x00", "some columns of table 1"},
	} {
		_, err := ends[1].Call(0, wire.Call{Service: c.service, Request: []byte(c.request)}).Wait(context.Background())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %q: %v, want %q", c.service, c.request, err, c.want)
		}
	}
	p := s.Puller()
	if err := p.Keep(store.NewColumns(count(3), 7)); err == nil {
		t.Error("columns of other rows were taken")
	}
	s.UseS3FIFO(10)
	if err := p.Keep(store.NewColumns(count(3), 12)); err == nil {
		t.Error("columns beside a cache that learns")
	}
}

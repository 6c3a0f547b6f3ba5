package store_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"testing"

	"starling/coflow"
	"starling/graph"
	"starling/partition"
	"starling/sample"
	"starling/store"
	"starling/train/traintest"
)

// idsOf are the dataset's ids of all numbers of a partition.
func idsOf(parts []*partition.Part) (ids []uint32) {
	for _, p := range parts {
		ids = append(ids, p.IDs[:p.Core()]...)
	}
	return ids
}

// TestTypedPlannedIsCounted: batches of a typed graph are one worker's, rows of every type are the dataset's, and both
// take what was planned, whatever the cache.
func TestTypedPlannedIsCounted(t *testing.T) {
	d := traintest.Typed(t, 60)
	parts := traintest.Cut(t, d, "random", 3)
	for name, use := range map[string]func(s *store.Store) error{
		"no cache": func(s *store.Store) error { return nil },
		"degree": func(s *store.Store) error {
			return s.UseStaticWithin(context.Background(), 400, s.HaloDegrees())
		},
		"s3fifo": func(s *store.Store) error { s.UseS3FIFOWithin(400); return nil },
	} {
		for _, packed := range []store.Packed{store.Unpacked, store.BF16} {
			t.Run(fmt.Sprint(name, " ", packed), func(t *testing.T) {
				opt := store.Options{Rows: packed, RelationFanouts: [][]int{{1, 0, sample.All}}}
				onStores(t, parts, true, opt, func(s *store.Store, rank int) error {
					if err := use(s); err != nil {
						return err
					}
					return checkTyped(d, parts, s, opt, rank)
				})
			})
		}
	}
}

// TestCacheHasNoMoreRowsThanVertices: a budget far above a graph's rows takes their memory, not its own.
func TestCacheHasNoMoreRowsThanVertices(t *testing.T) {
	for _, d := range []*graph.Dataset{traintest.Typed(t, 60), traintest.Communities(t, 60, false)} {
		onStores(t, traintest.Cut(t, d, "random", 2), false, store.Options{}, func(s *store.Store, _ int) error {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			s.UseS3FIFOWithin(1 << 32)
			runtime.ReadMemStats(&after)
			if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
				return fmt.Errorf("it takes %d MiB", took>>20)
			}
			return nil
		})
	}
}

// checkTyped draws batches and pulls their rows.
func checkTyped(d *graph.Dataset, parts []*partition.Part, s *store.Store, opt store.Options, rank int) error {
	m, p, ids := s.Sampler([]int{2, 3}, 5, opt), s.Puller(), idsOf(parts)
	whole := &sample.Neighbour{Graph: d.Graph, Fanouts: []int{2, 3}, Seed: 5,
		Types: &sample.Types{Schema: d.Meta.Schema, Fanouts: opt.RelationFanouts, TypeOf: d.Meta.Schema.TypeOf}}
	one, err := whole.Prepare()
	if err != nil {
		return err
	}
	sampler := one.Sampler().(sample.SeedSampler)
	for number := range 3 {
		var seeds, same []uint32
		for i := range uint32(9) {
			v := uint32(rank)*7 + i*5 + uint32(number)
			seeds, same = append(seeds, v), append(same, ids[v])
		}
		var b, want sample.Batch
		var known store.Known
		before := s.Traffic()
		if err := m.Sample(context.Background(), &b, &known, seeds, 1, number); err != nil {
			return err
		}
		plan := m.Traffic(&b)
		sampler.SampleSeeds(&want, same, 1, number)
		if err := sameBatch(&b, &want, known.IDs); err != nil {
			return err
		}
		rows := make([]graph.Features, len(d.TypeFeatures))
		if err := p.Types(context.Background(), coflow.ID{}, rows, b.Vertices); err != nil {
			return err
		}
		if err := sameTraffic(plan, before, s.Traffic()); err != nil && !s.Learns() {
			return err
		}
		if err := sameRows(d, rows, known.IDs, opt.Rows); err != nil {
			return err
		}
	}
	return nil
}

// sameBatch compares batches of a part and of the whole graph.
func sameBatch(got, want *sample.Batch, ids []uint32) error {
	if !slices.Equal(ids, want.Vertices) {
		return fmt.Errorf("vertices %v, of one worker %v", ids, want.Vertices)
	}
	for i := range want.Blocks {
		x, y := &got.Blocks[i], &want.Blocks[i]
		if !slices.Equal(x.Indptr, y.Indptr) || !slices.Equal(x.Indices, y.Indices) ||
			!slices.Equal(x.Relations, y.Relations) || len(x.RowWeights) > 0 {
			return fmt.Errorf("block %d: %+v, of one worker %+v", i, x, y)
		}
	}
	return nil
}

// sameRows compares rows by type with the dataset's.
func sameRows(d *graph.Dataset, rows []graph.Features, ids []uint32, packed store.Packed) error {
	next := make([]int, len(rows))
	for _, v := range ids {
		t := d.Meta.Schema.TypeOf(v)
		f := d.TypeFeatures[t]
		at := next[t]
		if next[t]++; f == nil {
			continue
		}
		got, want := make([]float32, f.Cols), make([]float32, f.Cols)
		rows[t].CopyRow(got, uint32(at))
		f.CopyRow(want, v-uint32(d.Meta.Schema.Types[t].First))
		for c := range want {
			if e := got[c] - want[c]; e != 0 && (packed == store.Unpacked || e > 0.05 || e < -0.05) {
				return fmt.Errorf("row of vertex %d, type %d: %v, want %v", v, t, got, want)
			}
		}
	}
	return nil
}

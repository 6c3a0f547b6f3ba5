package batch

import (
	"math"
	"testing"

	"starling/partition"
	"starling/sample"
	"starling/train"
	"starling/train/traintest"
)

// TestProbabilitiesAreThoseOfAccess: what workers compute together, each of its own part, is what one that has all
// parts does; and of each owner the most probable vertices come, as many as asked for.
func TestProbabilitiesAreThoseOfAccess(t *testing.T) {
	d := traintest.Communities(t, 200, false)
	for _, kind := range []string{"owner", "random", "local"} {
		for _, replace := range []bool{false, true} {
			parts := traintest.Cut(t, d, "fennel", 3)
			o := traintest.Options("sage")
			o.Strategy = traintest.Strategy(t, "distdgl")
			o.Batches = &train.BatchSettings{Sampler: "neighbour", Size: 20, Fanouts: []int{3, sample.All},
				Replace: replace, Threads: 1}
			all, some := includedIn(t, parts, o, kind, 1<<30), includedIn(t, parts, o, kind, 5)
			for rank, part := range parts {
				training, steps := trainingOf(parts), float32(0)
				seed := ExpectedSeeds(kind, part.Book, training, rank)
				sum := float32(0)
				for _, n := range seed {
					sum += n
				}
				if even := float32(len(training)) / 3; math.Abs(float64(sum-even)) > float64(even)/3 {
					t.Errorf("%s: worker %d expects %g seeds of %d", kind, rank, sum, len(training))
				}
				steps = float32(NewSeeds(kind, part.Book, rank, training, 20, o.Seed).Batches())
				for v := range seed {
					seed[v] /= steps
				}
				want := sample.NewAccess(parts, seed, o.Batches.Fanouts, replace, 1).Batch
				others := 0
				for v, p := range want {
					if part.Book.Owner(uint32(v)) == rank || p == 0 {
						continue
					}
					others++
					if got := all[rank][uint32(v)]; math.Abs(got-float64(p)) > 1e-5 {
						t.Fatalf("%s: worker %d has %g of vertex %d, want %g", kind, rank, got, v, p)
					}
				}
				if others == 0 || others != len(all[rank]) || len(some[rank]) > 10 {
					t.Fatalf("%s: %d vertices of others, %d and %d told", kind, others, len(all[rank]), len(some[rank]))
				}
				for v, p := range some[rank] {
					better := 0
					for u, q := range all[rank] {
						if q > p && part.Book.Owner(u) == part.Book.Owner(v) {
							better++
						}
					}
					if better >= 5 {
						t.Fatalf("%s: %d vertices are more probable than %d", kind, better, v)
					}
				}
			}
		}
	}
}

// includedIn is what each worker learns of at most some vertices of each other.
func includedIn(t *testing.T, parts []*partition.Part, o train.Options, kind string, most int) []map[uint32]float64 {
	t.Helper()
	out, ends := make([]map[uint32]float64, len(parts)), traintest.BatchEnds(len(parts), true)
	defer traintest.Close(ends)
	traintest.Each(len(parts), func(k int) {
		p, err := Open(traintest.Site(parts[k], ends[k], o), Setting{Roots: kind})
		if err == nil {
			out[k], err = p.probabilities(p.Seeds.(expecting), most)
		}
		if err != nil {
			t.Error(err)
			ends[k].Fail(err)
		}
	})
	if t.Failed() {
		t.FailNow()
	}
	return out
}

func trainingOf(parts []*partition.Part) (list []uint32) {
	for q, p := range parts {
		for _, v := range p.Splits.Train {
			list = append(list, uint32(p.Book.Offsets[q])+v)
		}
	}
	return list
}

// TestCacheBudgets: an amount of memory, or a share of the features.
func TestCacheBudgets(t *testing.T) {
	for text, want := range map[string]int64{"4%": 40, "100%": 1000, "2KiB": 2048} {
		if got, err := CacheBytes(text, 1000); err != nil || got != want {
			t.Errorf("%s of 1000 bytes: %d, %v, want %d", text, got, err, want)
		}
	}
	for _, text := range []string{"0%", "101%", "%", "-1%", "NaN%"} {
		if got, err := CacheBytes(text, 1000); err == nil {
			t.Errorf("%s is %d bytes, want an error", text, got)
		}
	}
}

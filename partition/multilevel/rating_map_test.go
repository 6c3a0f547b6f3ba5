package multilevel

import (
	"math/rand/v2"
	"testing"
)

func TestRatingIsAMap(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 7))
	var table ratingMap
	for range 300 {
		n := r.IntN(200)
		keys, w := make([]uint32, n), make([]uint32, n)
		want := map[uint32]uint32{}
		for i := range n {
			keys[i], w[i] = r.Uint32N(60)*1000003, r.Uint32N(9)
			want[keys[i]] += w[i] + 1
		}
		table.reset(n)
		table.addWeighted(keys, w)
		table.addUnit(keys)
		for key, sum := range want {
			if table.get(key) != sum {
				t.Fatalf("key %d: %d, want %d", key, table.get(key), sum)
			}
		}
		if len(table.used) != len(want) || table.get(12345) != 0 {
			t.Fatal("keys that were never added")
		}
		table.clear()
	}
}

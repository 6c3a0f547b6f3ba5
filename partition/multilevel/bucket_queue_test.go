package multilevel

import (
	"math"
	"math/rand/v2"
	"testing"
)

// A queue against a map: no vertex is popped before one of a larger bucket, and within a
// bucket the last one inserted comes first.
func TestQueuePopsInOrder(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 8))
	for round := range 100 {
		var q bucketQueue
		q.reset(make([]queueNode, 40))
		type entry struct {
			key int32
			age int
		}
		want := map[uint32]entry{}
		for i := range 300 {
			v, key := r.Uint32N(40), int32(r.IntN(60)-30)
			if round%2 == 1 {
				key = int32(r.Uint32()) >> r.IntN(32)
			}
			if r.IntN(4) == 0 {
				q.remove(v)
				delete(want, v)
				continue
			}
			q.set(v, key)
			if old, ok := want[v]; !ok || bucketOf(old.key) != bucketOf(key) {
				want[v] = entry{key, i}
			}
		}
		for q.len() > 0 {
			v := q.pop()
			got, ok := want[v]
			if !ok {
				t.Fatalf("%d was not there", v)
			}
			for u, other := range want {
				if a, b := bucketOf(other.key), bucketOf(got.key); a > b || a == b && other.age > got.age {
					t.Fatalf("%d with %v came before %d with %v", v, got, u, other)
				}
			}
			delete(want, v)
		}
		if len(want) > 0 {
			t.Fatalf("lost %v", want)
		}
	}
}

// A larger gain is never in a lower bucket, and gains in a bucket differ by a sixteenth at most.
func TestBucketsFollowGains(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 9))
	for range 20000 {
		a, b := clampGain(int64(int32(r.Uint32())>>r.IntN(32))), clampGain(int64(int32(r.Uint32())>>r.IntN(32)))
		if a > b {
			a, b = b, a
		}
		switch la, lb := bucketOf(a), bucketOf(b); {
		case la > lb:
			t.Fatalf("gain %d is in list %d, gain %d in %d", a, la, b, lb)
		case la == lb && int64(b)-int64(a) > max(int64(a), -int64(a))/16:
			t.Fatalf("gains %d and %d share list %d", a, b, la)
		}
	}
	if last := int(bucketOf(math.MaxInt32)); last > 2*zeroBucket || bucketOf(-math.MaxInt32) > zeroBucket {
		t.Fatalf("the last list is %d of %d", last, 2*zeroBucket)
	}
}

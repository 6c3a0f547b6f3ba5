package partition

import (
	"math/bits"
	"runtime"
	"sync"
	"sync/atomic"

	"starling/graph"
)

// Quality is the quality of a partition. The package comment defines the terms.
type Quality struct {
	EdgeCut    int64
	CommVolume int64
	Core       []int64            // vertices of each part
	Edges      []int64            // in-edges of each part's core
	Remote     []int64            // halo vertices of each part
	Traffic    [][]int64          // Traffic[p][q]: rows that p needs from q
	Balance    map[string]float64 // heaviest part over the mean, per constraint
}

// Measure counts everything, reading each in-edge once. It needs one bit per vertex
// for each thread, beside a list of the vertices.
func Measure(g *graph.CSR, parts []uint32, k int, constraints []Constraint, symmetric bool, threads int) *Quality {
	q := &Quality{Core: make([]int64, k), Edges: make([]int64, k), Remote: make([]int64, k),
		Traffic: make([][]int64, k)}
	start, order := group(parts, k)
	cut := make([]int64, k)
	eachPart(k, threads, func() func(int) {
		seen := newBits(g.Nodes())
		return func(p int) {
			seen.clear()
			core := order[start[p]:start[p+1]]
			q.Core[p] = int64(len(core))
			row := make([]int64, k)
			for _, v := range core {
				q.Edges[p] += int64(g.Degree(v))
				for _, u := range g.Neighbors(v) {
					owner := parts[u]
					if int(owner) == p {
						continue
					}
					cut[p]++
					if seen.set(u) {
						row[owner]++
						q.Remote[p]++
					}
				}
			}
			q.Traffic[p] = row
		}
	})
	for p := range k {
		q.EdgeCut += cut[p]
		q.CommVolume += q.Remote[p]
	}
	if symmetric {
		q.EdgeCut /= 2
	}
	q.Balance = balances(parts, k, constraints)
	return q
}

// balances is the heaviest part over the mean, for each constraint.
func balances(parts []uint32, k int, constraints []Constraint) map[string]float64 {
	out := map[string]float64{}
	for i := range constraints {
		c := &constraints[i]
		load := make([]int64, k)
		var total, heaviest int64
		for v, p := range parts {
			load[p] += c.Of(v)
		}
		for _, w := range load {
			total += w
			heaviest = max(heaviest, w)
		}
		out[c.Name] = 1
		if total > 0 {
			out[c.Name] = float64(heaviest) * float64(k) / float64(total)
		}
	}
	return out
}

// RemoteMaxOverMin is the ratio that g3 lowers. A part without a halo counts
// as one vertex, so that the ratio is always finite.
func (q *Quality) RemoteMaxOverMin() float64 {
	most, least := spread(q.Remote)
	return float64(max(most, 1)) / float64(max(least, 1))
}

func spread(x []int64) (most, least int64) {
	most, least = x[0], x[0]
	for _, v := range x {
		most, least = max(most, v), min(least, v)
	}
	return most, least
}

// eachPart runs work on every part, on several threads; start makes the state that one
// thread keeps between its parts.
func eachPart(k, threads int, start func() func(part int)) {
	if threads <= 0 {
		threads = runtime.GOMAXPROCS(0)
	}
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(threads, k) {
		wg.Go(func() {
			work := start()
			for p := int(next.Add(1)) - 1; p < k; p = int(next.Add(1)) - 1 {
				work(p)
			}
		})
	}
	wg.Wait()
}

// bitset is a set of vertices.
type bitset []uint64

func newBits(n int) bitset { return make(bitset, (n+63)/64) }

func (b bitset) clear() { clear(b) }

// set adds v; it reports whether it is new.
func (b bitset) set(v uint32) bool {
	w, bit := v/64, uint64(1)<<(v%64)
	fresh := b[w]&bit == 0
	b[w] |= bit
	return fresh
}

func (b bitset) has(v uint32) bool { return b[v/64]>>(v%64)&1 == 1 }

func (b bitset) unset(v uint32) { b[v/64] &^= 1 << (v % 64) }

// list appends the members in ascending order.
func (b bitset) list(to []uint32) []uint32 {
	for i, w := range b {
		for ; w != 0; w &= w - 1 {
			to = append(to, uint32(i*64+bits.TrailingZeros64(w)))
		}
	}
	return to
}

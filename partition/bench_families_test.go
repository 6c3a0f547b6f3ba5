//go:build unix

package partition_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"starling/graph"
	"starling/partition"
)

// family is a kind of graph, drawn anew for every seed. Settings of multilevel are chosen by
// those of the tuning half; docs/partitioning.md says what was seen of the held-out half before.
type family struct {
	name    string
	heldOut bool
	draw    func(r *rand.Rand, scale int) *graph.CSR
}

// families are a dozen; scale 1 has 20 to 200 thousand edges, and edges grow with scale.
var families = []family{
	{"grid-2d", false, func(r *rand.Rand, s int) *graph.CSR {
		return lattice([]int{90 + r.IntN(90), 130 * s}, [][]int{{1, 0}, {0, 1}})
	}},
	{"geometric", false, func(r *rand.Rand, s int) *graph.CSR { return geometric(r, 20_000*s, 10) }},
	{"small-world", false, func(r *rand.Rand, s int) *graph.CSR { return smallWorld(r, 20_000*s, 10, 0.1) }},
	{"rmat", false, func(r *rand.Rand, s int) *graph.CSR { return recursiveMatrix(r, 14_000*s, 160_000*s) }},
	{"blocks-200", false, func(r *rand.Rand, s int) *graph.CSR { return equalBlocks(r, 20_000*s, 200, 14, 6) }},
	{"web-dense", false, func(r *rand.Rand, s int) *graph.CSR { return sharedLists(r, 5_201*s, 198_000*s, 0.007/float64(s)) }},

	{"grid-3d", true, func(r *rand.Rand, s int) *graph.CSR {
		return lattice([]int{20 + r.IntN(10), 25, 30 * s}, [][]int{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}})
	}},
	{"road", true, func(r *rand.Rand, s int) *graph.CSR { return roads(r, 100, 90*s, 0.3, 2) }},
	{"mesh-holes", true, func(r *rand.Rand, s int) *graph.CSR { return holedMesh(r, 140, 140*s, 12*s) }},
	{"preferential", true, func(r *rand.Rand, s int) *graph.CSR { return preferential(r, 20_000*s, 5) }},
	{"communities", true, func(r *rand.Rand, s int) *graph.CSR { return unevenBlocks(r, 20_000*s, 8, 0.3) }},
	{"web-copied", true, func(r *rand.Rand, s int) *graph.CSR { return copiedLinks(r, 5_000*s, 50) }},
}

// BenchmarkMultilevelFamilies compares with METIS's library, or with a preset of KaMinPar
// (STARLING_BENCH_AGAINST=kaminpar:strong), on families of graphs. A case is a graph and a number of
// parts: cut-ratio is the best cut of three seeds, ours over the other's, in the geometric mean over
// STARLING_BENCH_DRAWS (2) graphs; worst is the largest of them; time-ratio is the fastest of three
// calls over the other's fastest.
//
//	scripts/bench-partition --metis families
//	scripts/bench-partition --metis families --against kaminpar:strong
//
// STARLING_BENCH_SCALE (1) multiplies the sizes, STARLING_BENCH_FAMILIES chooses by name, STARLING_BENCH_TRIES (1) are of
// ours, for each seed.
func BenchmarkMultilevelFamilies(b *testing.B) {
	draws, _ := strconv.Atoi(benchEnv("STARLING_BENCH_DRAWS", "2"))
	scale, _ := strconv.Atoi(benchEnv("STARLING_BENCH_SCALE", "1"))
	only := benchEnv("STARLING_BENCH_FAMILIES", "")
	other, files := timedMetis, &kaminparFiles{dir: b.TempDir(), files: map[*graph.CSR]string{}}
	if preset, ok := strings.CutPrefix(benchEnv("STARLING_BENCH_AGAINST", "metis"), "kaminpar:"); ok {
		other = func(b *testing.B, p *partition.Problem) benchResult { return files.run(b, preset, p) }
	}
	for i, f := range families {
		if only != "" && !strings.Contains(","+only+",", ","+f.name+",") {
			continue
		}
		var graphs []*graph.CSR
		for d := range draws {
			graphs = append(graphs, f.draw(rand.New(rand.NewPCG(uint64(d), uint64(i))), scale))
		}
		half := "tuning"
		if f.heldOut {
			half = "held-out"
		}
		for _, k := range strings.Split(benchEnv("STARLING_BENCH_PARTS", "2,4,7,8,32,100"), ",") {
			b.Run(fmt.Sprintf("half=%s/family=%s/parts=%s", half, f.name, k), func(b *testing.B) {
				parts, _ := strconv.Atoi(k)
				for b.Loop() {
					compareFamily(b, graphs, parts, other)
				}
			})
		}
	}
}

func timedMetis(b *testing.B, p *partition.Problem) benchResult {
	return timedRun(b, partition.Metis, p)
}

func compareFamily(b *testing.B, graphs []*graph.CSR, k int, other func(*testing.B, *partition.Problem) benchResult) {
	var logs, worst, over float64
	var sum [2]benchResult
	for i, g := range graphs {
		var best [2]benchResult
		for seed := uint64(1); seed <= 3; seed++ {
			p := benchProblem(g, "one", k, 3*uint64(i)+seed)
			best[0].best(timedRun(b, partition.Multilevel, p))
			best[1].best(other(b, p))
		}
		ratio := float64(best[0].Cut) / float64(best[1].Cut)
		logs, worst, over = logs+math.Log(ratio), max(worst, ratio), max(over, best[1].Imbalance)
		for j := range sum {
			sum[j].Seconds += best[j].Seconds
			sum[j].CPU += best[j].CPU
		}
	}
	b.ReportMetric(math.Exp(logs/float64(len(graphs))), "cut-ratio")
	b.ReportMetric(worst, "worst")
	b.ReportMetric(sum[0].Seconds/sum[1].Seconds, "time-ratio")
	b.ReportMetric(sum[0].CPU/sum[1].CPU, "cpu-ratio") // where other work disturbs the former
	b.ReportMetric(sum[1].Seconds/float64(len(graphs)), "other-s")
	b.ReportMetric(over, "other-imbalance")
	b.ReportMetric(float64(graphs[0].Edges())/2, "edges")
	b.ReportMetric(0, "ns/op")
}

// edgeSet collects undirected edges, each once.
type edgeSet struct {
	lists [][]uint32
	seen  map[uint64]struct{}
}

func newEdgeSet(n int) *edgeSet {
	return &edgeSet{lists: make([][]uint32, n), seen: map[uint64]struct{}{}}
}

func (s *edgeSet) add(v, u int) bool {
	key := uint64(min(v, u))<<32 | uint64(max(v, u))
	if _, double := s.seen[key]; double || v == u {
		return false
	}
	s.seen[key] = struct{}{}
	join(s.lists, v, u)
	return true
}

func (s *edgeSet) graph() *graph.CSR { return fromLists(s.lists) }

// smallWorld is a ring where everyone knows the next few, some edges led elsewhere (Watts and
// Strogatz, 1998).
func smallWorld(r *rand.Rand, n, degree int, rewired float64) *graph.CSR {
	s := newEdgeSet(n)
	for v := range n {
		for step := 1; step <= degree/2; step++ {
			if u := (v + step) % n; r.Float64() >= rewired || !s.add(v, r.IntN(n)) {
				s.add(v, u)
			}
		}
	}
	return s.graph()
}

// preferential adds vertices that choose neighbours by degree (Barabási and Albert, 1999).
func preferential(r *rand.Rand, n, degree int) *graph.CSR {
	s := newEdgeSet(n)
	ends := []int{0}
	for v := 1; v < n; v++ {
		for range degree {
			if u := ends[r.IntN(len(ends))]; s.add(v, u) {
				ends = append(ends, v, u)
			}
		}
	}
	return s.graph()
}

// equalBlocks is a planted partition: inside and outside are the edges of a vertex in its block and to others.
func equalBlocks(r *rand.Rand, n, blocks int, inside, outside float64) *graph.CSR {
	s := newEdgeSet(n)
	place := r.Perm(n)
	size := n / blocks
	for range int(float64(n) * inside / 2) {
		v := r.IntN(n)
		s.add(place[v], place[min(v/size, blocks-1)*size+r.IntN(size)])
	}
	for range int(float64(n) * outside / 2) {
		s.add(r.IntN(n), r.IntN(n))
	}
	return s.graph()
}

// sharedLists are pages of which those on the same list link each other, as encyclopedias' pages do
// by boxes of links. Sizes of lists follow a power law; lists draw pages near each other, popular
// ones more often.
func sharedLists(r *rand.Rand, n, edges int, near float64) *graph.CSR {
	s := newEdgeSet(n)
	place := r.Perm(n)
	for done := 0; done < edges; {
		size := min(int(6*math.Pow(1-r.Float64(), -1/1.1)), 250)
		centre, dense := r.Float64(), 0.3+0.7*r.Float64()
		list := make([]int, size)
		for i := range list {
			at := centre + near*r.NormFloat64()
			if r.IntN(5) == 0 {
				at = math.Pow(r.Float64(), 4)
			}
			list[i] = place[int(float64(n)*(at-math.Floor(at)))%n]
		}
		for i, v := range list {
			for _, u := range list[:i] {
				if r.Float64() < dense && s.add(v, u) {
					done++
				}
			}
		}
	}
	return s.graph()
}

// roads are streets between crossings, some missing, each a path of a few vertices.
func roads(r *rand.Rand, width, height int, missing float64, bends int) *graph.CSR {
	type street struct{ a, b, via int }
	var streets []street
	n := width * height
	for v := range n {
		for _, u := range []int{v + 1, v + width} {
			if u >= n || u == v+1 && u%width == 0 || r.Float64() < missing {
				continue
			}
			via := r.IntN(bends + 1)
			streets = append(streets, street{v, u, via})
		}
	}
	total := n
	for _, s := range streets {
		total += s.via
	}
	s, next := newEdgeSet(total), n
	for _, t := range streets {
		at := t.a
		for range t.via {
			s.add(at, next)
			at = next
			next++
		}
		s.add(at, t.b)
	}
	return s.graph()
}

// holedMesh is a triangulation with round holes; which diagonal a square has is random.
func holedMesh(r *rand.Rand, width, height, holes int) *graph.CSR {
	number, n := make([]int, width*height), 0
	type hole struct{ x, y, radius float64 }
	var out []hole
	for range holes {
		out = append(out, hole{r.Float64() * float64(width), r.Float64() * float64(height), 3 + 12*r.Float64()})
	}
	for v := range number {
		number[v] = n
		for _, h := range out {
			if math.Hypot(float64(v%width)-h.x, float64(v/width)-h.y) < h.radius {
				number[v] = -1
			}
		}
		if number[v] == n {
			n++
		}
	}
	s := newEdgeSet(n)
	link := func(v, u int) {
		if number[v] >= 0 && number[u] >= 0 {
			s.add(number[v], number[u])
		}
	}
	for y := range height - 1 {
		for x := range width - 1 {
			v := y*width + x
			link(v, v+1)
			link(v, v+width)
			if r.IntN(2) == 0 {
				link(v, v+width+1)
			} else {
				link(v+1, v+width)
			}
		}
	}
	return s.graph()
}

// recursiveMatrix is R-MAT with the usual corners (Chakrabarti, Zhan and Faloutsos, 2004).
func recursiveMatrix(r *rand.Rand, n, edges int) *graph.CSR {
	s := newEdgeSet(n)
	place := r.Perm(n)
	for done := 0; done < edges; {
		v, u := 0, 0
		for bit := 1; bit < n; bit *= 2 {
			x := r.Float64()
			if x >= 0.57 && x < 0.76 || x >= 0.95 {
				u += bit
			}
			if x >= 0.76 {
				v += bit
			}
		}
		if v < n && u < n && s.add(place[v], place[u]) {
			done++
		}
	}
	return s.graph()
}

// unevenBlocks has degrees and sizes of communities by power laws, and a share of edges between
// communities (after Lancichinetti, Fortunato and Radicchi, 2008).
func unevenBlocks(r *rand.Rand, n, degree int, outside float64) *graph.CSR {
	s := newEdgeSet(n)
	place := r.Perm(n)
	power := func(least, most, exponent float64) float64 {
		return min(most, least*math.Pow(1-r.Float64(), -1/(exponent-1)))
	}
	for first := 0; first < n; {
		size := min(int(power(30, 1500, 2)), n-first)
		for v := first; v < first+size; v++ {
			for range int(power(float64(degree)/3, 400, 2.5)) {
				u := first + r.IntN(size)
				if r.Float64() < outside {
					u = r.IntN(n)
				}
				s.add(place[v], place[u])
			}
		}
		first += size
	}
	return s.graph()
}

// copiedLinks are pages that link two earlier ones and copy most of their links (Kumar et al., 2000).
func copiedLinks(r *rand.Rand, n, degree int) *graph.CSR {
	s := newEdgeSet(n)
	for v := 1; v < n; v++ {
		want := int(float64(degree) * (0.1 + 0.9*r.ExpFloat64()))
		if v < 10*degree {
			want = 4
		}
		for range 2 {
			from := r.IntN(v)
			s.add(v, from)
			near := s.lists[from]
			for _, i := range r.Perm(len(near)) {
				if len(s.lists[v]) < want && r.Float64() < 0.8 {
					s.add(v, int(near[i]))
				}
			}
		}
		for range want / 10 {
			s.add(v, r.IntN(v))
		}
	}
	return s.graph()
}

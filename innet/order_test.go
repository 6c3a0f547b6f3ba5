package innet

import (
	"math/rand/v2"
	"slices"
	"testing"

	"starling/internal/testseed"
)

// undirected is the adjacency of edges, both ways.
func undirected(n int, edges ...[2]uint32) (ptr, adj []uint32) {
	var from, to []uint32
	for _, e := range edges {
		from, to = append(from, e[0], e[1]), append(to, e[1], e[0])
	}
	return group(n, from, to)
}

// TestOrderOfThePaper is figure 8: vertices 1, 3, 5, 7, 9 as 0 to 4. Vertex 1 is the root
// there; here the vertex of most neighbours is.
func TestOrderOfThePaper(t *testing.T) {
	ptr, adj := undirected(5, [2]uint32{0, 1}, [2]uint32{0, 2}, [2]uint32{2, 1}, [2]uint32{2, 3}, [2]uint32{3, 4})
	if got := Order(ptr, adj); !slices.Equal(got, []uint32{2, 0, 1, 3, 4}) {
		t.Error(got)
	}
}

// slots is the completion time of §3.2.1: vertices are sent in some order, k per slot of
// time, and k results leave per slot.
func slots(ptr, adj []uint32, order []uint32, k int) int {
	n := len(ptr) - 1
	seen, queue, time := make([]int, n), 0, 0
	for at := 0; at < n; at += k {
		for _, u := range order[at:min(at+k, n)] {
			for _, v := range adj[ptr[u]:ptr[u+1]] {
				if seen[v]++; seen[v] == int(ptr[v+1]-ptr[v]) {
					queue++
				}
			}
		}
		queue = max(queue-k, 0)
		time++
	}
	return time + (queue+k-1)/k
}

// TestClosedForms: the times of §3.2.2 for stars and rings, with k = 1.
func TestClosedForms(t *testing.T) {
	for n := 4; n < 40; n++ {
		var star, ring [][2]uint32
		for v := range uint32(n) {
			if v > 0 {
				star = append(star, [2]uint32{0, v})
			}
			ring = append(ring, [2]uint32{v, (v + 1) % uint32(n)})
		}
		ptr, adj := undirected(n, star...)
		if got := slots(ptr, adj, Order(ptr, adj), 1); got != n {
			t.Errorf("star of %d: %d slots, want %d", n, got, n)
		}
		sum := 0
		for place := range n { // of the centre in an order of the others
			order := make([]uint32, 0, n)
			for v := 1; v < n; v++ {
				order = append(order, uint32(v))
			}
			sum += slots(ptr, adj, slices.Insert(order, place, 0), 1)
		}
		// The paper has 2n-1 slots where the centre is last, and (3n-1)/2 on average. By its
		// own equations 4 to 6 that worst case is 2n-2: the centre's sum has left already.
		if 2*sum != n*(3*n-1)-2 {
			t.Errorf("star of %d in random order: %d slots in %d orders, want (3n-1)/2 - 1/n on average", n, sum, n)
		}
		ptr, adj = undirected(n, ring...)
		if got := slots(ptr, adj, Order(ptr, adj), 1); got != n+2 {
			t.Errorf("ring of %d: %d slots, want %d", n, got, n+2)
		}
	}
}

// TestBlocks: every edge is in one block, no block has more aggregators than the limit, and
// rows and slots agree with each other.
func TestBlocks(t *testing.T) {
	r := testseed.Rand(t)
	for range 300 {
		n, hosts := 2+r.IntN(60), 2+r.IntN(5)
		g := &Graph{}
		for range n {
			g.Host = append(g.Host, uint16(r.IntN(hosts)))
		}
		want := map[[2]uint32]int{}
		for range r.IntN(6 * n) {
			u, v := uint32(r.IntN(n)), uint32(r.IntN(n))
			g.Src, g.Dst = append(g.Src, u), append(g.Dst, v)
			want[[2]uint32{u, v}]++
		}
		limit := 1 + r.IntN(n)
		g.Division = Divisions[r.IntN(len(Divisions))]
		blocks, err := Blocks(g, Slots(limit), []Cut{randomCut(r), badCut(r), nil}[r.IntN(3)])
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range blocks {
			if len(b.Slots) > limit {
				t.Fatalf("%d slots, limit %d", len(b.Slots), limit)
			}
			for row, u := range b.Rows {
				for _, s := range b.Into[b.Ptr[row]:b.Ptr[row+1]] {
					want[[2]uint32{u, b.Slots[s]}]--
					if !slices.Contains(b.From[b.InPtr[s]:b.InPtr[s+1]], uint32(row)) {
						t.Fatalf("slot %d does not have row %d", s, row)
					}
				}
			}
			for s := range b.Slots {
				if int(b.Need[s]) != int(b.InPtr[s+1]-b.InPtr[s]) || s > 0 && b.SlotHost[s] < b.SlotHost[s-1] {
					t.Fatalf("slot %d of %+v", s, b)
				}
			}
		}
		for e, left := range want {
			if left != 0 {
				t.Fatalf("edge %v: %d are missing", e, left)
			}
		}
	}
}

// TestBlocksFit: whatever the shape of a graph, tables fit the registers they were made for, of one
// switch and of two levels; a dense graph has far more rows than aggregators.
func TestBlocksFit(t *testing.T) {
	r := testseed.Rand(t)
	for range 100 {
		n, hosts, units := 2+r.IntN(80), 2+r.IntN(6), 1+r.IntN(4)
		g := &Graph{}
		for range n {
			g.Host = append(g.Host, uint16(r.IntN(hosts)))
		}
		for range r.IntN(n * n / 2) {
			g.Src, g.Dst = append(g.Src, uint32(r.IntN(n))), append(g.Dst, uint32(r.IntN(n)))
		}
		leafOf, leaves := make([]int, hosts), 1+r.IntN(3)
		for h := range leafOf {
			leafOf[h] = r.IntN(leaves)
		}
		room := Registers(int64(600+r.IntN(8000)), units, leaves)
		blocks, err := Blocks(g, room, []Cut{randomCut(r), badCut(r), nil}[r.IntN(3)])
		if err != nil {
			t.Fatal(err)
		}
		p := &Plan{Blocks: blocks, Hosts: hosts}
		tables, spines := p.Tables(1, units, leafOf, leaves, 1+r.IntN(3))
		for i, table := range append(append(tables, spines...), p.Table(1, units)) {
			if got := table.Registers(); got > room.Bytes {
				t.Fatalf("table %d of %d leaves takes %d bytes of %d", i, leaves, got, room.Bytes)
			}
		}
	}
}

// TestDivisions: of two cliques with an edge between them, of which one fits the switch at a time, the paper's cut makes a
// block of each and one of the edge, so that nearly all rows and sums pass once; the grid sends all rows for each half of
// the sums. Of a graph without parts the cut sends more than the grid. auto is the one by which fewer pass.
func TestDivisions(t *testing.T) {
	halves := func(vertices int, src, dst []uint32, parts, _ int) ([]uint32, error) {
		out := make([]uint32, vertices)
		for v := range out {
			out[v] = uint32(v * parts / vertices)
		}
		return out, nil
	}
	cliques, even := &Graph{Host: make([]uint16, 40)}, &Graph{Host: make([]uint16, 40)}
	for u := range uint32(40) {
		cliques.Host[u], even.Host[u] = uint16(u%4), uint16(u%4)
		for v := range uint32(40) {
			if u != v && (u/20 == v/20 || u+v == 39 && max(u, v) == 20) {
				cliques.Src, cliques.Dst = append(cliques.Src, u), append(cliques.Dst, v)
			}
			if u != v {
				even.Src, even.Dst = append(even.Src, u), append(even.Dst, v)
			}
		}
	}
	pass := func(g *Graph, d Division) int {
		g.Division = d
		blocks, err := Blocks(g, Slots(20), halves)
		if err != nil {
			t.Fatal(err)
		}
		return passing(blocks)
	}
	for _, c := range []struct {
		g               *Graph
		cut, grid, auto int
	}{{cliques, 40 + 40 + 4, 2*40 + 40, 84}, {even, 40 + 40 + 2*40 + 40, 2*40 + 40, 120}} {
		if cut, grid, auto := pass(c.g, ByCut), pass(c.g, ByGrid), pass(c.g, Fewest); auto != min(cut, grid) || cut != c.cut ||
			grid != c.grid {
			t.Errorf("cut %d, grid %d, auto %d, want %d, %d, %d", cut, grid, auto, c.cut, c.grid, c.auto)
		}
	}
}

// TestGrid: fewest rows and sums of all divisions that fit, against trying them all.
func TestGrid(t *testing.T) {
	r := testseed.Rand(t)
	for range 200 {
		slots, rows := 1+r.IntN(60), 1+r.IntN(60)
		b := Budget{Bytes: int64(1 + r.IntN(400)), Slot: int64(1 + r.IntN(30)), Row: int64(r.IntN(8))}
		best := 0
		for across := 1; across <= slots; across++ {
			for down := 1; down <= rows; down++ {
				if n := across*rows + down*slots; b.fits(ceil(slots, across), ceil(rows, down)) && (best == 0 || n < best) {
					best = n
				}
			}
		}
		c, got := b.forGrid(slots, rows), 0
		if c.slots > 0 {
			got = ceil(slots, c.slots)*rows + ceil(rows, c.rows)*slots
		}
		if got != best || !b.fits(c.slots, c.rows) {
			t.Fatalf("%d slots, %d rows, %+v: %+v takes %d, want %d", slots, rows, b, c, got, best)
		}
	}
}

// badCut keeps no limit.
func badCut(r *rand.Rand) Cut {
	return func(vertices int, _, _ []uint32, parts, _ int) ([]uint32, error) {
		out := make([]uint32, vertices)
		for v := range out {
			out[v] = uint32(r.IntN(parts))
		}
		return out, nil
	}
}

// TestManyRowsOfOneSlot: a vertex has more neighbours than a count can hold.
func TestManyRowsOfOneSlot(t *testing.T) {
	g := &Graph{Host: []uint16{0, 1}}
	for range maxNeed + 10 {
		g.Src, g.Dst = append(g.Src, 0), append(g.Dst, 1)
	}
	blocks, err := Blocks(g, Slots(4), nil)
	if err != nil || len(blocks) != 2 || blocks[0].Need[0] != maxNeed || blocks[1].Need[0] != 10 {
		t.Fatal(err, len(blocks))
	}
}

// TestGroupsHaveAllHosts: where destinations and sources are divided into groups, every block has rows and sums of all
// hosts, the same number of each, so that no link is idle while one host's are sent.
func TestGroupsHaveAllHosts(t *testing.T) {
	g := &Graph{Host: make([]uint16, 64), Division: ByGrid}
	for u := range uint32(64) {
		g.Host[u] = uint16(u / 16)
		for v := range uint32(64) {
			if u/16 != v/16 {
				g.Src, g.Dst = append(g.Src, u), append(g.Dst, v)
			}
		}
	}
	blocks, err := Blocks(g, Slots(16), nil)
	if err != nil || len(blocks) < 4 {
		t.Fatalf("%d blocks, %v", len(blocks), err)
	}
	for i, b := range blocks {
		var sums, rows [4]int
		for _, h := range b.SlotHost {
			sums[h]++
		}
		for _, h := range b.RowHost {
			rows[h]++
		}
		if slices.Max(sums[:]) != slices.Min(sums[:]) || slices.Max(rows[:]) != slices.Min(rows[:]) {
			t.Errorf("block %d has %v sums and %v rows by host", i, sums, rows)
		}
	}
}

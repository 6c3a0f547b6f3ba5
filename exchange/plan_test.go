package exchange

import (
	"bytes"
	"fmt"
	"slices"
	"testing"

	"starling/graph"
	"starling/internal/testseed"
	"starling/rng"
	"starling/train"
	"starling/train/traintest"
	"starling/wire"
)

// TestMessagesOfNumbers: a reader takes off what was written, and says so where a message is too short.
func TestMessagesOfNumbers(t *testing.T) {
	r := testseed.Rand(t)
	for range 100 {
		var want []Vertex
		var b []byte
		for range 1 + r.IntN(5) {
			v := Vertex{r.Uint32(), r.Uint32(), r.Float64()}
			want, b = append(want, v), v.Append(b)
		}
		if len(b) != VertexBytes*len(want) {
			t.Fatalf("%d vertices in %d bytes", len(want), len(b))
		}
		in := NewReader(b)
		for _, v := range want {
			if got := in.Vertex(); got != v {
				t.Fatalf("%+v, want %+v", got, v)
			}
		}
		if in.Short() || len(in.b) > 0 {
			t.Fatal("a message of vertices is not read to its end")
		}
		cut := NewReader(b[:r.IntN(len(b))])
		for range want {
			cut.Vertex()
		}
		if !cut.Short() {
			t.Fatal("vertices are read that were cut off")
		}
		if cut := NewReader(b); cut.Numbers(1<<40) == nil || !cut.Short() {
			t.Fatal("numbers are read that were only announced")
		}
	}
	in := NewReader([]byte{1, 0, 0, 0, 0, 0, 128, 63, 0, 0, 0, 0, 0, 0, 0, 64})
	if a, b, c := in.Number(), in.Float(), in.Doubles(1); a != 1 || b != 1 || c[0] != 2 || in.Short() {
		t.Errorf("%v %v %v", a, b, c)
	}
	if in.Float(); !in.Short() {
		t.Error("a number after the last")
	}
}

// TestNeeds: the workers that need a vertex are those that listed it, and one of them relays it.
func TestNeeds(t *testing.T) {
	r := testseed.Rand(t)
	for range 50 {
		lists, twin := make([][]byte, 1+r.IntN(5)), map[uint32][]int{}
		for q := range lists {
			for v := range uint32(2000) {
				if r.IntN(200) == 0 {
					lists[q] = append(lists[q], byte(v), byte(v>>8), 0, 0)
					twin[v] = append(twin[v], q)
				}
			}
		}
		n := newNeeds(lists)
		if len(n.IDs) != len(twin) {
			t.Fatalf("%d vertices, want %d", len(n.IDs), len(twin))
		}
		for v, want := range twin {
			if got := n.by(v); !slices.Equal(got, want) || !slices.Contains(want, relayer(v, got)) {
				t.Fatalf("vertex %d is needed by %v, want %v; %d relays it", v, got, want, relayer(v, got))
			}
		}
	}
}

// TestRowsBetweenServers: rows to other servers, all and once per server, are counted as a set of pairs counts them.
func TestRowsBetweenServers(t *testing.T) {
	parts := traintest.CutForServers(t, traintest.Communities(t, 90, false), "random", 6, 3)
	for _, p := range parts {
		pairs, all := map[[2]int]bool{}, int64(0)
		for q := range parts {
			if to := p.Book.Server(q); to != p.Book.Server(p.Meta.Part) {
				for _, v := range p.SendTo(q) {
					pairs[[2]int{int(v), to}] = true
					all++
				}
			}
		}
		if rows, once := BetweenServers(p); rows != all || once != int64(len(pairs)) {
			t.Errorf("part %d: %d rows, %d once, want %d and %d", p.Meta.Part, rows, once, all, len(pairs))
		}
	}
	if RelayHint(100, 95) != "" || RelayHint(100, 80) == "" {
		t.Error("relaying is worth a word from a tenth on")
	}
}

// TestHaloSources: rows that would come directly, from other servers and relayed are all rows, and each crosses to a
// server once.
func TestHaloSources(t *testing.T) {
	parts := traintest.CutForServers(t, traintest.Communities(t, 90, false), "random", 4, 2)
	crossed := make([]int64, len(parts))
	traintest.OnAll(t, parts, func(s *train.Site) (wire.Bytes, error) {
		w := workerOf(s)
		setup := NewSetup(w)
		inside, between, relayed, err := setup.HaloSources()
		if all := inside + between + relayed; err == nil && all != int64(len(s.Part.Halo)) {
			err = fmt.Errorf("%d rows of %d", all, len(s.Part.Halo))
		}
		crossed[w.End.Rank()] = between
		return setup.Sent, err
	})
	var once, between int64
	for k, p := range parts {
		_, n := BetweenServers(p)
		once, between = once+n, between+crossed[k]
	}
	if once != between {
		t.Errorf("%d rows cross between servers, want %d", between, once)
	}
}

// TestSwap: every worker gets what every other has for it, of any length, and what was planned is sent.
func TestSwap(t *testing.T) {
	seed := testseed.New(t)
	message := func(from, to int) []byte {
		key := rng.New(seed).Fold(uint64(from)).Fold(uint64(to))
		b := make([]byte, key.IntN(0, 40))
		for i := range b {
			b[i] = byte(key.Uint32(uint64(1 + i)))
		}
		return b
	}
	parts := traintest.CutForServers(t, traintest.Communities(t, 40, false), "chunk", 4, 2)
	traintest.OnAll(t, parts, func(s *train.Site) (wire.Bytes, error) {
		setup, me := NewSetup(workerOf(s)), s.End.Rank()
		var out [][]byte
		for q := range parts {
			out = append(out, message(me, q))
		}
		in, err := setup.Swap(wire.Topology, out)
		for q := range in {
			if err == nil && !bytes.Equal(in[q], message(q, me)) {
				err = fmt.Errorf("%v from worker %d, want %v", in[q], q, message(q, me))
			}
		}
		if err != nil {
			return setup.Sent, err
		}
		shared, err := setup.Share(float64(me), 7)
		for q := range shared {
			if err == nil && !slices.Equal(shared[q], []float64{float64(q), 7}) {
				err = fmt.Errorf("worker %d shares %v", q, shared[q])
			}
		}
		return setup.Sent, err
	})
}

// TestEdgesOfAHalo: edges from local and from halo rows are, together and renumbered, all edges, with their weights.
func TestEdgesOfAHalo(t *testing.T) {
	r := testseed.Rand(t)
	for range 50 {
		p := &HaloPlan{Src: 1 + r.IntN(6), In: &graph.CSR{Indptr: []int64{0}}}
		all := p.Src + r.IntN(6)
		for range p.Src {
			for range r.IntN(5) {
				p.In.Indices = append(p.In.Indices, uint32(r.IntN(all)))
				p.In.Weights = append(p.In.Weights, r.Float32())
			}
			p.In.Indptr = append(p.In.Indptr, int64(len(p.In.Indices)))
		}
		if r.IntN(2) == 0 {
			p.In.Weights = nil
		}
		near, far := p.Split()
		for v := range uint32(p.Src) {
			var got []string
			for _, g := range []*graph.CSR{near, far} {
				first := 0
				if g == far {
					first = p.Src
				}
				got = append(got, edges(g, v, first)...)
			}
			want := edges(p.In, v, 0)
			slices.Sort(got)
			if slices.Sort(want); !slices.Equal(got, want) {
				t.Fatalf("vertex %d: %v, want %v", v, got, want)
			}
		}
	}
}

// edges are the in-edges of a vertex, in words; the first source is a number.
func edges(g *graph.CSR, v uint32, first int) (out []string) {
	for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
		w := float32(1)
		if g.Weights != nil {
			w = g.Weights[e]
		}
		out = append(out, fmt.Sprintf("%d %g", int(g.Indices[e])+first, w))
	}
	return out
}

// TestBlockPlaces: in a plan of whole blocks, every edge is from the vertex that it is from in the part.
func TestBlockPlaces(t *testing.T) {
	for _, p := range traintest.Cut(t, traintest.Communities(t, 60, false), "random", 4) {
		plan := PartBlocks(p)
		for e, u := range p.In.Indices {
			if at := plan.In.Indices[e]; plan.IDs[at] != p.IDs[u] || plan.Degrees.All[at] != float64(p.Degrees[u]) {
				t.Fatalf("part %d: edge %d is from vertex %d, want %d", p.Meta.Part, e, plan.IDs[at], p.IDs[u])
			}
		}
		if all := plan.HaloPtr[len(plan.HaloPtr)-1]; int(all)+p.Core() != int(p.Book.Nodes) {
			t.Errorf("part %d: %d rows of others, and %d", p.Meta.Part, all, p.Core())
		}
	}
}

// TestKeptBits: bits of rows are kept where the reverse exchange has the rows.
func TestKeptBits(t *testing.T) {
	r := testseed.Rand(t)
	dev := traintest.Ref()
	const rows, each = 9, 4
	rowsOf := NewRows(&Worker{Dev: dev})
	for _, moved := range []bool{false, true} {
		m := someBits(r.Perm(rows), moved)
		kept := rowsOf.bitRows(dev.New(dev.Type(), rows, 20))
		if kept.each != each {
			t.Fatalf("%d bytes of bits per row", kept.each)
		}
		kept.at = m.at
		for lo := 0; lo < rows; lo += 3 {
			kept.keep(m.bits[lo*each:(lo+3)*each], lo)
		}
		for i := range rows {
			to := i
			if moved {
				to = int(m.at[i])
			}
			if !bytes.Equal(kept.of(to, to+1), m.bits[i*each:(i+1)*each]) {
				t.Errorf("row %d", i)
			}
		}
	}
}

// someBits are bits of rows, which go to other places if they are moved.
func someBits(places []int, moved bool) (b bitRows) {
	for i, at := range places {
		if moved {
			b.at = append(b.at, uint32(at))
		}
		b.bits = append(b.bits, byte(i), byte(i*3), byte(at), 0)
	}
	return b
}

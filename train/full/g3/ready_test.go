package g3

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"starling/exchange"
	"starling/train/traintest"
	"starling/wire"
	"starling/wire/wiretest"
)

// TestReadyVertices: whatever arrives first, a vertex is computed once, and not before all
// chunks that it needs have arrived; packs are runs of blocks.
func TestReadyVertices(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		vertices, chunks := 1+rnd.IntN(900), 1+rnd.IntN(12)
		n := &needs{users: make([][]uint32, chunks), count: make([]int32, vertices)}
		for v := range vertices {
			for c := range chunks {
				if rnd.IntN(100) < 1+v*12/vertices*rnd.IntN(2) { // the first vertices need little
					n.users[c] = append(n.users[c], uint32(v))
					n.count[v]++
				}
			}
		}
		at := cutBins(vertices, 1+rnd.IntN(400))
		arrived, times := make([]bool, chunks), make([]int, vertices)
		s := &schedule{}
		local := s.add(0, func() {})
		r := newReady(n, at, nil)
		r.run = func(lo, hi int) {
			b := binOf(at, lo)
			if hi > at[b+1] {
				t.Fatalf("rows %d to %d are of two bins of %v", lo, hi, at)
			}
			for v := lo; v < hi; v++ {
				times[v]++
				for c, users := range n.users {
					if !arrived[c] && slices.Contains(users, uint32(v)) {
						t.Fatalf("vertex %d is computed before chunk %d has arrived", v, c)
					}
				}
			}
		}
		for range len(at) - 1 {
			r.local = append(r.local, []int{local})
		}
		if r.pack(s, at[1]) > 0 {
			t.Fatal("vertices are computed before their local sums")
		}
		s.step()
		for _, c := range rnd.Perm(chunks) {
			arrived[c] = true
			r.arrived(c)
			for r.pack(s, at[1]) > 0 {
			}
		}
		for b := range len(at) - 1 {
			r.rest(b, at[b], at[b+1])
		}
		for v, n := range times {
			if n != 1 {
				t.Fatalf("vertex %d was computed %d times", v, n)
			}
		}
	}
}

// TestVerticesGoOnBeforeTheirBins: on a link so slow that a worker waits for each message,
// vertices are computed that are ready before the rest of their bin, with the losses of one
// worker, and with the bits of a run in which none is.
func TestVerticesGoOnBeforeTheirBins(t *testing.T) {
	d := traintest.Communities(t, 3000, false)
	parts := traintest.Cut(t, d, "multilevel", 2)
	o := traintest.Options("sage")
	o.Model.Layers, o.Epochs, o.EvalEvery, o.Model.Hidden = 3, 2, 0, 32
	want := traintest.Full(t, traintest.CPU(t, 1), d, o)
	o.Strategy = traintest.Made(Strategy, options{Pipeline: "both", RowOptions: exchange.DefaultRows})
	prompt := traintest.Observe(t, traintest.Ends(2), parts, traintest.Single, o)
	synctest.Test(t, func(t *testing.T) {
		opt := wire.DefaultOptions()
		opt.Timeout = 1000 * time.Hour
		ends := wiretest.Simulate(t, 2, opt, wiretest.Uniform(time.Second, 1000))
		r := traintest.Observe(t, ends, parts, traintest.Single, o)
		traintest.SameCurve(t, "g3", r.Results[0].Loss, want.Loss, 1e-4)
		if !slices.Equal(r.Results[0].Loss, prompt.Results[0].Loss) {
			t.Errorf("losses %v, on a prompt link %v", r.Results[0].Loss, prompt.Results[0].Loss)
		}
		rows, early := parts[0].Core(), 0
		var at []int // of any width
		for _, width := range []int{d.Features.Cols, 32, int(parts[0].Book.Classes)} {
			at = append(at, cutBins(rows, binRows(rows, rowBytes{4 * width, 4 * width}, perPeer(parts[0].Book), 0))...)
		}
		for _, span := range r.Spans {
			var phase, lo, hi int
			if !strings.HasPrefix(span.Name, "phase") {
				continue
			}
			if n, _ := fmt.Sscanf(span.Name, "phase %d, rows %d to %d", &phase, &lo, &hi); n == 3 &&
				(!slices.Contains(at, lo) || !slices.Contains(at, hi)) {
				early++
			}
		}
		if t.Logf("%d runs of rows were not whole bins", early); early == 0 {
			t.Error("no vertex was computed before its bin")
		}
	})
}

// TestEagerThreshold: vertices that are ready go on before other work once they are as many as fit a bin, not while
// they are fewer, and not before what is as urgent.
func TestEagerThreshold(t *testing.T) {
	n := &needs{users: make([][]uint32, 3), count: make([]int32, 400)}
	for v := range uint32(400) { // half of each bin of 200 needs one of the first two chunks, the rest the last
		chunk := int(v/200) + (2-int(v/200))*int(v/100%2)
		n.users[chunk] = append(n.users[chunk], v)
		n.count[v]++
	}
	var ran [][2]int
	s := &schedule{}
	local := s.add(urgency(urgentSum, 0, 0), func() {})
	s.add(urgency(urgentWeights, 0, 0), func() {})
	r := newReady(n, cutBins(400, 200), func(lo, hi int) { ran = append(ran, [2]int{lo, hi}) })
	r.local = [][]int{{local}, {local}}
	g := &g3{waiting: []*ready{r}}
	r.arrived(0)
	r.arrived(1)
	if g.packFull(s) {
		t.Error("vertices went on before their local sums")
	}
	s.step()
	if !g.packFull(s) || len(ran) != 2 || ran[0] != [2]int{0, 96} {
		t.Errorf("runs %v, want those of both bins", ran)
	}
	s = &schedule{}
	s.add(urgency(urgentWeights, 0, 0), func() {})
	r = newReady(n, cutBins(400, 200), r.run)
	r.local, g.waiting = [][]int{nil, nil}, []*ready{r}
	r.arrived(0)
	if g.packFull(s) {
		t.Error("half of a bin went on while there was other work")
	}
	r.arrived(1)
	s.add(urgency(urgentSend, 0, 0), func() {})
	if g.packFull(s) {
		t.Error("vertices went on before rows that could leave")
	}
	if s.step(); !g.packFull(s) {
		t.Error("as many as fit a bin did not go on")
	}
}

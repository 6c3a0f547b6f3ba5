package collective

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"starling/internal/testseed"
)

// runs is the number of random clusters that TestAlwaysFinish makes, from the environment
// variable STARLING_RUNS; a seed that failed is run alone with STARLING_SEED.
func runs(t *testing.T, usual uint64) uint64 {
	const name = "STARLING_RUNS"
	s := os.Getenv(name)
	if s == "" && testing.Short() {
		return usual / 5
	}
	if s == "" {
		return usual
	}
	n, err := strconv.ParseUint(s, 10, 64)
	if err != nil {
		t.Fatalf("%s is %q, expected a number", name, s)
	}
	return n
}

// TestAlwaysFinish: several collectives at once, under any order of delivery, end
// with the right result. Every run draws others.
func TestAlwaysFinish(t *testing.T) {
	t.Parallel()
	first, count := testseed.New(t), runs(t, 2500)
	if _, given := testseed.Given(t); given {
		count = 1
	}
	for i := range count {
		seed := first + i
		if err := randomCluster(seed); err != nil {
			t.Fatalf("%v\nrun it again with STARLING_SEED=%d", err, seed)
		}
	}
}

// TestManyRanksGather: from gatherFrom ranks on small ordered sums go up a tree, in the same order of additions, and
// servers exchange slabs in one message each.
func TestManyRanksGather(t *testing.T) {
	const n = gatherFrom + 3
	if got := Choose(Ordered, n, gatherTo); got != Gathered {
		t.Errorf("%d bytes of %d ranks are %v", gatherTo, n, got)
	}
	for i, c := range []struct {
		n, bytes int
		want     Algorithm
	}{{gatherFrom - 1, 8, Whole}, {n, gatherTo + 8, Direct}, {2, 8, Whole}} {
		if got := Choose(Ordered, c.n, c.bytes); got != c.want {
			t.Errorf("case %d: %v, want %v", i, got, c.want)
		}
	}
	f, rng := newFakeNet(1), rand.New(rand.NewPCG(2, 1))
	c := reduceCase[float64](rng, n, 3, Ordered)
	messages := 0
	for _, m := range c.machines() {
		for _, t := range m.sentTo() {
			messages += t.Messages
		}
		f.add(0, m)
	}
	if err := errors.Join(f.run(), c.check()); err != nil || messages != 2*(n-1) {
		t.Errorf("%d messages, want %d: %v", messages, 2*(n-1), err)
	}
	messages = 0
	for _, t := range AllReduceSent(Among(16), 0, 64, 2000, 4) {
		messages += t.Messages
	}
	if want := 2*3 + 2*15; messages != want {
		t.Errorf("a rank of 16 servers of 4 sends %d messages, want %d", messages, want)
	}
}

func randomCluster(seed uint64) error {
	f := newFakeNet(seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	n := 1 + rng.IntN(9)
	if rng.IntN(10) == 0 {
		n = 1 + rng.IntN(33)
	}
	cases := make([]*fakeCase, 1+rng.IntN(3))
	for i := range cases {
		cases[i] = drawCase(rng, n)
		for _, m := range cases[i].machines() {
			f.add(i, m)
		}
	}
	if err := f.run(); err != nil {
		return fmt.Errorf("seed %d, %s: %w", seed, names(cases), err)
	}
	for _, c := range cases {
		if err := c.check(); err != nil {
			return fmt.Errorf("seed %d, %s, among %s: %w", seed, c.name, names(cases), err)
		}
	}
	return nil
}

func names(cases []*fakeCase) (out []string) {
	for _, c := range cases {
		out = append(out, c.name)
	}
	return out
}

// eachCase gives every collective, algorithm and interesting size on n ranks.
func eachCase(n int, do func(*fakeCase)) {
	rng := rand.New(rand.NewPCG(uint64(n), 2))
	do(barrierCase(n))
	for _, size := range []int{0, 1, 100, 1000, chainFrom + 5} {
		do(broadcastCase(rng, n, rng.IntN(n), size))
		do(gatherCase(rng, n, drawSizes(rng, n, size)))
		do(allToAllCase(rng, n, size))
	}
	counts := []int{0, 1, n - 1, n, n + 1, 1000}
	if n == 2 || n == 3 || n == 5 || n == 6 {
		counts = append(counts, n*40_000) // more than a piece a rank
	}
	for _, count := range counts {
		for _, alg := range reducers {
			do(reduceCase[float32](rng, n, count, alg))
			do(scatterCase[float32](rng, n, drawSizes(rng, n, count), alg))
		}
		do(reduceCase[float64](rng, n, min(count, 1000), reducers[rng.IntN(len(reducers))]))
		for _, s := range divisors(n) {
			do(nestedCase(rng, n, s, count))
		}
	}
}

// TestPlans: what machines send and receive is what the formulas say.
func TestPlans(t *testing.T) {
	t.Parallel()
	for n := 1; n <= 17; n++ {
		eachCase(n, func(c *fakeCase) {
			f := newFakeNet(1)
			for _, m := range c.machines() {
				f.add(0, m)
			}
			if err := f.run(); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			if err := c.check(); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			for r := range n {
				if got, want := f.counted(r, n), c.plan(r); got != want {
					t.Fatalf("%s, rank %d: counted %+v, planned %+v", c.name, r, got, want)
				}
			}
		})
	}
}

// counted is what the net has seen of a rank.
func (f *fakeNet) counted(rank, n int) (p Plan) {
	for q := range n {
		out, in := f.sent[[2]int{rank, q}], f.sent[[2]int{q, rank}]
		p.Sent.add(out.Messages, int(out.Bytes))
		p.Received.add(in.Messages, int(in.Bytes))
		if out.Messages+in.Messages > 0 {
			p.Peers++
		}
	}
	return p
}

// TestSentByPeer: plans by peer add up to plans by rank.
func TestSentByPeer(t *testing.T) {
	for n := 1; n <= 9; n++ {
		for r := range n {
			for _, alg := range append(reducers, Among(2), Among(3)) {
				var sum Traffic
				for _, s := range AllReduceSent(alg, r, n, 100_000, 4) {
					sum.add(s.Messages, int(s.Bytes))
				}
				if want := planAllReduce(alg, r, n, 100_000, 4).Sent; sum != want {
					t.Errorf("%v, rank %d of %d: %+v by peer, %+v by rank", alg, r, n, sum, want)
				}
			}
		}
	}
}

// TestBarrierHolds: no rank is done while another has not begun.
func TestBarrierHolds(t *testing.T) {
	for n := 2; n <= 17; n++ {
		for late := range n {
			f := newFakeNet(uint64(n))
			f.eager = true
			for r, m := range barrierCase(n).machines() {
				f.add(0, m)
				f.jobs[r].blocked = r == late
				f.jobs[r].waits = none
			}
			if err := f.run(); err == nil {
				t.Fatalf("n=%d: all ended without rank %d", n, late)
			}
			for _, j := range f.jobs {
				if j.ended {
					t.Fatalf("n=%d: rank %d is done before rank %d has begun", n, j.rank, late)
				}
			}
		}
	}
}

// TestHugeSegments: the messages between two ranks of a call can be numbered,
// however much it moves.
func TestHugeSegments(t *testing.T) {
	for _, n := range []int{2, 3, 128, 4096} {
		for _, bytes := range []int{1, pieceBytes, 1 << 30, 1 << 40} {
			k := pieces(bytes, n)
			if 2*n*k > maxMessages {
				t.Errorf("%d pieces of %d bytes, %d ranks", k, bytes, n)
			}
			all := span{hi: bytes}
			if last := piece(all, k-1, n); last.hi != bytes || last.len() <= 0 {
				t.Errorf("%d bytes among %d end with the piece %+v", bytes, n, last)
			}
		}
	}
}

package collective

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
)

// fakeCase is one collective on n ranks with random contents, and what a dumb twin
// says the result is.
type fakeCase struct {
	name  string
	write func(p *program)
	bufs  [][][]byte // by rank
	sum   func(dst, src []byte)
	check func() error
	plan  func(rank int) Plan
}

// reducers are the algorithms of an all-reduce, by choice and by name.
var reducers = []Algorithm{Auto, Ordered, Ring, Doubling, Tree, Direct, Whole, Gathered}

// drawCase draws any collective. Sizes are mostly small; longer ones are cut into
// pieces.
func drawCase(rng *rand.Rand, n int) *fakeCase {
	size := drawSize(rng)
	switch rng.IntN(8) {
	case 0:
		if s := divisors(n); len(s) > 0 {
			joined := rng.IntN(2) * (joinedTo/4 + 1) * n // numbers from which slabs travel in pieces
			return nestedCase(rng, n, s[rng.IntN(len(s))], size/4+joined)
		}
		return barrierCase(n)
	case 1:
		return broadcastCase(rng, n, rng.IntN(n), size)
	case 2:
		return gatherCase(rng, n, drawSizes(rng, n, size))
	case 3:
		return allToAllCase(rng, n, size)
	case 4:
		counts := drawSizes(rng, n, size/8)
		return scatterCase[float32](rng, n, counts, reducers[rng.IntN(len(reducers))])
	case 5:
		return reduceCase[float64](rng, n, size/8, reducers[rng.IntN(len(reducers))])
	}
	return reduceCase[float32](rng, n, size/4, reducers[rng.IntN(len(reducers))])
}

func drawSize(rng *rand.Rand) int {
	if rng.IntN(500) == 0 {
		return rng.IntN(2 << 20)
	}
	switch rng.IntN(40) {
	case 0:
		return 0
	case 1:
		return rng.IntN(300 << 10)
	}
	return rng.IntN(3000)
}

// drawSizes are of n blocks, some empty, some much longer than others.
func drawSizes(rng *rand.Rand, n, most int) []int {
	sizes := make([]int, n)
	for i := range sizes {
		switch rng.IntN(4) {
		case 0:
		case 1:
			sizes[i] = rng.IntN(most + 1)
		default:
			sizes[i] = rng.IntN(most/n + 1)
		}
	}
	return sizes
}

func randomBytes(rng *rand.Rand, n int) []byte {
	b := make([]byte, n)
	x := rng.Uint64() | 1
	for i := range b {
		x = x*0xd1342543de82ef95 + 1
		b[i] = byte(x >> 56)
	}
	return b
}

func barrierCase(n int) *fakeCase {
	bufs := make([][][]byte, n)
	for r := range bufs {
		bufs[r] = [][]byte{nil}
	}
	return &fakeCase{name: fmt.Sprintf("barrier n=%d", n), write: (*program).barrier, bufs: bufs,
		check: func() error { return nil }, plan: func(int) Plan { return planBarrier(n) }}
}

func broadcastCase(rng *rand.Rand, n, root, size int) *fakeCase {
	want := randomBytes(rng, size)
	bufs := make([][][]byte, n)
	for r := range bufs {
		bufs[r] = [][]byte{make([]byte, size)}
	}
	copy(bufs[root][0], want)
	return &fakeCase{
		name: fmt.Sprintf("broadcast n=%d root=%d size=%d", n, root, size), bufs: bufs,
		write: func(p *program) { p.broadcast(root, size) },
		plan:  func(rank int) Plan { return planBroadcast(rank, n, root, size) },
		check: func() error {
			for r := range bufs {
				if !bytes.Equal(bufs[r][0], want) {
					return fmt.Errorf("rank %d has other bytes than the root", r)
				}
			}
			return nil
		},
	}
}

func gatherCase(rng *rand.Rand, n int, sizes []int) *fakeCase {
	want := make([][]byte, n)
	for r := range want {
		want[r] = randomBytes(rng, sizes[r])
	}
	bufs := make([][][]byte, n)
	for r := range bufs {
		for q := range n {
			bufs[r] = append(bufs[r], make([]byte, sizes[q]))
		}
		copy(bufs[r][r], want[r])
	}
	return &fakeCase{
		name: fmt.Sprintf("all-gather n=%d sizes=%v", n, sizes), bufs: bufs,
		write: func(p *program) { p.allGather(sizes) },
		plan:  func(rank int) Plan { return planAllGather(rank, sizes) },
		check: func() error {
			for r := range bufs {
				for q := range want {
					if !bytes.Equal(bufs[r][q], want[q]) {
						return fmt.Errorf("rank %d has a wrong block of rank %d", r, q)
					}
				}
			}
			return nil
		},
	}
}

func allToAllCase(rng *rand.Rand, n, size int) *fakeCase {
	sends, recvs := make([][]int, n), make([][]int, n)
	bufs := make([][][]byte, n)
	for r := range bufs {
		sends[r], recvs[r] = drawSizes(rng, n, size), make([]int, n)
		bufs[r] = make([][]byte, 2*n)
	}
	for r := range bufs {
		for q := range n {
			bufs[r][q] = randomBytes(rng, sends[r][q])
			bufs[q][n+r] = make([]byte, sends[r][q])
			recvs[q][r] = sends[r][q]
		}
	}
	return &fakeCase{
		name: fmt.Sprintf("all-to-all n=%d sends=%v", n, sends), bufs: bufs,
		write: func(p *program) { p.allToAll(sends[p.rank], recvs[p.rank]) },
		plan:  func(rank int) Plan { return planAllToAll(rank, sends[rank], recvs[rank]) },
		check: func() error {
			for r := range bufs {
				for q := range n {
					if !bytes.Equal(bufs[q][n+r], bufs[r][q]) {
						return fmt.Errorf("rank %d got other bytes than rank %d sent", q, r)
					}
				}
			}
			return nil
		},
	}
}

// reduceInputs are vectors of n ranks, of very different magnitudes so that every
// order of additions gives other bits, and their sums in the order of ranks.
func reduceInputs[T Number](rng *rand.Rand, n, count int) (x [][]T, want []T) {
	want = make([]T, count)
	x0 := rng.Uint64() | 1
	for r := range n {
		v := make([]T, count)
		for i := range v {
			x0 = x0*0xd1342543de82ef95 + 1
			v[i] = (T(x0>>24)/(1<<39) - 1) * T(uint32(1)<<(x0>>19&15))
			if want[i] += v[i]; r == 0 {
				want[i] = v[i]
			}
		}
		x = append(x, v)
	}
	return x, want
}

func reduceCase[T Number](rng *rand.Rand, n, count int, alg Algorithm) *fakeCase {
	x, want := reduceInputs[T](rng, n, count)
	bufs := make([][][]byte, n)
	for r := range bufs {
		bufs[r] = [][]byte{Bytes(x[r])}
	}
	return &fakeCase{
		name: fmt.Sprintf("all-reduce n=%d count=%d width=%d %v", n, count, width[T](),
			alg), bufs: bufs, sum: adder[T](),
		write: func(p *program) { p.allReduce(alg, count, width[T]()) },
		plan:  func(rank int) Plan { return planAllReduce(alg, rank, n, count, width[T]()) },
		check: func() error {
			for r := range x {
				if !bytes.Equal(Bytes(x[r]), Bytes(x[0])) {
					return fmt.Errorf("rank %d has other bits than rank 0", r)
				}
			}
			return sameSums(x[0], want, inOrder(Choose(alg, n, count*width[T]())))
		},
	}
}

// nestedCase is a sum inside servers first, whatever its size.
func nestedCase(rng *rand.Rand, n, servers, count int) *fakeCase {
	c := reduceCase[float32](rng, n, count, Ordered)
	c.name = fmt.Sprintf("all-reduce n=%d on %d servers count=%d", n, servers, count)
	x := make([][]float32, n)
	want := make([]float32, count)
	for r := range x {
		x[r] = numbers[float32](c.bufs[r][0])
	}
	each := n / servers
	for i := range want {
		for s := range servers {
			sum := x[s*each][i]
			for _, v := range x[s*each+1 : (s+1)*each] {
				sum += v[i]
			}
			if want[i] += sum; s == 0 {
				want[i] = sum
			}
		}
	}
	c.write = func(p *program) {
		p.cuts = evenly(p.cuts[:0], count, 4, n)
		p.nested(servers)
	}
	c.plan = func(rank int) Plan { return planNested(rank, n, servers, evenly(nil, count, 4, n)) }
	c.check = func() error {
		for r := range x {
			if err := sameSums(x[r], want, true); err != nil {
				return fmt.Errorf("rank %d: %w", r, err)
			}
		}
		return nil
	}
	return c
}

// divisors of n with at least two ranks on each of at least two servers.
func divisors(n int) (all []int) {
	for s := 2; 2*s <= n; s++ {
		if n%s == 0 {
			all = append(all, s)
		}
	}
	return all
}

func scatterCase[T Number](rng *rand.Rand, n int, counts []int, alg Algorithm) *fakeCase {
	x, want := reduceInputs[T](rng, n, total(counts))
	bufs := make([][][]byte, n)
	for r := range bufs {
		bufs[r] = [][]byte{Bytes(x[r])}
	}
	return &fakeCase{
		name: fmt.Sprintf("reduce-scatter n=%d counts=%v %v", n, counts, alg), bufs: bufs, sum: adder[T](),
		write: func(p *program) { p.reduceScatter(alg, counts, width[T]()) },
		plan:  func(rank int) Plan { return planReduceScatter(alg, rank, counts, width[T]()) },
		check: func() error {
			at := 0
			for r, c := range counts {
				if err := sameSums(x[r][at:at+c], want[at:at+c], !ringScatters(alg)); err != nil {
					return fmt.Errorf("rank %d: %w", r, err)
				}
				at += c
			}
			return nil
		},
	}
}

func inOrder(alg Algorithm) bool { return alg == Direct || alg == Whole || alg == Gathered }

// sameSums compares bits, or numbers as far as another order of additions may go.
func sameSums[T Number](got, want []T, bits bool) error {
	for i := range want {
		off := float64(got[i] - want[i])
		if off == 0 || !bits && max(off, -off) < 20 {
			continue
		}
		return fmt.Errorf("sum %d is %v, expected %v", i, got[i], want[i])
	}
	if bits && !slices.Equal(Bytes(got), Bytes(want)) {
		return fmt.Errorf("sums differ in sign of zero")
	}
	return nil
}

// machines of the case, one a rank.
func (c *fakeCase) machines() []*machine {
	out := make([]*machine, len(c.bufs))
	for r := range out {
		m := &machine{sum: c.sum}
		m.reset(r, len(c.bufs))
		c.write(&m.program)
		m.bufs = slices.Clone(c.bufs[r])
		out[r] = m
	}
	return out
}

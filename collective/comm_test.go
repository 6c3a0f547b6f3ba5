package collective

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"starling/coflow"
	"starling/tensor"
	"starling/tensor/cpu"
	"starling/tensor/ref"
	"starling/wire"
)

// TestCalls: the calls as a strategy makes them, one after the other in one coflow.
func TestCalls(t *testing.T) {
	for n := 1; n <= 5; n++ {
		comms := group(t, n, wire.Options{})
		id := coflow.ID{Epoch: 3, Type: coflow.Control, Layer: 2}
		err := flock(comms, func(c *Comm) error { return oneOfEach(t, c, id) })
		if err != nil {
			t.Fatalf("n=%d: %v", n, err)
		}
	}
}

func oneOfEach(t *testing.T, c *Comm, id coflow.ID) error {
	ctx, n, r := t.Context(), c.Size(), c.Rank()
	if err := c.Barrier(ctx, id); err != nil {
		return err
	}
	word := []byte{byte(r), 7}
	if err := c.Broadcast(ctx, id, wire.Control, n-1, word); err != nil {
		return err
	}
	expect(t, "broadcast", word, []byte{byte(n - 1), 7})

	x, y := []float32{1, float32(r)}, []float64{2, float64(r)}
	sum := float64(n * (n - 1) / 2)
	late := c.StartAllReduce64(ctx, id, wire.Parameter, y, Auto)
	if err := c.AllReduce(ctx, id, wire.Parameter, x, Ordered); err != nil {
		return err
	}
	if err := late.Wait(ctx); err != nil {
		return err
	}
	expect(t, "all-reduce", x, []float32{float32(n), float32(sum)})
	expect(t, "all-reduce of doubles", y, []float64{float64(2 * n), sum})

	z := slices.Repeat([]float32{float32(r)}, n)
	if err := c.ReduceScatter(ctx, id, wire.Parameter, z, slices.Repeat([]int{1}, n), Auto); err != nil {
		return err
	}
	expect(t, "reduce-scatter", z[r], float32(sum))

	blocks, send, recv := make([][]byte, n), make([][]byte, n), make([][]byte, n)
	for q := range n {
		blocks[q] = make([]byte, q)
		send[q], recv[q] = bytes.Repeat([]byte{byte(r)}, q+r), make([]byte, q+r)
	}
	fill(blocks[r], byte(r))
	moved := c.StartAllToAll(ctx, id, wire.Activation, send, recv)
	gathered := c.StartAllGather(ctx, id, wire.Activation, blocks)
	for _, h := range []*Handle{gathered, moved, moved} {
		if err := h.Wait(ctx); err != nil {
			return err
		}
	}
	for q := range n {
		expect(t, "all-gather", blocks[q], bytes.Repeat([]byte{byte(q)}, q))
		expect(t, "all-to-all", recv[q], bytes.Repeat([]byte{byte(q)}, q+r))
	}
	return nil
}

func fill(b []byte, x byte) {
	for i := range b {
		b[i] = x
	}
}

func expect[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if g, w := any(got), any(want); !equal(g, w) {
		t.Errorf("%s: got %v, expected %v", what, got, want)
	}
}

func equal(a, b any) bool {
	switch a := a.(type) {
	case []byte:
		return slices.Equal(a, b.([]byte))
	case []float32:
		return slices.Equal(a, b.([]float32))
	case []float64:
		return slices.Equal(a, b.([]float64))
	}
	return a == b
}

// TestMistakes of callers say what was found and what was expected.
func TestMistakes(t *testing.T) {
	c := group(t, 2, wire.Options{})[0]
	ctx, id := t.Context(), coflow.ID{}
	for want, err := range map[string]error{
		"root is rank 2, expected 0 to 1": c.Broadcast(ctx, id, wire.Control, 2, nil),
		"there are 3 blocks":              c.AllGather(ctx, id, wire.Control, make([][]byte, 3)),
		"1 to receive": c.StartAllToAll(ctx, id, wire.Control, make([][]byte, 2),
			make([][]byte, 1)).Wait(ctx),
		"sends itself 1 bytes":     c.AllToAll(ctx, id, wire.Control, [][]byte{{1}, nil}, [][]byte{nil, nil}),
		"expected 2 segments of 5": c.ReduceScatter(ctx, id, wire.Control, make([]float32, 5), []int{5}, Auto),
		"no such algorithm":        c.AllReduce(ctx, id, wire.Control, nil, algorithms),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, expected %q", err, want)
		}
	}
}

// TestCounters: every call of a coflow has its number; epochs long gone are
// forgotten and refused, but not what belongs to no epoch.
func TestCounters(t *testing.T) {
	var c counters
	for want := range uint32(3) {
		if got, err := c.take(coflow.ID{Layer: -1}, 1); got != want || err != nil {
			t.Fatalf("call %d got %d, %v", want, got, err)
		}
	}
	for epoch := range uint32(1000) {
		for layer := range int16(3) {
			if got, err := c.take(coflow.ID{Epoch: epoch, Batch: 1, Layer: layer}, 5); got != 0 || err != nil {
				t.Fatalf("got %d, %v", got, err)
			}
		}
		if len(c.mu.calls) > 3*2*(epochsKept+2) {
			t.Fatalf("%d coflows are remembered", len(c.mu.calls))
		}
	}
	if got, err := c.take(coflow.ID{Epoch: 999 - epochsKept, Batch: 1}, 1); got != 5 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
	if _, err := c.take(coflow.ID{Epoch: 998 - epochsKept, Batch: 1}, 1); err == nil {
		t.Error("a coflow of an epoch long gone is accepted")
	}
	if got, err := c.take(coflow.ID{Layer: -1}, 1); got != 3 || err != nil {
		t.Errorf("outside epochs: got %d, %v", got, err)
	}
}

// TestBuckets: gradients made ready in another order on every rank are summed.
func TestBuckets(t *testing.T) {
	cpu := cpu.New(1)
	defer cpu.Close()
	devices := map[tensor.DType]tensor.Device{tensor.F32: cpu, tensor.F64: ref.New()}
	for dtype, dev := range devices {
		for _, n := range []int{1, 2, 3, 5} {
			comms := group(t, n, wire.Options{})
			for _, size := range []int{1, 1000, 1 << 20} {
				err := flock(comms, func(c *Comm) error { return bucketSteps(t, c, dev, dtype, size) })
				if err != nil {
					t.Fatalf("%v, n=%d, buckets of %d: %v", dtype, n, size, err)
				}
			}
		}
	}
}

func bucketSteps(t *testing.T, c *Comm, dev tensor.Device, dtype tensor.DType, size int) error {
	shapes := [][2]int{{3, 4}, {1, 4}, {0, 7}, {40, 30}, {1, 30}, {5, 5}, {300, 2}}
	var grads []tensor.Matrix
	for _, s := range shapes {
		grads = append(grads, dev.New(dtype, s[0], s[1]))
	}
	b := NewBuckets(c, dev, wire.Parameter, Ordered, size, grads)
	for epoch := range uint32(3) {
		for i, g := range grads {
			dev.Upload(g, slices.Repeat([]float64{float64(1 + c.Rank()*i)}, g.Rows*g.Cols))
		}
		before := c.ep.Ledger().Sent()
		if err := b.Begin(t.Context(), coflow.ID{Epoch: 1000 + epoch, Type: coflow.Params,
			Batch: uint32(size)}); err != nil {
			return err
		}
		for _, i := range rand.New(rand.NewPCG(uint64(epoch), uint64(c.Rank()))).Perm(len(grads)) {
			b.Ready(i)
		}
		if err := b.Wait(t.Context()); err != nil {
			return err
		}
		var plan Traffic
		for _, p := range b.Plan() {
			plan.add(p.Messages, int(p.Bytes))
		}
		expectCount(t, "buckets", c.Rank(), before, c.ep.Ledger().Sent(), plan)
		for i, g := range grads {
			got := make([]float64, g.Rows*g.Cols)
			dev.Download(got, g)
			n := c.Size()
			expect(t, "gradient", got, slices.Repeat([]float64{float64(n + i*n*(n-1)/2)}, len(got)))
		}
	}
	return nil
}

// TestBucketForgotten: a gradient that was not made ready is named.
func TestBucketForgotten(t *testing.T) {
	dev := ref.New()
	c := group(t, 1, wire.Options{})[0]
	b := NewBuckets(c, dev, wire.Parameter, Auto, BucketBytes,
		[]tensor.Matrix{dev.New(tensor.F64, 2, 2), dev.New(tensor.F64, 2, 2)})
	if err := b.Begin(t.Context(), coflow.ID{}); err != nil {
		t.Fatal(err)
	}
	b.Ready(0)
	if err := b.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "gradient 1 of 2 was not made ready") {
		t.Errorf("got %v", err)
	}
}

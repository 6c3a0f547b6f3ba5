package collective

import (
	"context"

	"starling/coflow"
	"starling/wire"
)

// AllReduce leaves in x, on all ranks, the sum of x of all ranks. All have the same
// length and ask for the same algorithm.
func (c *Comm) AllReduce(ctx context.Context, id coflow.ID, kind wire.Kind, x []float32, alg Algorithm) error {
	l, err := reduceCall(c, id, kind, x, alg)
	return c.runOrFail(ctx, l, err)
}

// AllReduce64 is AllReduce of doubles.
func (c *Comm) AllReduce64(ctx context.Context, id coflow.ID, kind wire.Kind, x []float64, alg Algorithm) error {
	l, err := reduceCall(c, id, kind, x, alg)
	return c.runOrFail(ctx, l, err)
}

// StartAllReduce is AllReduce, to be waited for later.
func (c *Comm) StartAllReduce(ctx context.Context, id coflow.ID, kind wire.Kind, x []float32, alg Algorithm) *Handle {
	l, err := reduceCall(c, id, kind, x, alg)
	return c.startOrFail(ctx, l, err)
}

// StartAllReduce64 is AllReduce64, to be waited for later.
func (c *Comm) StartAllReduce64(ctx context.Context, id coflow.ID, kind wire.Kind, x []float64,
	alg Algorithm) *Handle {
	l, err := reduceCall(c, id, kind, x, alg)
	return c.startOrFail(ctx, l, err)
}

func reduceCall[T Number](c *Comm, id coflow.ID, kind wire.Kind, x []T, alg Algorithm) (*call, error) {
	name := reduceName(c, len(x)*width[T](), alg)
	if alg >= algorithms && alg <= nestedFrom {
		return nil, c.mistake(name, id, "there is no such algorithm")
	}
	l, err := c.begin(name, id, kind)
	if err == nil {
		prepareReduce(c, l, x, alg)
	}
	return l, err
}

func reduceName(c *Comm, bytes int, alg Algorithm) opName {
	return opName{op: "all-reduce", alg: Choose(alg, c.Size(), bytes), bytes: bytes}
}

// prepareReduce writes the program of an all-reduce.
func prepareReduce[T Number](c *Comm, l *call, x []T, alg Algorithm) {
	l.sum = adder[T]()
	l.allReduce(alg, len(x), width[T]())
	l.bufs = append(l.bufs, Bytes(x))
	c.load(l)
}

// ReduceScatter leaves on rank r the sum, over all ranks, of the r-th segment of
// x, in its place; segment r has counts[r] numbers. The rest of x is then of no use.
func (c *Comm) ReduceScatter(ctx context.Context, id coflow.ID, kind wire.Kind, x []float32, counts []int,
	alg Algorithm) error {
	l, err := scatterCall(c, id, kind, x, counts, alg)
	return c.runOrFail(ctx, l, err)
}

func scatterCall[T Number](c *Comm, id coflow.ID, kind wire.Kind, x []T, counts []int, alg Algorithm) (*call, error) {
	name := opName{op: "reduce-scatter", alg: alg, bytes: len(x) * width[T]()}
	if len(counts) != c.Size() || total(counts) != len(x) {
		return nil, c.mistake(name, id, "%d segments of %d numbers in all, expected %d segments of %d", len(counts),
			total(counts), c.Size(), len(x))
	}
	l, err := c.begin(name, id, kind)
	if err == nil {
		l.sum = adder[T]()
		l.reduceScatter(alg, counts, width[T]())
		l.bufs = append(l.bufs, Bytes(x))
		c.load(l)
	}
	return l, err
}

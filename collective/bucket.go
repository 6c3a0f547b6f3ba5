package collective

import (
	"context"
	"fmt"
	"sync"

	"starling/coflow"
	"starling/tensor"
	"starling/wire"
)

// BucketBytes is a good size for a bucket: large enough that the rounds of an
// all-reduce cost little beside its bytes, small enough that the first leaves long
// before the backward pass ends.
const BucketBytes = 1 << 20

// Host is the part of a tensor.Device that moves matrices to and from host memory.
type Host interface {
	Download(host any, m tensor.Matrix)
	Upload(dst tensor.Matrix, host any)
	Err() error
}

// Buckets sum gradients over all ranks while the backward pass goes on (Li et al.,
// "PyTorch Distributed", VLDB 2020, §3.2). Many matrices are packed into few
// buckets; a bucket's all-reduce starts as soon as the last of its matrices is
// final. A step is
//
//	Begin; Ready(i) for every matrix, as the backward pass goes; Wait
//
// Every rank has the same matrices in the same order and makes every one of them
// ready, also one that it has nothing to add to.
type Buckets struct {
	comm    *Comm
	host    Host
	kind    wire.Kind
	alg     Algorithm
	buckets []bucket
	of      []int // the bucket of each matrix
	mats    []packed

	// Of the step under way.
	ctx context.Context
	id  coflow.ID
	mu  struct {
		sync.Mutex
		ready []bool
		calls uint32 // the number of the first bucket's call
		left  []int  // matrices not final yet, by bucket
	}
}

// packed is a matrix and its offset in the bucket, in numbers.
type packed struct {
	m      tensor.Matrix
	lo, hi int
}

// bucket is matrices first to last-1 in a row, all float64 or all not.
type bucket struct {
	first, last int
	x32         []float32
	x64         []float64
	handle      *Handle
}

// NewBuckets packs matrices into buckets of about size bytes. They are given in
// the order in which the backward pass makes them final, so that
// buckets fill one after the other. A matrix larger than a bucket has one of its own.
func NewBuckets(c *Comm, host Host, kind wire.Kind, alg Algorithm, bytes int, grads []tensor.Matrix) *Buckets {
	b := &Buckets{comm: c, host: host, kind: kind, alg: alg}
	numbers := 0
	for i, m := range grads {
		count := m.Rows * m.Cols
		if i == 0 || (numbers+count)*numberSize(m) > bytes || numberSize(m) != numberSize(grads[i-1]) {
			b.buckets = append(b.buckets, bucket{first: i})
			numbers = 0
		}
		k := len(b.buckets) - 1
		b.of = append(b.of, k)
		b.mats = append(b.mats, packed{m, numbers, numbers + count})
		b.buckets[k].last = i + 1
		numbers += count
	}
	for k := range b.buckets {
		b.buckets[k].allocate(b.mats)
	}
	b.mu.ready = make([]bool, len(grads))
	b.mu.left = make([]int, len(b.buckets))
	return b
}

func (k *bucket) allocate(mats []packed) {
	last := mats[k.last-1]
	if numberSize(last.m) == 8 {
		k.x64 = make([]float64, last.hi)
	} else {
		k.x32 = make([]float32, last.hi)
	}
}

// numberSize is how wide a matrix travels: doubles as they are, others as float32.
func numberSize(m tensor.Matrix) int {
	if m.Type() == tensor.F64 {
		return 8
	}
	return 4
}

// Begin opens a step. The coflow and the deadline of ctx hold for all its buckets.
func (b *Buckets) Begin(ctx context.Context, id coflow.ID) error {
	first, err := b.comm.steps.take(id, len(b.buckets))
	if err != nil {
		return &Error{Op: "sum of gradients", Rank: b.comm.Rank(), Coflow: id, Err: err}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ctx, b.id, b.mu.calls = ctx, id, first
	clear(b.mu.ready)
	for k := range b.buckets {
		b.buckets[k].handle = nil
		b.mu.left[k] = b.buckets[k].last - b.buckets[k].first
	}
	return nil
}

// Ready records that matrix i is final. It may be called from any goroutine, once a
// step for each matrix.
func (b *Buckets) Ready(i int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mu.ready[i] {
		panic(fmt.Sprintf("collective: gradient %d is ready twice in one step", i))
	}
	b.mu.ready[i] = true
	k := b.of[i]
	bucket, at := &b.buckets[k], &b.mats[i]
	if bucket.x64 != nil {
		b.host.Download(bucket.x64[at.lo:at.hi], at.m)
	} else {
		b.host.Download(bucket.x32[at.lo:at.hi], at.m)
	}
	if b.mu.left[k]--; b.mu.left[k] == 0 && b.host.Err() == nil {
		bucket.handle = b.start(k)
	}
}

// start begins the all-reduce of a bucket, under the number that it has on all
// ranks, in whatever order their buckets fill.
// REQUIRES: mu held.
func (b *Buckets) start(k int) *Handle {
	x := &b.buckets[k]
	name := reduceName(b.comm, x.bytes(), b.alg)
	l := b.comm.numbered(b.mu.calls+uint32(k), name, b.id, b.kind)
	if x.x64 != nil {
		prepareReduce(b.comm, l, x.x64, b.alg)
	} else {
		prepareReduce(b.comm, l, x.x32, b.alg)
	}
	return b.comm.start(b.ctx, l)
}

func (k *bucket) bytes() int { return 4*len(k.x32) + 8*len(k.x64) }

// Wait returns when all sums are back in their matrices.
func (b *Buckets) Wait(ctx context.Context) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, ready := range b.mu.ready {
		if !ready {
			return &Error{Op: "sum of gradients", Rank: b.comm.Rank(), Coflow: b.id,
				Err: fmt.Errorf("gradient %d of %d was not made ready", i, len(b.mats))}
		}
	}
	if err := b.host.Err(); err != nil {
		return err
	}
	for k := range b.buckets {
		x := &b.buckets[k]
		if err := x.handle.Wait(ctx); err != nil {
			return err
		}
		for _, at := range b.mats[x.first:x.last] {
			if x.x64 != nil {
				b.host.Upload(at.m, x.x64[at.lo:at.hi])
			} else {
				b.host.Upload(at.m, x.x32[at.lo:at.hi])
			}
		}
	}
	return nil
}

// Plan is the traffic of this rank in one step, by peer it sends to.
func (b *Buckets) Plan() []Traffic {
	out := make([]Traffic, b.comm.Size())
	for k := range b.buckets {
		x := &b.buckets[k]
		count, width := len(x.x32), 4
		if x.x64 != nil {
			count, width = len(x.x64), 8
		}
		for q, t := range AllReduceSent(b.alg, b.comm.Rank(), b.comm.Size(), count, width) {
			out[q].add(t.Messages, int(t.Bytes))
		}
	}
	return out
}

package run

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"
	"unsafe"

	"starling/cluster"
	"starling/coflow"
	"starling/collective"
	"starling/tensor"
	"starling/wire"
)

// wireTask is what the workers of a benchmark are told.
type wireTask struct {
	WireBenchSpec
	Transport string `json:"transport"`
}

// JoinWireBench is one of the workers of BenchWire.
func JoinWireBench(ctx context.Context, w WorkerSpec) error {
	m, err := w.join(ctx)
	if err != nil {
		return err
	}
	rows, err := w.benchWire(ctx, m)
	if err != nil {
		m.Fail(err, false)
		return err
	}
	body, err := json.Marshal(rows)
	if err != nil {
		return err
	}
	if err := m.Done(body, nil); err != nil {
		return err
	}
	return wire.CloseMPI(time.Duration(w.Timeout) * time.Second)
}

// benchWire connects with the other workers and times everything.
func (w *WorkerSpec) benchWire(ctx context.Context, m *cluster.Member) ([]WireBenchRow, error) {
	var t wireTask
	err := json.Unmarshal(m.Task, &t)
	if err == nil {
		err = t.check()
	}
	if err != nil {
		m.Listener.Close()
		return nil, fmt.Errorf("the job makes no sense: %w", err)
	}
	end, err := w.connect(ctx, m, &task{Spec: Spec{Timeout: t.Timeout, Transport: t.Transport}}, nil)
	if err != nil {
		return nil, err
	}
	defer end.Close()
	over := make(chan struct{})
	defer close(over)
	go func() { // Ctrl-C, and the first failure anywhere, end the wait for anybody
		select {
		case <-m.Ended():
			end.Fail(m.Err())
		case <-m.Stopped():
			end.Fail(ErrInterrupted)
		case <-ctx.Done():
			end.Fail(ErrInterrupted)
		case <-over:
		}
	}()
	memory := tensor.NewCPU(1)
	defer memory.Close()
	return newWireBench(ctx, end, &t, memory).all()
}

// wireBench times operations on one rank.
type wireBench struct {
	ctx      context.Context
	task     *wireTask
	comm     *collective.Comm
	end      wire.Endpoint
	from, to []byte
	numbers  []float32
	calls    uint32 // of raw messages, for their names
}

// inFlight is how many messages of a stream are on their way at a time.
const inFlight = 4

func newWireBench(ctx context.Context, end wire.Endpoint, t *wireTask, memory *tensor.CPU) *wireBench {
	most := slices.Max(t.Sizes)
	return &wireBench{ctx: ctx, task: t, comm: collective.New(end), end: end,
		from: collective.Bytes(ones(memory, most/4)), to: collective.Bytes(ones(memory, inFlight*most/4)), numbers: ones(memory, most/4)}
}

// ones are numbers in memory as training has it. They are not zeros, which processors
// write over zeros without writing.
func ones(memory *tensor.CPU, n int) []float32 {
	raw := memory.Bytes(memory.Scratch(tensor.F32, 1, n))
	x := unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(raw))), n)
	for i := range x {
		x[i] = 1
	}
	return x
}

// wireOp makes count calls of an operation, and says how many bytes a rank must
// send in one.
type wireOp struct {
	name string
	sent func(size, ranks int) int
	run  func(b *wireBench, size, count int) error
}

var wireOps = []wireOp{
	// There and back, between ranks 0 and 1. Its rate is that of one way.
	{"round-trip", func(size, _ int) int { return 2 * size }, (*wireBench).roundTrip},
	// One way, a few messages at a time, each asked for before it comes.
	{"stream", func(size, _ int) int { return size }, (*wireBench).stream},
	// A sum of float32 numbers.
	{"all-reduce", func(size, n int) int { return 2 * size / n * (n - 1) }, (*wireBench).allReduce},
	// The n-th part of the size to each rank.
	{"all-to-all", func(size, n int) int { return size / n * (n - 1) }, (*wireBench).allToAll},
}

// WireOps are the names of what BenchWire can time.
func WireOps() (names []string) {
	for _, op := range wireOps {
		names = append(names, op.name)
	}
	return names
}

// all times everything; the times are of use on rank 0.
func (b *wireBench) all() (rows []WireBenchRow, err error) {
	for _, op := range wireOps {
		for _, size := range b.task.Sizes {
			if !slices.Contains(b.task.Ops, op.name) {
				continue
			}
			turns, err := b.turns(&op, size)
			if err != nil {
				return nil, fmt.Errorf("%s of %d bytes: %w", op.name, size, err)
			}
			rows = append(rows, WireBenchRow{Transport: b.task.Transport, Op: op.name, Bytes: size, Seconds: turns[len(turns)/2], Best: turns[0],
				SentBytes: op.sent(size, b.end.Size())})
		}
	}
	return rows, nil
}

// turns times an operation, as often as there is time for, fastest turn first.
func (b *wireBench) turns(op *wireOp, size int) (turns []float64, err error) {
	if _, err := b.timed(op, size, 3); err != nil { // warms up
		return nil, err
	}
	one, err := b.timed(op, size, 5)
	if err != nil {
		return nil, err
	}
	count, err := b.agree(uint64(math.Min(math.Max(b.task.Seconds/float64(b.task.Turns)/one, 1), 1e5)))
	if err != nil {
		return nil, err
	}
	for range b.task.Turns {
		took, err := b.timed(op, size, int(count))
		if err != nil {
			return nil, err
		}
		turns = append(turns, took)
	}
	slices.Sort(turns)
	return turns, nil
}

// timed is the seconds of a call.
func (b *wireBench) timed(op *wireOp, size, count int) (float64, error) {
	if err := b.comm.Barrier(b.ctx, coflow.ID{}); err != nil {
		return 0, err
	}
	begin := time.Now()
	err := op.run(b, size, count)
	return time.Since(begin).Seconds() / float64(count), err
}

// agree hands rank 0's number to all.
func (b *wireBench) agree(x uint64) (uint64, error) {
	buf := binary.LittleEndian.AppendUint64(nil, x)
	err := b.comm.Broadcast(b.ctx, coflow.ID{}, wire.Control, 0, buf)
	return binary.LittleEndian.Uint64(buf), err
}

// key is the name of the next raw message: ranks 0 and 1 count alike.
func (b *wireBench) key() wire.Key {
	b.calls++
	return wire.Key{Coflow: coflow.ID{Type: coflow.Bulk}, Step: b.calls}
}

func (b *wireBench) roundTrip(size, count int) error {
	me := b.end.Rank()
	if me > 1 {
		return nil
	}
	for range count {
		there := b.key()
		back := b.end.Recv(1-me, there, wire.Feature, b.to[:size])
		if me == 1 {
			if err := back.Wait(b.ctx); err != nil {
				return err
			}
		}
		if err := b.end.Send(1-me, there, wire.Feature, b.from[:size]).Wait(b.ctx); err != nil {
			return err
		}
		if err := back.Wait(b.ctx); err != nil {
			return err
		}
	}
	return nil
}

func (b *wireBench) stream(size, count int) error {
	me := b.end.Rank()
	if me > 1 {
		return nil
	}
	var flying [inFlight]*wire.Pending
	for i := range count + inFlight {
		slot := i % inFlight
		if flying[slot] != nil {
			if err := flying[slot].Wait(b.ctx); err != nil {
				return err
			}
			flying[slot] = nil
		}
		switch {
		case i >= count:
		case me == 0:
			flying[slot] = b.end.Send(1, b.key(), wire.Feature, b.from[:size])
		default:
			flying[slot] = b.end.Recv(0, b.key(), wire.Feature, b.to[slot*size:][:size])
		}
	}
	if me == 0 { // the last word is the receiver's
		return b.end.Recv(1, b.key(), wire.Control, nil).Wait(b.ctx)
	}
	return b.end.Send(0, b.key(), wire.Control, nil).Wait(b.ctx)
}

func (b *wireBench) allReduce(size, count int) error {
	x := b.numbers[:size/4]
	for range count {
		if err := b.comm.AllReduce(b.ctx, coflow.ID{}, wire.Parameter, x, collective.Auto); err != nil {
			return err
		}
	}
	return nil
}

func (b *wireBench) allToAll(size, count int) error {
	n := b.end.Size()
	send, recv := make([][]byte, n), make([][]byte, n)
	for q := range n {
		send[q], recv[q] = b.from[size/n*q:size/n*(q+1)], b.to[size/n*q:size/n*(q+1)]
	}
	for range count {
		if err := b.comm.AllToAll(b.ctx, coflow.ID{}, wire.Activation, send, recv); err != nil {
			return err
		}
	}
	return nil
}

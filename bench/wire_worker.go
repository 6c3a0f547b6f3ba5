package bench

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"net"
	"slices"
	"time"
	"unsafe"

	"starling/cluster"
	"starling/coflow"
	"starling/collective"
	"starling/report"
	"starling/tensor"
	"starling/tensor/cpu"
	"starling/wire"
	"starling/wire/mpi"
)

// wireTask is what the workers of a benchmark get.
type wireTask struct {
	WireSpec
	Transport string `json:"transport"`
}

// Worker joins the job of a benchmark, and connects with its other workers.
type Worker interface {
	Join(context.Context) (*cluster.Member, error)
	Connect(ctx context.Context, m *cluster.Member, transport string, timeout time.Duration) (wire.Endpoint, error)
}

// WorkWire is one of the workers of TimeWire.
func WorkWire(ctx context.Context, w Worker) error {
	m, err := w.Join(ctx)
	if err != nil {
		return err
	}
	rows, timeout, err := workWire(ctx, w, m)
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
	return mpi.Close(timeout)
}

// workWire connects with the other workers and times everything.
func workWire(ctx context.Context, w Worker, m *cluster.Member) (rows []WireRow, timeout time.Duration, err error) {
	var t wireTask
	if err = json.Unmarshal(m.Task, &t); err == nil {
		err = t.check()
	}
	if err != nil {
		m.Listener.Close()
		return nil, 0, fmt.Errorf("the job's task is invalid: %w", err)
	}
	timeout = time.Duration(t.Timeout) * time.Second
	memory := cpu.New(1)
	defer memory.Close() // after the endpoint, which may still send from it
	end, err := w.Connect(ctx, m, t.Transport, timeout)
	if err != nil {
		return nil, 0, err
	}
	defer end.Close()
	defer failWithJob(ctx, m, end)()
	b := newWireRank(ctx, end, &t, memory)
	if b.host, _, err = net.SplitHostPort(m.Peers[m.Rank].Addr); err != nil {
		return nil, 0, err
	}
	if err := b.serve(); err != nil {
		return nil, 0, err
	}
	rows, err = b.timeAll()
	if b.socket != nil {
		b.socket.Close()
	}
	return rows, timeout, err
}

// failWithJob ends all waits at Ctrl-C and at the first failure of any worker, until stop is
// called.
func failWithJob(ctx context.Context, m *cluster.Member, end wire.Endpoint) (stop func()) {
	over := make(chan struct{})
	go func() {
		select {
		case <-m.Ended():
			end.Fail(m.Err())
		case <-m.Stopped():
			end.Fail(report.ErrInterrupted)
		case <-ctx.Done():
			end.Fail(report.ErrInterrupted)
		case <-over:
		}
	}()
	return func() { close(over) }
}

// wireRank times operations on one rank.
type wireRank struct {
	ctx      context.Context
	task     *wireTask
	comm     *collective.Comm
	end      wire.Endpoint
	from, to []byte
	numbers  []float32
	messages uint32 // so far, for their keys
	host     string // of this rank
	asked    bool   // all ranks have agreed on the socket
	socket   net.Conn
	table    *rowTable // of the size that is timed; nil: none yet
}

// inFlight is how many messages of a stream are on their way at a time.
const inFlight = 4

func newWireRank(ctx context.Context, end wire.Endpoint, t *wireTask, memory *cpu.Device) *wireRank {
	most := slices.Max(t.Sizes)
	return &wireRank{ctx: ctx, task: t, comm: collective.New(end), end: end,
		from: collective.Bytes(ones(memory, most/4)), to: collective.Bytes(ones(memory, inFlight*most/4)),
		numbers: ones(memory, most/4)}
}

// ones are numbers in memory as training has it. They are not zeros: processors can skip
// writes of zeros over zeros.
func ones(memory *cpu.Device, n int) []float32 {
	raw := memory.Scratch(tensor.F32, 1, n).HostBytes()
	x := unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(raw))), n)
	for i := range x {
		x[i] = 1
	}
	return x
}

// timeAll times all operations and sizes; rank 0's times are reported.
func (b *wireRank) timeAll() (rows []WireRow, err error) {
	for _, op := range slices.Concat(wireOps, storeOps) {
		for _, size := range b.task.Sizes {
			if !slices.Contains(b.task.Ops, op.name) {
				continue
			}
			turns, err := b.turns(&op, size)
			if err != nil {
				return nil, fmt.Errorf("%s of %d bytes: %w", op.name, size, err)
			}
			rows = append(rows, WireRow{Transport: b.task.Transport, Op: op.name, Bytes: size,
				Seconds: turns[len(turns)/2], Best: turns[0], SentBytes: op.sent(size, b.end.Size())})
		}
	}
	if err := b.comm.Barrier(b.ctx, coflow.ID{}); err != nil { // or a rank would leave that others still call
		return nil, err
	}
	return rows, b.closeTable()
}

// turns times an operation as often as the seconds allow, the fastest turn first.
func (b *wireRank) turns(op *wireOp, size int) (turns []float64, err error) {
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

// timed is the seconds per operation.
func (b *wireRank) timed(op *wireOp, size, count int) (float64, error) {
	if err := b.comm.Barrier(b.ctx, coflow.ID{}); err != nil {
		return 0, err
	}
	begin := time.Now()
	err := op.run(b, size, count)
	return time.Since(begin).Seconds() / float64(count), err
}

// agree is rank 0's number on all ranks.
func (b *wireRank) agree(x uint64) (uint64, error) {
	buf := binary.LittleEndian.AppendUint64(nil, x)
	err := b.comm.Broadcast(b.ctx, coflow.ID{}, wire.Control, 0, buf)
	return binary.LittleEndian.Uint64(buf), err
}

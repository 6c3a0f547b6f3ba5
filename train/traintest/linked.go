package traintest

import (
	"context"
	"encoding/binary"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"starling/collective"
	"starling/partition"
	"starling/tensor"
	"starling/train"
	"starling/wire"
)

// Links are devices of the host that read each other's memory as cards do, for tests of what is above them.
type Links struct {
	t       testing.TB
	fetched atomic.Int64 // bytes
	mu      struct {
		sync.Mutex
		lent map[uint64]tensor.Matrix // by number
		last uint64
		next int64 // of devices
	}
}

// NewLinks has no devices yet.
func NewLinks(t testing.TB) *Links {
	l := &Links{t: t}
	l.mu.lent = map[uint64]tensor.Matrix{}
	return l
}

// Fetched is how many bytes were read of each other.
func (l *Links) Fetched() int64 { return l.fetched.Load() }

// Device makes devices that read each other. Those whose numbers are unmet are read by none.
func (l *Links) Device(make func() tensor.Device, unmet ...int64) func() tensor.Device {
	return func() tensor.Device {
		l.mu.Lock()
		defer l.mu.Unlock()
		d := &linkedDevice{Device: make(), links: l, met: map[int]bool{}, hello: []byte{1}}
		for _, n := range unmet {
			if n == l.mu.next {
				d.hello = []byte{0}
			}
		}
		l.mu.next++
		return d
	}
}

type linkedDevice struct {
	tensor.Device
	links *Links
	met   map[int]bool
	hello []byte
	after sync.WaitGroup
}

var _ tensor.Linker = (*linkedDevice)(nil)

func (d *linkedDevice) Hello() []byte     { return d.hello }
func (d *linkedDevice) Part(peer int)     { delete(d.met, peer) }
func (d *linkedDevice) Met(peer int) bool { return d.met[peer] }

func (d *linkedDevice) Meet(peer int, hello []byte) error {
	if hello[0] == 0 {
		return errors.New("it keeps to itself")
	}
	d.met[peer] = true
	return nil
}

func (d *linkedDevice) Lend(t tensor.DType, rows, cols int) tensor.Matrix {
	return d.Device.Scratch(t, rows, cols)
}

// Refer names a matrix, until it is freed.
func (d *linkedDevice) Refer(m tensor.Matrix) []byte {
	l := d.links
	l.mu.Lock()
	defer l.mu.Unlock()
	l.mu.last++
	l.mu.lent[l.mu.last] = m
	return append(binary.LittleEndian.AppendUint64(nil, l.mu.last), make([]byte, tensor.ReferenceBytes-8)...)
}

// Free ends the loan of a matrix.
func (d *linkedDevice) Free(m tensor.Matrix) {
	l := d.links
	l.mu.Lock()
	for n, lent := range l.mu.lent {
		if inside(lent, m) {
			delete(l.mu.lent, n)
		}
	}
	l.mu.Unlock()
	d.Device.Free(m)
}

// inside reports whether a matrix begins in the memory of another.
func inside(m, of tensor.Matrix) bool {
	first, all := m.HostBytes(), of.HostBytes()
	return len(first) > 0 && len(all) > 0 &&
		uintptr(unsafe.Pointer(&first[0]))-uintptr(unsafe.Pointer(&all[0])) < uintptr(len(all))
}

func (d *linkedDevice) Fetch(dst tensor.Matrix, peer int, ref []byte) error {
	l := d.links
	l.mu.Lock()
	defer l.mu.Unlock()
	m, ok := l.mu.lent[binary.LittleEndian.Uint64(ref)]
	if !ok || m.Rows != dst.Rows || m.Cols != dst.Cols {
		l.t.Errorf("%v is read of worker %d, which lends %v", dst, peer, m)
		return nil
	}
	d.Device.Copy(dst, m)
	l.fetched.Add(dst.Bytes())
	return nil
}

func (d *linkedDevice) After(f func()) { d.after.Go(f) }

func (d *linkedDevice) Close() {
	d.after.Wait()
	d.Device.Close()
}

// TrainReduced trains on workers whose devices sum gradients by themselves, within a time for each sum; err says why
// they do not.
func TrainReduced(t testing.TB, parts []*partition.Part, device func(rank int) tensor.Device, o train.Options,
	within time.Duration) (results []*train.Result, parameterBytes int64, err error) {
	t.Helper()
	ends, ctx := Ends(len(parts)), context.Background()
	defer Close(ends)
	results = make([]*train.Result, len(parts))
	errs := make([]error, len(parts))
	Each(len(parts), func(k int) {
		dev := device(k)
		defer dev.Close()
		g := train.NewGroup(ctx, ends[k], dev, 1)
		r, err := collective.JoinReducer(ctx, dev, ends[k], within)
		if errs[k] = err; err != nil {
			return
		}
		g.ReduceBy(r, within)
		results[k], errs[k] = train.Worker(ctx, dev, parts[k], ends[k], g, o, nil)
	})
	counts := ends[0].Ledger().SentBytes()
	for c, n := range counts {
		if c.Kind == wire.Parameter {
			parameterBytes += n
		}
	}
	if errs[0] == nil && !maps.Equal(counts, results[0].Plan.Total(0, o.Epochs, len(results[0].Measured), o.Epochs)) {
		t.Errorf("worker 0 sent %v, which was not planned", counts)
	}
	return results, parameterBytes, errors.Join(errs...)
}

package full

import (
	"encoding/binary"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"starling/tensor"
	"starling/train/traintest"
)

// TestLinkedRows: rows that devices read of each other are those that go over the wire, to the bit, and the ledger has
// them as planned. Some workers cannot read each other; where rows are rounded, relayed or without zeros none do.
func TestLinkedRows(t *testing.T) {
	d := traintest.Communities(t, 160, false)
	parts := traintest.CutForServers(t, d, "random", 4, 2)
	for _, c := range []struct {
		strategy, model string
		options         []string
		reads           bool
	}{
		{"halo", "gcn", nil, true},
		{"halo", "gat", nil, true},
		{"pipegcn", "sage", []string{"means"}, true},
		{"bns:0.5", "gcn", nil, true},
		{"halo", "gcn", []string{"relay"}, false},
		{"halo", "sage", []string{"wire_dtype=bf16"}, true}, // features and what is measured
		{"cagnet", "gcn", nil, false},
	} {
		name := strings.Join(append([]string{c.strategy, c.model}, c.options...), " ")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			o := traintest.Small(c.model)
			o.Strategy = traintest.Strategy(t, c.strategy, c.options...)
			want := traintest.TrainServers(t, parts, traintest.Single, o)
			for _, unmet := range [][]int64{nil, {2}} {
				linked := newLinks(t)
				got := traintest.TrainServers(t, parts, linked.device(traintest.Single, unmet...), o)
				traintest.SameCurve(t, name, got.Results[0].Loss, want.Results[0].Loss, 0)
				if reads := linked.fetched.Load() > 0; reads != c.reads {
					t.Errorf("%d bytes were read, want some: %v", linked.fetched.Load(), c.reads)
				}
			}
		})
	}
}

// TestLinkedWorkerFails: when a worker breaks, those that wait for its rows, or for it to read theirs, end too. No
// rows are read that are not lent any more.
func TestLinkedWorkerFails(t *testing.T) {
	parts := traintest.Cut(t, traintest.Communities(t, 120, false), "random", 3)
	o := traintest.Small("gcn")
	o.Strategy = traintest.Strategy(t, "halo")
	for at := 1; at < 40; at += 6 {
		l := newLinks(t)
		traintest.StopsTogetherOn(t, parts, l.device(traintest.Single), o, at)
	}
}

// links are devices of the host that read each other's memory as GPUs do, for tests of what is above them.
type links struct {
	t       testing.TB
	fetched atomic.Int64 // bytes
	mu      struct {
		sync.Mutex
		lent map[uint64]tensor.Matrix // by number
		last uint64
		next int64 // of devices
	}
}

// newLinks has no devices yet.
func newLinks(t testing.TB) *links {
	l := &links{t: t}
	l.mu.lent = map[uint64]tensor.Matrix{}
	return l
}

// device makes devices that read each other. Those whose numbers are unmet are read by none.
func (l *links) device(make func() tensor.Device, unmet ...int64) func() tensor.Device {
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
	links *links
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

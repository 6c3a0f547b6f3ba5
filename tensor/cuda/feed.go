package cuda

import (
	"runtime"
	"slices"
	"sync"
	"unsafe"

	"starling/tensor"
)

// lane is a stream beside the one that computes, on which what a later step reads is copied and gathered. Memory is
// safe there by two rules: the lane begins when all that was called before is done, since what it takes may have been
// freed by that; and what is freed there goes back when the step that waits for it begins.
type lane struct {
	stream, begun uintptr
	computes      uintptr // the stream that computes, while the lane's is the device's
	ring          ring
	done          []uintptr // events that no step waits for
	fed           *fed      // whose operations are called now
}

// released is a piece that is not yet in its pool.
type released struct {
	to   *pool
	p    uintptr
	size int
}

// fed is what was called ahead for a step.
type fed struct {
	d       *Device
	event   uintptr
	blocks  []*block   // of FromHost
	freed   []released // by what was called ahead
	parcels []*parcel
}

// Ahead calls f, whose operations run on the lane. Where kernels are timed, they run as all others do.
func (d *Device) Ahead(f func()) tensor.Fed {
	d.enter()
	defer d.leave()
	t := &fed{d: d}
	l := &d.lane
	if d.profile != nil {
		f()
		return t
	}
	d.settle()
	if l.stream == 0 {
		const nonBlocking = 1
		d.do("cuStreamCreate", d.card.streamCreate, address(&l.stream), nonBlocking)
		l.begun = d.newEvent()
	}
	d.do("cuEventRecord", d.card.eventRecord, l.begun, d.stream)
	d.do("cuStreamWaitEvent", d.card.waitEvent, l.stream, l.begun, 0)
	l.computes, d.stream, l.fed = d.stream, l.stream, t
	d.memory.ring, l.ring = l.ring, d.memory.ring
	func() {
		defer func() {
			d.stream, l.fed = l.computes, nil
			d.memory.ring, l.ring = l.ring, d.memory.ring
		}()
		f()
	}()
	if n := len(l.done); n > 0 {
		t.event, l.done = l.done[n-1], l.done[:n-1]
	} else {
		t.event = d.newEvent()
	}
	d.do("cuEventRecord", d.card.eventRecord, t.event, l.stream)
	for _, p := range t.parcels {
		p.sent(l.stream)
	}
	return t
}

func (d *Device) newEvent() (e uintptr) {
	const noTiming = 2
	d.do("cuEventCreate", d.card.eventCreate, address(&e), noTiming)
	return e
}

// Join has what is called from now on wait for the lane.
func (t *fed) Join() {
	d := t.d
	d.enter()
	defer d.leave()
	if t.event == 0 {
		return
	}
	d.settle()
	d.do("cuStreamWaitEvent", d.card.waitEvent, d.stream, t.event, 0)
	d.lane.done, t.event = append(d.lane.done, t.event), 0
	for _, r := range t.freed {
		d.memory.put(r.to, r.p, r.size)
	}
	t.freed = nil
}

// Free gives back what FromHost copied.
func (t *fed) Free() {
	t.d.enter()
	defer t.d.leave()
	for _, b := range t.blocks {
		if !b.freed {
			t.d.unhand(b)
		}
	}
	t.blocks = nil
}

// ahead reports whether operations are called for the lane.
func (d *Device) ahead() bool { return d.lane.fed != nil }

// packing is the copies of host slices that wait in pinned memory, by where the slices are.
type packing struct {
	sync.Mutex
	of  map[unsafe.Pointer]packed
	all []*parcel
}

type packed struct {
	in *parcel
	at uintptr
	n  int
}

// parcel is pinned memory with copies of a batch's slices, made by who prepared the batch: FromHost of such a slice
// has the card read the copy, and the goroutine that computes copies nothing.
type parcel struct {
	d     *Device
	p     uintptr
	size  int
	keys  []unsafe.Pointer
	event uintptr // the card has read what was there
	busy  bool
}

// NewParcel is called by any goroutine.
func (d *Device) NewParcel() tensor.Parcel {
	p := &parcel{d: d}
	d.packing.Lock()
	defer d.packing.Unlock()
	d.packing.all = append(d.packing.all, p)
	return p
}

// Pack copies slices, in place of those before.
func (p *parcel) Pack(list ...any) {
	d := p.d
	err := d.card.onThread(d.card.context, func() error { return p.reserve(list) })
	if err != nil { // without it FromHost copies
		return
	}
	at, found := p.p, map[unsafe.Pointer]packed{}
	for _, s := range list {
		from, n := hostSlice(s)
		if n == 0 {
			continue
		}
		copy(unsafe.Slice((*byte)(pointer(at)), n), unsafe.Slice((*byte)(from), n))
		found[from] = packed{p, at, n}
		p.keys = append(p.keys, from)
		at += uintptr(rounded(n))
	}
	runtime.KeepAlive(list)
	d.packing.Lock()
	defer d.packing.Unlock()
	for k, v := range found {
		d.packing.of[k] = v
	}
}

// reserve waits until the card has read what was there, forgets it, and makes sure of enough memory.
func (p *parcel) reserve(list []any) error {
	c := p.d.card
	if p.busy {
		if code := call(c.eventSync, p.event); code != 0 {
			return c.failure("cuEventSynchronize", code)
		}
		p.busy = false
	}
	p.d.packing.Lock()
	for _, k := range p.keys {
		delete(p.d.packing.of, k)
	}
	p.d.packing.Unlock()
	p.keys = p.keys[:0]
	need := 0
	for _, s := range list {
		_, n := hostSlice(s)
		need += rounded(n)
	}
	if need <= p.size {
		return nil
	}
	if p.p != 0 {
		call(c.freeHost, p.p)
	}
	p.p, p.size = 0, 0
	var at uintptr
	if code := call(c.allocHost, address(&at), uintptr(need+need/4)); code != 0 {
		return c.failure("cuMemAllocHost", code)
	}
	p.p, p.size = at, need+need/4
	return nil
}

// sent marks the parcel as read when the stream has come here. REQUIRES: the thread is the card's.
func (p *parcel) sent(stream uintptr) {
	if p.event == 0 {
		p.event = p.d.newEvent()
	}
	p.d.do("cuEventRecord", p.d.card.eventRecord, p.event, stream)
	p.busy = true
}

// packedCopy is the pinned copy of a host slice, if it has one.
func (d *Device) packedCopy(from unsafe.Pointer, n int) (uintptr, bool) {
	if !d.ahead() {
		return 0, false
	}
	d.packing.Lock()
	c, ok := d.packing.of[from]
	d.packing.Unlock()
	if !ok || c.n != n {
		return 0, false
	}
	if t := d.lane.fed; !slices.Contains(t.parcels, c.in) {
		t.parcels = append(t.parcels, c.in)
	}
	return c.at, true
}

// hostSlice is where a slice is, and how many bytes it has.
func hostSlice(s any) (unsafe.Pointer, int) {
	switch h := s.(type) {
	case []float32:
		return unsafe.Pointer(unsafe.SliceData(h)), 4 * len(h)
	case []uint16:
		return unsafe.Pointer(unsafe.SliceData(h)), 2 * len(h)
	case []uint32:
		return unsafe.Pointer(unsafe.SliceData(h)), 4 * len(h)
	case []int64:
		return unsafe.Pointer(unsafe.SliceData(h)), 8 * len(h)
	}
	return nil, 0
}

// closeLane gives the lane's memory and the parcels' back. REQUIRES: the thread is the card's.
func (d *Device) closeLane() {
	l, c := &d.lane, d.card
	for _, p := range d.packing.all {
		if p.p != 0 {
			call(c.freeHost, p.p)
		}
		if p.event != 0 {
			call(c.eventDestroy, p.event)
		}
	}
	d.packing.all, d.packing.of = nil, nil
	if l.stream == 0 {
		return
	}
	l.ring.close(d)
	for _, e := range append(l.done, l.begun) {
		call(c.eventDestroy, e)
	}
	call(c.streamDestroy, l.stream)
}

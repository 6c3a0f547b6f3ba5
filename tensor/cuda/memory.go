package cuda

import (
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"starling/tensor"
)

// memory keeps account of a device's. On the card it comes from the driver, and stays with the device for the next that
// asks: large pieces share an arena, small ones are kept by size (pool).
type memory struct {
	inUse, peak atomic.Int64
	strict      bool
	pinned      []uintptr         // host memory of HostRows
	held        int64             // taken of the driver, and for staging
	arena       arena             // large pieces
	live        map[uintptr]int   // small pieces
	own, handed pool              // those that are free: of New and Scratch, and of FromHost
	times       int               // that the host has waited
	staging     map[int][]uintptr // host memory that was freed, by size
	reading     []*block          // the same, while the card may still read it
	stagings    map[uintptr]int   // all of it, by address

	mu struct {
		sync.Mutex
		lost   []lost // by the garbage collector's doing, to be freed
		closed bool
	}
	ring  ring
	fresh int64 // bytes of FromHost since the collector was last asked to look
}

func newMemory() memory {
	return memory{strict: os.Getenv(strictNamed) != "", staging: map[int][]uintptr{},
		stagings: map[uintptr]int{}, live: map[uintptr]int{}, own: pool{map[int][]piece{}},
		handed: pool{map[int][]piece{}}}
}

// lost is memory whose last handle is gone.
type lost struct {
	p     uintptr
	bytes int
}

// block owns a buffer.
type block struct {
	p     uintptr
	bytes int
	host  bool // staging
	freed bool
	from  any // the host's slice of FromHost
	lost  runtime.Cleanup
	far   *farRows
	lent  *region // of Lend
	cache cache
}

// Usage is what is in use, and how much was taken of the card at most.
func (d *Device) Usage() (inUse, peak int64) { return d.memory.inUse.Load(), d.memory.peak.Load() }

// take is n bytes on the card, of the arena, a pool or the driver; 0 where the device failed.
func (d *Device) take(from *pool, n int) uintptr {
	if d.failed() {
		return 0
	}
	size := d.memory.sizeOf(n)
	d.memory.inUse.Add(int64(size))
	if d.memory.large(size) {
		return d.takeLarge(size)
	}
	if p := from.take(size); p != 0 {
		return p
	}
	return d.takeSmall(size)
}

// large reports whether a piece is of the arena. Tests have every piece of the driver, which knows where it ends.
func (m *memory) large(size int) bool { return size >= largePiece && !m.strict }

// takeSmall is memory of the driver.
func (d *Device) takeSmall(size int) (p uintptr) {
	d.bind()
	m := &d.memory
	for try := 0; ; try++ {
		code := call(d.card.alloc, address(&p), uintptr(size), d.stream)
		if code == 0 {
			m.live[p] = size
			m.hold(size)
			return p
		}
		if code != outOfMemory || try == 2 {
			d.check("cuMemAllocAsync", code)
			return 0
		}
		d.makeRoom(try)
	}
}

// makeRoom gives what is free here back to the driver, and looks for what the collector has not yet found.
func (d *Device) makeRoom(try int) {
	m := &d.memory
	if try == 1 {
		runtime.GC()
		m.drain()
	}
	d.sync()
	if d.ahead() {
		d.do("cuStreamSynchronize", d.card.streamSync, d.lane.computes)
	}
	d.trim(m.times + 1)
	d.shrinkArena(0)
}

// hold counts what was taken.
func (m *memory) hold(n int) {
	m.held += int64(n)
	m.peak.Store(max(m.peak.Load(), m.held))
}

// keepFor is how many times the host waits before memory that was not taken again goes back to the driver.
const keepFor = 256

// tidy gives back what was not taken for a while. REQUIRES: nothing is held back, and the stream was waited for.
func (d *Device) tidy() {
	m := &d.memory
	if m.times++; m.times%keepFor == 0 {
		d.trim(m.times - keepFor)
		d.shrinkArena(m.arena.high)
		m.arena.high = 0
	}
}

// trim gives what has been free since before some time back to the driver. REQUIRES: nothing is held back.
func (d *Device) trim(before int) {
	m := &d.memory
	for _, l := range append(m.own.old(before), m.handed.old(before)...) {
		if !d.do("cuMemFreeAsync", d.card.free, l.p, d.stream) {
			return
		}
		delete(m.live, l.p)
		m.held -= int64(l.bytes)
	}
}

// give has n bytes be used by the next that asks.
func (d *Device) give(to *pool, p uintptr, n int) {
	size := d.memory.sizeOf(n)
	d.memory.inUse.Add(-int64(size))
	if d.memory.strict {
		d.libraryCall("cuMemsetD8Async", d.card.fill, uint64(p), 0xff, uint64(size), uint64(d.stream))
	}
	if d.ahead() {
		t := d.lane.fed
		t.freed = append(t.freed, released{to, p, size})
		return
	}
	d.memory.put(to, p, size)
}

// put puts a piece where it came from.
func (m *memory) put(to *pool, p uintptr, size int) {
	if m.large(size) {
		m.arena.give(p, size)
		return
	}
	to.give(p, size, m.times)
}

// drain takes back what the collector has found.
func (m *memory) drain() {
	m.mu.Lock()
	all := m.mu.lost
	m.mu.lost = nil
	m.mu.Unlock()
	for _, l := range all {
		size := m.sizeOf(l.bytes)
		m.inUse.Add(-int64(size))
		m.put(&m.handed, l.p, size)
	}
}

// lose is called by the collector.
func (m *memory) lose(l lost) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.mu.closed {
		m.mu.lost = append(m.mu.lost, l)
	}
}

// pointer is an address on the card, or of the driver's host memory, which Go's collector does not know.
func pointer(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

func none(t DType, rows, cols int) Matrix {
	return tensor.MakeMatrix(tensor.HostBuffer[byte](nil), 0, t, rows, cols, cols)
}

func (d *Device) New(t DType, rows, cols int) Matrix {
	m := d.Scratch(t, rows, cols)
	d.Zero(m)
	return m
}

func (d *Device) Scratch(t DType, rows, cols int) Matrix {
	if rows*cols == 0 {
		return none(t, rows, cols)
	}
	d.enter()
	defer d.leave()
	return d.scratch(t, rows, cols)
}

// scratch is Scratch on the card's thread.
func (d *Device) scratch(t DType, rows, cols int) Matrix {
	n := rows * cols * t.Size()
	if n == 0 {
		return none(t, rows, cols)
	}
	b := &block{p: d.take(&d.memory.own, n), bytes: n}
	if b.p == 0 {
		return tensor.Unbacked(t, rows, cols)
	}
	return tensor.MakeMatrix(tensor.NewBuffer(pointer(b.p), n, false, b), 0, t, rows, cols, cols)
}

func (d *Device) Free(m Matrix) {
	if m.Rows*m.Cols == 0 {
		return
	}
	d.enter()
	defer d.leave()
	d.release(m)
}

// release is Free on the card's thread.
func (d *Device) release(m Matrix) {
	if m.Rows*m.Cols == 0 || m.Unbacked() {
		return
	}
	b, ok := tensor.BufferOf(m).Owner().(*block)
	tensor.Need(ok && !b.freed && b.from == nil && b.far == nil, "cuda: Free of %v, which New did not make, or twice", m)
	b.freed = true
	if b.host {
		d.memory.inUse.Add(-int64(b.bytes))
		d.memory.hold(-b.bytes)
		d.memory.reading = append(d.memory.reading, b)
		return
	}
	if b.lent != nil {
		d.takeBack(b.lent)
		return
	}
	d.give(&d.memory.own, b.p, b.bytes)
}

// collectEvery is how many bytes of FromHost may wait for the collector before it is asked to look.
const collectEvery = 1 << 30

// collect has the collector look for memory of FromHost now and then.
func (d *Device) collect(n int) {
	if d.memory.fresh += int64(n); d.memory.fresh > collectEvery && n < collectEvery {
		d.memory.fresh = 0
		runtime.GC()
		d.memory.drain()
	}
}

// FromHost copies. Its memory is freed when the collector finds that no handle is left.
func (d *Device) FromHost(rows, cols int, host any) Matrix {
	from := hostMatrix(rows, cols, host)
	n := int(from.Bytes())
	if n == 0 {
		return from
	}
	d.enter()
	defer d.leave()
	if !d.ahead() {
		d.collect(n)
	}
	b := &block{p: d.take(&d.memory.handed, n), bytes: n, from: host}
	if b.p == 0 {
		return tensor.Unbacked(from.Type(), rows, cols)
	}
	buf := tensor.NewBuffer(pointer(b.p), n, false, b)
	if d.ahead() { // the lane may use it when no handle is left: it goes when the step is over
		d.lane.fed.blocks = append(d.lane.fed.blocks, b)
	} else {
		b.lost = runtime.AddCleanup(buf, func(l lost) { d.memory.lose(l) }, lost{b.p, n})
	}
	m := tensor.MakeMatrix(buf, 0, from.Type(), rows, cols, cols)
	source := unsafe.Pointer(unsafe.SliceData(tensor.Memory(from)))
	if copied, ok := d.packedCopy(source, n); ok {
		d.queueIn(at(m), pointer(copied), n)
	} else {
		d.copyIn(at(m), source, n)
	}
	runtime.KeepAlive(host)
	return m
}

// Return is for matrices of FromHost what Free is for others.
func (d *Device) Return(m Matrix) {
	if m.Rows*m.Cols == 0 || m.Unbacked() {
		return
	}
	d.enter()
	defer d.leave()
	b, ok := tensor.BufferOf(m).Owner().(*block)
	if ok && b.from == nil {
		d.release(m)
		return
	}
	tensor.Need(ok && !b.freed, "cuda: Return of %v, which FromHost did not make, or twice", m)
	d.unhand(b)
}

// unhand gives the memory of FromHost back.
func (d *Device) unhand(b *block) {
	b.freed = true
	b.lost.Stop()
	d.give(&d.memory.handed, b.p, b.bytes)
}

// hostMatrix is a host slice as a matrix.
func hostMatrix(rows, cols int, host any) Matrix {
	switch h := host.(type) {
	case []float32:
		return tensor.FromSlice(rows, cols, h)
	case []uint16:
		return tensor.FromSlice(rows, cols, h)
	case []uint32:
		return tensor.FromSlice(rows, cols, h)
	case []int64:
		return tensor.FromSlice(rows, cols, h)
	}
	tensor.Need(false, "FromHost of a %T", host)
	return Matrix{}
}

// rounded is a size in whole pieces of 256 bytes.
func rounded(n int) int { return (n + 255) &^ 255 }

// ring is memory of the host that the card reads by itself, through which what is handed over goes: the driver
// would wait for the stream before it reads other memory. It has parts, each with an event that tells when the card has
// read it, so that the host fills one while the card is at those before.
type ring struct {
	p      uintptr
	part   int
	used   int // of the part
	events [ringParts]uintptr
}

// What is larger than a part goes the driver's way.
const (
	ringParts = 4
	ringBytes = 16 << 20 // of a part
)

// isStaging reports whether the host's memory at an address is of Staging.
func (m *memory) isStaging(at uintptr) bool {
	for p, n := range m.stagings {
		if at >= p && at < p+uintptr(n) {
			return true
		}
	}
	return false
}

// reread has staging buffers be used again that the card has read: all before a time that the host has waited for.
func (m *memory) reread() {
	for _, b := range m.reading {
		m.staging[b.bytes] = append(m.staging[b.bytes], b.p)
	}
	clear(m.reading)
	m.reading = m.reading[:0]
}

// through is where bytes of the host can be read by the card when it comes to that: in the ring, or where they are;
// wait: the card has to read them before they change. Staging stays as it is until it is freed.
func (d *Device) through(from unsafe.Pointer, n int) (own unsafe.Pointer, wait bool) {
	r := &d.memory.ring
	switch {
	case d.memory.isStaging(uintptr(from)):
		return from, false
	case n > ringBytes:
		return from, true
	case r.p == 0 && !d.do("cuMemAllocHost", d.card.allocHost, address(&r.p), ringParts*ringBytes):
		return from, true
	}
	if r.used+n > ringBytes {
		d.turn(r)
	}
	to := unsafe.Add(pointer(r.p), r.part*ringBytes+r.used)
	copy(unsafe.Slice((*byte)(to), n), unsafe.Slice((*byte)(from), n))
	r.used += rounded(n)
	return to, false
}

// turn goes on to the ring's next part, when the card has read what was there.
func (d *Device) turn(r *ring) {
	const noTiming = 2
	if r.events[r.part] == 0 {
		d.do("cuEventCreate", d.card.eventCreate, address(&r.events[r.part]), noTiming)
	}
	d.do("cuEventRecord", d.card.eventRecord, r.events[r.part], d.stream)
	r.part, r.used = (r.part+1)%ringParts, 0
	if e := r.events[r.part]; e != 0 {
		d.do("cuEventSynchronize", d.card.eventSync, e)
	}
}

func (r *ring) close(d *Device) {
	if r.p != 0 {
		call(d.card.freeHost, r.p)
	}
	for _, e := range r.events {
		if e != 0 {
			call(d.card.eventDestroy, e)
		}
	}
}

// copyIn queues a copy to the card, and is done with the host's memory when it returns.
func (d *Device) copyIn(to uintptr, from unsafe.Pointer, n int) {
	d.settle()
	own, wait := d.through(from, n)
	if wait {
		defer d.wait()
	}
	d.queueIn(to, own, n)
}

func (d *Device) queueIn(to uintptr, from unsafe.Pointer, n int) {
	defer d.timed("copy in")()
	d.do("cuMemcpyHtoDAsync", d.card.copyIn, to, uintptr(from), uintptr(n), d.stream)
}

// copyOut waits.
func (d *Device) copyOut(to unsafe.Pointer, from uintptr, n int) {
	d.settle()
	d.do("cuMemcpyDtoHAsync", d.card.copyOut, uintptr(to), from, uintptr(n), d.stream)
	d.wait()
}

// copy2D is the driver's CUDA_MEMCPY2D.
type copy2D struct {
	srcX, srcY               uintptr
	srcKind                  uint64
	srcHost, srcCard, srcArr uintptr
	srcPitch                 uintptr
	dstX, dstY               uintptr
	dstKind                  uint64
	dstHost, dstCard, dstArr uintptr
	dstPitch                 uintptr
	bytes, rows              uintptr
}

const kindHost, kindCard = 1, 2

// moveRows copies rows between the host, where they have no gaps, and the card.
func (d *Device) moveRows(m Matrix, host unsafe.Pointer, in bool) {
	size := m.Type().Size()
	row := uintptr(m.Cols * size)
	if m.Contiguous() {
		if n := int(m.Bytes()); in {
			d.copyIn(at(m), host, n)
		} else {
			d.copyOut(host, at(m), n)
		}
		return
	}
	d.settle()
	wait := !in
	if in {
		host, wait = d.through(host, int(m.Bytes()))
	}
	pitch := uintptr(m.Stride() * size)
	c := &copy2D{bytes: row, rows: uintptr(m.Rows)}
	if in {
		c.srcKind, c.srcHost, c.srcPitch, c.dstKind, c.dstCard, c.dstPitch = kindHost, uintptr(host), row, kindCard, at(m), pitch
	} else {
		c.dstKind, c.dstHost, c.dstPitch, c.srcKind, c.srcCard, c.srcPitch = kindHost, uintptr(host), row, kindCard, at(m), pitch
	}
	d.do("cuMemcpy2DAsync", d.card.copyRows, address(c), d.stream)
	runtime.KeepAlive(c)
	if wait {
		d.wait()
	}
}

// hostBytes is memory of the host for the rows of m.
func hostBytes(m Matrix) (Matrix, unsafe.Pointer) {
	b := make([]uint64, (m.Bytes()+7)/8)
	buf := tensor.HostBuffer(b)
	return tensor.MakeMatrix(buf, 0, m.Type(), m.Rows, m.Cols, m.Cols), buf.Addr()
}

func (d *Device) Upload(dst Matrix, host any) {
	if dst.Rows*dst.Cols == 0 {
		return
	}
	d.enter()
	defer d.leave()
	h, p := hostBytes(dst)
	tensor.CopyIn(h, host)
	d.moveRows(dst, p, true)
	runtime.KeepAlive(h)
}

func (d *Device) Download(host any, m Matrix) {
	d.enter()
	defer d.leave()
	if m.Rows*m.Cols == 0 {
		d.sync()
		return
	}
	h, p := hostBytes(m)
	if d.moveRows(m, p, false); !d.failed() {
		tensor.CopyOut(host, h)
	}
}

// Staging is memory of the host that the card reads and writes without the driver's copying it first.
func (d *Device) Staging(bytes int) (Matrix, []byte) {
	d.enter()
	defer d.leave()
	n := 4096
	for n < bytes {
		n *= 2
	}
	var p uintptr
	if free := d.memory.staging[n]; len(free) > 0 {
		p, d.memory.staging[n] = free[len(free)-1], free[:len(free)-1]
	} else {
		d.bind()
		if !d.do("cuMemAllocHost", d.card.allocHost, address(&p), uintptr(n)) {
			return tensor.Unbacked(F64, n/8, 1), make([]byte, bytes)
		}
		d.memory.stagings[p] = n
	}
	d.memory.inUse.Add(int64(n))
	d.memory.hold(n)
	b := &block{p: p, bytes: n, host: true}
	m := tensor.MakeMatrix(tensor.NewBuffer(pointer(p), n, true, b), 0, F64, n/8, 1, 1)
	return m, tensor.Memory(m)[:bytes]
}

// Close waits for the stream and gives all memory back.
func (d *Device) Close() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	call(d.card.contextSet, d.card.context) // errors have been told before, or are beyond repair
	d.LeaveReduction()
	call(d.card.streamSync, d.stream)
	if d.lane.stream != 0 {
		call(d.card.streamSync, d.lane.stream)
	}
	d.closeLane()
	d.profile.write()
	d.memory.mu.Lock()
	d.memory.mu.closed = true
	d.memory.mu.Unlock()
	d.dropGraphs()
	d.link.close(d)
	for p := range d.memory.live {
		call(d.card.free, p, d.stream)
	}
	d.memory.reread()
	d.closeArena()
	for _, free := range d.memory.staging {
		for _, p := range free {
			call(d.card.freeHost, p)
		}
	}
	for _, p := range d.memory.pinned {
		call(d.card.freeHost, p)
	}
	d.memory.ring.close(d)
	if d.blas != nil {
		d.blas.close()
	}
	call(d.card.streamDestroy, d.stream)
	d.card.devices.Add(-1)
}

// copyOfHost is the host's slice that an index or the starts of rows were made of, from where m begins; nil
// where the card made it.
func copyOfHost[T any](m Matrix) []T {
	if m.IsZero() || m.Rows*m.Cols == 0 {
		return nil
	}
	b, ok := tensor.BufferOf(m).Owner().(*block)
	if !ok {
		return nil
	}
	h, ok := b.from.([]T)
	if !ok {
		return nil
	}
	first := tensor.Offset(m) / m.Type().Size()
	return slices.Clip(h[first : first+m.Rows])
}

package memory

import (
	"runtime"
	"slices"
	"unsafe"

	"starling/tensor"
	"starling/tensor/cuda/driver"
)

// Block owns a buffer.
type Block struct {
	// Known is what operations have found out about the host's slice that it was made of.
	Known any

	p      uintptr
	bytes  int
	host   bool // staging
	pinned bool // on the host for good
	freed  bool
	from   any // the host's slice of FromHost
	lost   runtime.Cleanup
	lent   *Region // of Lend
	within *Block  // it is a part of, which alone goes back
	gone   bool    // evicted: it has no memory on the GPU
	away   uintptr // where it is on the host then; 0: where the caller of Evict has put it
}

// BlockOf is the block of a matrix; nil where it has none.
func BlockOf(m tensor.Matrix) *Block {
	if m.IsZero() {
		return nil
	}
	b, _ := tensor.BufferOf(m).Owner().(*Block)
	return b
}

// At is the address of a matrix on the GPU; 0 of none.
func At(m tensor.Matrix) uintptr {
	if m.IsZero() {
		return 0
	}
	return uintptr(tensor.Address(m))
}

func none(t tensor.DType, rows, cols int) tensor.Matrix {
	return tensor.MakeMatrix(tensor.HostBuffer[byte](nil), 0, t, rows, cols, cols)
}

func (mem *Memory) Scratch(t tensor.DType, rows, cols int) tensor.Matrix {
	if rows*cols == 0 {
		return none(t, rows, cols)
	}
	defer mem.Enter()()
	return mem.Piece(t, rows, cols)
}

// Piece is Scratch on the GPU's thread.
func (mem *Memory) Piece(t tensor.DType, rows, cols int) tensor.Matrix {
	n := rows * cols * t.Size()
	if n == 0 {
		return none(t, rows, cols)
	}
	b := &Block{p: mem.take(&mem.own, n), bytes: n}
	if b.p == 0 {
		return tensor.Unbacked(t, rows, cols)
	}
	return tensor.MakeMatrix(tensor.NewBuffer(driver.Pointer(b.p), n, false, b), 0, t, rows, cols, cols)
}

func (mem *Memory) Free(m tensor.Matrix) {
	if m.Rows*m.Cols == 0 {
		return
	}
	defer mem.Enter()()
	mem.Release(m)
}

// Release is Free on the GPU's thread.
func (mem *Memory) Release(m tensor.Matrix) {
	if m.Rows*m.Cols == 0 || m.Unbacked() {
		return
	}
	b, ok := tensor.BufferOf(m).Owner().(*Block)
	tensor.Need(ok && !b.freed && b.from == nil && !b.pinned, "cuda: Free of %v, which New did not make, or twice", m)
	b.freed = true
	if b.gone {
		mem.forget(b)
		return
	}
	if b.host {
		mem.inUse.Add(-int64(b.bytes))
		mem.hold(-b.bytes)
		mem.reading = append(mem.reading, b)
		return
	}
	if b.lent != nil {
		mem.takeBack(b.lent)
		return
	}
	mem.give(&mem.own, b.p, b.bytes)
}

// collectEvery is how many bytes of FromHost may wait for the collector before it is asked to look.
const collectEvery = 1 << 30

// collect has the collector look for memory of FromHost now and then.
func (mem *Memory) collect(n int) {
	if mem.fresh += int64(n); mem.fresh > collectEvery && n < collectEvery {
		mem.fresh = 0
		runtime.GC()
		mem.drain()
	}
}

// FromHost copies. Its memory is freed when the collector finds that no handle is left.
func (mem *Memory) FromHost(rows, cols int, host any) tensor.Matrix {
	from := tensor.FromAny(rows, cols, host)
	n := int(from.Bytes())
	if n == 0 {
		return from
	}
	defer mem.Enter()()
	if !mem.run.Aside() {
		mem.collect(n)
	}
	source := unsafe.Pointer(unsafe.SliceData(tensor.Memory(from)))
	b := mem.packedCopy(source, n)
	copied := b != nil
	if !copied {
		b = &Block{p: mem.take(&mem.handed, n), bytes: n}
	}
	if b.from = host; b.p == 0 {
		return tensor.Unbacked(from.Type(), rows, cols)
	}
	buf := tensor.NewBuffer(driver.Pointer(b.p), n, false, b)
	if mem.run.Aside() { // the lane may use it when no handle is left: it goes when the step is over
		mem.lane.fed.blocks = append(mem.lane.fed.blocks, b)
	} else {
		b.lost = runtime.AddCleanup(buf, func(l lost) { mem.lose(l) }, lost{b.p, n})
	}
	m := tensor.MakeMatrix(buf, 0, from.Type(), rows, cols, cols)
	if !copied {
		mem.CopyIn(At(m), source, n)
	}
	runtime.KeepAlive(host)
	return m
}

// Return is for matrices of FromHost what Free is for others.
func (mem *Memory) Return(m tensor.Matrix) {
	if m.Rows*m.Cols == 0 || m.Unbacked() {
		return
	}
	defer mem.Enter()()
	b, ok := tensor.BufferOf(m).Owner().(*Block)
	if ok && b.from == nil {
		mem.Release(m)
		return
	}
	tensor.Need(ok && !b.freed, "cuda: Return of %v, which FromHost did not make, or twice", m)
	mem.unhand(b)
}

// unhand gives the memory of FromHost back.
func (mem *Memory) unhand(b *Block) {
	b.freed = true
	b.lost.Stop()
	if b.within == nil {
		mem.give(&mem.handed, b.p, b.bytes)
	}
}

// HostCopy is the host's slice that an index or the starts of rows were made of, from where m begins; nil
// where the GPU made it.
func HostCopy[T any](m tensor.Matrix) []T {
	if m.IsZero() || m.Rows*m.Cols == 0 {
		return nil
	}
	b, ok := tensor.BufferOf(m).Owner().(*Block)
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

// List has HostCopy of a matrix that the GPU made be a list, which is a copy of it.
func (b *Block) List(list any) { b.from = list }

// Staging is memory of the host that the GPU reads and writes without the driver's copying it first.
func (mem *Memory) Staging(bytes int) (tensor.Matrix, []byte) {
	defer mem.Enter()()
	n := 4096
	for n < bytes {
		n *= 2
	}
	var p uintptr
	if free := mem.staging[n]; len(free) > 0 {
		p, mem.staging[n] = free[len(free)-1], free[:len(free)-1]
	} else {
		mem.run.Bind()
		if !mem.run.Do("cuMemAllocHost", mem.run.GPU.AllocHost, driver.Address(&p), uintptr(n)) {
			return tensor.Unbacked(tensor.F64, n/8, 1), make([]byte, bytes)
		}
		mem.stagings[p] = n
	}
	mem.inUse.Add(int64(n))
	mem.hold(n)
	b := &Block{p: p, bytes: n, host: true}
	m := tensor.MakeMatrix(tensor.NewBuffer(driver.Pointer(p), n, true, b), 0, tensor.F64, n/8, 1, 1)
	return m, tensor.Memory(m)[:bytes]
}

// isStaging reports whether the host's memory at an address is of Staging.
func (mem *Memory) isStaging(at uintptr) bool {
	for p, n := range mem.stagings {
		if at >= p && at < p+uintptr(n) {
			return true
		}
	}
	return false
}

// reread has staging buffers be used again that the GPU has read: all before a time that the host has waited for.
func (mem *Memory) reread() {
	for _, b := range mem.reading {
		mem.staging[b.bytes] = append(mem.staging[b.bytes], b.p)
	}
	clear(mem.reading)
	mem.reading = mem.reading[:0]
}

// Pinned is a matrix in memory of the host that the GPU reads by itself. It is not freed.
func (mem *Memory) Pinned(t tensor.DType, rows, cols int) tensor.Matrix {
	n := rows * cols * t.Size()
	if n == 0 {
		return none(t, rows, cols)
	}
	mem.run.Bind()
	var p uintptr
	if !mem.run.Do("cuMemAllocHost", mem.run.GPU.AllocHost, driver.Address(&p), uintptr(n)) {
		return tensor.Unbacked(t, rows, cols)
	}
	mem.pinned = append(mem.pinned, p)
	b := &Block{p: p, bytes: n, host: true, pinned: true}
	return tensor.MakeMatrix(tensor.NewBuffer(driver.Pointer(p), n, true, b), 0, t, rows, cols, cols)
}

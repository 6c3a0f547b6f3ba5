package dataset

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"unsafe"

	"starling/graph"
)

// arrayStream reads the numbers of an npy array in order, a chunk at a time.
type arrayStream struct {
	r     io.Reader
	descr string // without the byte order
	shape []int64
	left  int64 // numbers not yet read
	buf   []byte
	close func() error
}

// pieceNumbers is how many numbers are read at a time.
const pieceNumbers = 1 << 16

// newArrayStream reads the header of an npy of size bytes.
func newArrayStream(r io.Reader, size int64) (*arrayStream, error) {
	h, err := readHeader(r, size)
	if err != nil {
		return nil, err
	}
	a := &arrayStream{r: r, descr: h.Descr[1:], shape: h.Shape, left: h.Elements()}
	if itemSizes[a.descr] == 0 {
		return nil, fmt.Errorf("an array of %q", h.Descr)
	}
	return a, nil
}

// openArray streams an npy file.
func openArray(path string) (*arrayStream, error) {
	const fix = "save it again with numpy.save, or download it again"
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil, badFile(path, "", "no such file", "an npy array", "check the folder")
	}
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s", info.Mode().Type())
	}
	var a *arrayStream
	if err == nil {
		a, err = newArrayStream(f, info.Size())
	}
	if err != nil {
		f.Close()
		return nil, because(path, "", err, "an npy of numbers", fix)
	}
	a.close = f.Close
	return a, nil
}

// Close closes the underlying file.
func (a *arrayStream) Close() error {
	if a.close == nil {
		return nil
	}
	return a.close()
}

// bytes reads n numbers, undecoded; the slice is good until the next call.
func (a *arrayStream) bytes(n int) ([]byte, error) {
	size := n * itemSizes[a.descr]
	if cap(a.buf) < size {
		a.buf = make([]byte, size)
	}
	if int64(n) > a.left {
		return nil, io.ErrUnexpectedEOF
	}
	if _, err := io.ReadFull(a.r, a.buf[:size]); err != nil {
		return nil, err
	}
	a.left -= int64(n)
	return a.buf[:size], nil
}

// end reads to the end of the file, where a zip archive compares its checksum.
func (a *arrayStream) end() error {
	_, err := io.Copy(io.Discard, a.r)
	return err
}

// indices reads len(out) numbers that are vertices or edges, a few at a time: they
// are still in the L1 cache when they are narrowed.
func (a *arrayStream) indices(out []uint32) error {
	const few = 1 << 12
	for len(out) > 0 {
		n := min(few, len(out))
		b, err := a.bytes(n)
		if err == nil {
			err = indicesOf(a.descr, b, out[:n])
		}
		if err != nil {
			return err
		}
		out = out[n:]
	}
	return nil
}

func indicesOf(descr string, b []byte, out []uint32) error {
	wide := uint64(0)
	switch descr {
	case "i8", "u8":
		for i, x := range unsafe.Slice((*uint64)(unsafe.Pointer(&b[0])), len(out)) {
			wide |= x
			out[i] = uint32(x)
		}
	case "i4":
		copy(bytesOf(out), b)
		for _, x := range out {
			wide |= uint64(x) << 1 // a negative one shows above
		}
	case "u4":
		copy(bytesOf(out), b)
	default:
		wide = 1 << 32
	}
	if wide>>32 == 0 {
		return nil
	}
	return eachInteger(descr, b, func(i int, x int64) error {
		if x < 0 || x > math.MaxUint32 {
			return fmt.Errorf("%d where an index belongs", x)
		}
		out[i] = uint32(x)
		return nil
	})
}

// reals reads len(out) numbers as float32.
func (a *arrayStream) reals(out []float32) error {
	b, err := a.bytes(len(out))
	if err != nil {
		return err
	}
	switch a.descr {
	case "f4":
		copy(bytesOf(out), b)
		return nil
	case "f8":
		for i := range out {
			out[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(b[8*i:])))
		}
		return nil
	}
	return eachReal(a.descr, b, func(i int, x float64) { out[i] = float32(x) })
}

// rowsOf streams a two-dimensional array as features of n vertices. open is called
// for every pass.
func rowsOf(file, field string, n int, open func() (*arrayStream, error)) (*rowFeed, error) {
	a, err := open()
	if err != nil {
		return nil, err
	}
	a.Close()
	if len(a.shape) != 2 || a.shape[0] != int64(n) || a.shape[1] < 1 || a.shape[1] > math.MaxInt32 {
		return nil, badFile(file, field, fmt.Sprintf("shape %v", a.shape), fmt.Sprintf("one row per vertex (%d)", n),
			"the files are not of one dataset: download them again")
	}
	cols := int(a.shape[1])
	return &rowFeed{file: file, rows: n, cols: cols, each: func(put func(x []float32) error) error {
		a, err := open()
		if err != nil {
			return err
		}
		defer a.Close()
		x := make([]float32, max(1, pieceNumbers/cols)*cols)
		for a.left > 0 {
			x = x[:min(int64(len(x)), a.left)]
			if err := a.reals(x); err != nil {
				return badFile(file, field, graph.Sentence(err.Error()), "a whole array of numbers", "download it again")
			}
			if err := put(x); err != nil {
				return err
			}
		}
		if err := a.end(); err != nil {
			return badFile(file, field, graph.Sentence(err.Error()), "a whole array of numbers", "download it again")
		}
		return nil
	}}, nil
}

// stream opens an array inside an npz without holding it.
func (z *npz) stream(name string) (*arrayStream, error) {
	r, size, err := z.open(name)
	if err != nil {
		return nil, err
	}
	a, err := newArrayStream(r, size)
	if err != nil {
		r.Close()
		return nil, z.bad(name, graph.Sentence(err.Error()), "an npy array of numbers")
	}
	a.close = r.Close
	return a, nil
}

// pieces reads an index array a chunk at a time, prefetched and decoded on a goroutine
// of its own.
type pieces struct {
	ready, free chan []uint32
	stop        chan struct{}
	err         error
}

// newPieces starts to make count numbers: fill makes each piece, and end, if there is one, follows the last.
func newPieces(count int64, fill func(x []uint32) error, end func() error) *pieces {
	p := &pieces{ready: make(chan []uint32, 2), free: make(chan []uint32, 4), stop: make(chan struct{})}
	for range cap(p.free) {
		p.free <- make([]uint32, 0, min(count, pieceNumbers))
	}
	go func() {
		defer close(p.ready)
		for count > 0 {
			var x []uint32
			select {
			case x = <-p.free:
			case <-p.stop:
				return
			}
			x = x[:min(count, pieceNumbers)]
			if p.err = fill(x); p.err != nil {
				return
			}
			count -= int64(len(x))
			select {
			case p.ready <- x:
			case <-p.stop:
				return
			}
		}
		if end != nil {
			p.err = end()
		}
	}()
	return p
}

// prefetch starts to read count numbers of a. At the end the checksum is compared if
// last is set.
func prefetch(a *arrayStream, count int64, last bool) *pieces {
	if last {
		return newPieces(count, a.indices, a.end)
	}
	return newPieces(count, a.indices, nil)
}

// next is the following piece; nil at the end or after an error.
func (p *pieces) next() ([]uint32, error) {
	x, ok := <-p.ready
	if !ok {
		return nil, p.err
	}
	return x, nil
}

// done ends the goroutine.
func (p *pieces) done() {
	close(p.stop)
	for range p.ready {
	}
}

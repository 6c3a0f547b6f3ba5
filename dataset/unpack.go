package dataset

import "io"

// unpacked reads what inflate unpacks ahead on a goroutine of its own, so that what
// is made of the bytes, and their checksum, cost the one that unpacks nothing.
type unpacked struct {
	source io.Reader
	ready  chan piece
	free   chan []byte // buffers of inflateOut
	stop   chan struct{}
	now    piece
	rest   []byte // of now
}

// piece is a buffer of which everything behind the history is new.
type piece struct {
	buf []byte
	end int
	err error // why there is nothing after it
}

// newInflate reads what is packed in r. The reader must be closed.
func newInflate(r io.Reader) io.ReadCloser { return &unpacked{source: r} }

// start begins to unpack: arrays of which nobody reads a byte cost nothing.
func (u *unpacked) start() {
	u.ready, u.free, u.stop = make(chan piece, 2), make(chan []byte, 4), make(chan struct{})
	for range cap(u.free) {
		u.free <- nil
	}
	go u.unpack(u.stop)
}

func (u *unpacked) unpack(stop <-chan struct{}) {
	f := &inflate{source: u.source, in: make([]byte, inflateIn+inflatePad)}
	for err := error(nil); err == nil; {
		var buf []byte
		select {
		case buf = <-u.free:
		case <-stop:
			return
		}
		if buf == nil {
			buf = make([]byte, inflateOut)
		}
		f.turn(buf)
		err = f.more()
		select {
		case u.ready <- piece{f.out, f.filled, err}:
		case <-stop:
			return
		}
	}
}

// Read implements io.Reader.
func (u *unpacked) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	if u.ready == nil {
		u.start()
	}
	for len(u.rest) == 0 {
		if u.now.err != nil {
			return 0, u.now.err
		}
		if u.now.buf != nil {
			u.free <- u.now.buf
		}
		u.now = <-u.ready
		u.rest = u.now.buf[history:u.now.end]
	}
	n := copy(p, u.rest)
	u.rest = u.rest[n:]
	return n, nil
}

// Close ends the goroutine. Nothing can be read afterwards.
func (u *unpacked) Close() error {
	if u.stop != nil {
		close(u.stop)
		u.stop = nil
	}
	return nil
}

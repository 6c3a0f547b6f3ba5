package tcp

import (
	"io"
	"net"
)

// reader reads frames from a connection: small ones many at a time through a
// buffer, large chunks straight to where they belong.
type reader struct {
	conn net.Conn
	// both reads into two buffers by one system call, where that can be done: the
	// rest of a chunk, and the header that follows it.
	both func(first, second []byte) (int, error)
	buf  [16 << 10]byte
	r, w int
}

func (r *reader) open(conn net.Conn) {
	r.conn, r.both = conn, readBoth(conn)
}

// take returns the next n bytes, n at most the buffer's size, until the next call.
func (r *reader) take(n int) ([]byte, error) {
	if r.w-r.r < n {
		r.w = copy(r.buf[:], r.buf[r.r:r.w])
		r.r = 0
		m, err := io.ReadAtLeast(r.conn, r.buf[r.w:], n-r.w)
		r.w += m
		if err != nil {
			return nil, err
		}
	}
	b := r.buf[r.r : r.r+n]
	r.r += n
	return b, nil
}

// read fills b.
func (r *reader) read(b []byte) error {
	n := copy(b, r.buf[r.r:r.w])
	r.r += n
	b = b[n:]
	if r.both == nil {
		_, err := io.ReadFull(r.conn, b)
		return err
	}
	for len(b) > 0 {
		n, err := r.both(b, r.buf[:frameHead])
		if err != nil {
			return err
		}
		if n > len(b) {
			r.r, r.w = 0, n-len(b)
		}
		b = b[min(n, len(b)):]
	}
	return nil
}

// skip passes over n bytes.
func (r *reader) skip(n int) error {
	for n > 0 {
		m := min(n, len(r.buf))
		if _, err := r.take(m); err != nil {
			return err
		}
		n -= m
	}
	return nil
}

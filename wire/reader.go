package wire

import (
	"io"
	"net"
)

// reader reads frames from a connection: small ones many at a time through a
// buffer, large chunks straight to where they belong.
type reader struct {
	conn net.Conn
	buf  [16 << 10]byte
	r, w int
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
	if n == len(b) {
		return nil
	}
	_, err := io.ReadFull(r.conn, b[n:])
	return err
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

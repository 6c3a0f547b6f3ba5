package rows

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// request is a piece of a file to be read, or written from buf. Only need bytes must be there: what is beyond may be
// behind the end of the file.
type request struct {
	file  *os.File
	at    int64
	buf   []byte
	need  int
	write bool

	got  int
	err  error
	done bool
}

// engine does requests, several at a time. It is used by one goroutine.
type engine interface {
	// start begins a request, which must stay where it is until it is done.
	start(r *request) error
	// wait returns when a request has become done, of those that were started.
	wait() error
	// close ends all that is under way.
	close() error
}

// depth is the number of requests that are under way at a time.
const depth = 32

// errCut is of a file that ends before a row does.
var errCut = errors.New("the file was cut off while it was in use")

// again notes what a request has done so far and reports whether the rest of it must be started; if not, it is
// done. n is what the system returned.
func (r *request) again(n int, err error) bool {
	switch {
	case err != nil:
		r.err = err
	case n == 0 && !r.write:
		r.err = errCut
	case n == 0:
		r.err = io.ErrShortWrite
	case r.got+n >= r.need:
		r.got += n
	default:
		// Past the page cache, requests begin at blocks.
		next := (r.got + n) / block * block
		if next == r.got {
			r.err = errCut
			break
		}
		r.got = next
		return true
	}
	return false
}

// failure is why a request failed, with the name of its file.
func (r *request) failure() error {
	if r.err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", r.file.Name(), r.err)
}

// finish waits for a request.
func finish(e engine, r *request) error {
	for !r.done {
		if err := e.wait(); err != nil {
			return err
		}
	}
	return r.failure()
}

// newEngine is io_uring where the system has it, else threads.
func newEngine() engine {
	if r, err := newRing(); err == nil {
		return r
	}
	return newPool()
}

// pool does requests on goroutines.
type pool struct {
	work, ready chan *request
	running     int
}

func newPool() engine {
	p := &pool{work: make(chan *request, 4*depth), ready: make(chan *request, 4*depth)}
	for range depth / 2 {
		go func() {
			for r := range p.work {
				r.all()
				p.ready <- r
			}
		}()
	}
	return p
}

// all does a request. The goroutine that waits says that it is done.
func (r *request) all() {
	for {
		n, err := 0, error(nil)
		if r.write {
			n, err = r.file.WriteAt(r.buf[r.got:], r.at+int64(r.got))
		} else {
			n, err = r.file.ReadAt(r.buf[r.got:], r.at+int64(r.got))
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		if !r.again(n, err) {
			return
		}
	}
}

func (p *pool) start(r *request) error {
	for p.running == cap(p.work) {
		if err := p.wait(); err != nil {
			return err
		}
	}
	p.running++
	p.work <- r
	return nil
}

func (p *pool) wait() error {
	r := <-p.ready
	p.running--
	r.done = true
	return nil
}

func (p *pool) close() error {
	for p.running > 0 {
		_ = p.wait()
	}
	close(p.work)
	return nil
}

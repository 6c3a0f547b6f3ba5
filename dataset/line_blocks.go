package dataset

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"sync"

	"starling/dataset/table"
)

// lineBlocks reads a text file, compressed or not, in blocks of whole lines. parse is
// called on all cores; its results are passed to take in the order of the file. An error of
// parse has the line within its block.
func lineBlocks[T any](path string, longest int, opt ImportOptions, parse func(data []byte) (T, *lineError),
	take func(x T) error) error {
	in, err := table.OpenText(path)
	if err != nil {
		return err
	}
	defer in.Close()
	b := blocks{path: path, in: in, longest: longest}
	q := newSequence()
	var reading sync.Mutex
	var lines int64
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			var buf []byte
			for more := true; more; {
				reading.Lock()
				k, data, err := b.next(buf)
				opt.report("read "+baseName(path), b.read, 0)
				reading.Unlock()
				var x T
				var bad *lineError
				if err == nil && data != nil {
					x, bad = parse(data)
				}
				more = q.do(k, func() error {
					if err == nil && bad != nil {
						err = bad.at(path, lines)
					}
					if err != nil || data == nil {
						return err
					}
					lines += int64(bytes.Count(data, newline))
					return take(x)
				}) && data != nil
				buf = data
			}
		})
	}
	wg.Wait()
	return q.err
}

// at is the error of a line of a file, after the lines before its block.
func (e *lineError) at(path string, before int64) error {
	if e.err != nil {
		return e.err
	}
	return badFile(path, fmt.Sprintf("line %d", before+e.line), e.found, e.want,
		"correct the line, or download the file again")
}

// sequence runs numbered steps in order, from any goroutine, until one fails.
type sequence struct {
	mu   sync.Mutex
	turn *sync.Cond
	next int64
	err  error
}

func newSequence() *sequence {
	s := &sequence{}
	s.turn = sync.NewCond(&s.mu)
	return s
}

// do waits for the steps before k, then runs f; it is false after an error of any step.
func (s *sequence) do(k int64, f func() error) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.next != k && s.err == nil {
		s.turn.Wait()
	}
	if s.err == nil {
		s.err = f()
	}
	s.next++
	s.turn.Broadcast()
	return s.err == nil
}

// blocks splits a stream at line ends.
type blocks struct {
	path    string
	in      io.Reader
	longest int
	carry   []byte
	count   int64
	read    int64
	ended   bool
}

// next is the following block and its number; nil at the end.
func (b *blocks) next(buf []byte) (k int64, data []byte, err error) {
	k = b.count
	b.count++
	if b.ended {
		return k, nil, nil
	}
	if cap(buf) < blockBytes+b.longest {
		buf = make([]byte, 0, blockBytes+b.longest)
	}
	buf = append(buf[:0], b.carry...)
	at := len(buf)
	n, err := io.ReadFull(b.in, buf[at:at+blockBytes])
	buf = buf[:at+n]
	b.read += int64(n)
	b.ended = err == io.EOF || err == io.ErrUnexpectedEOF
	if err != nil && !b.ended {
		b.ended = true
		return k, nil, err
	}
	end := len(buf)
	if !b.ended {
		end = bytes.LastIndexByte(buf, '\n') + 1
	}
	if len(buf)-end > b.longest {
		b.ended = true
		return k, nil, badFile(b.path, "", fmt.Sprintf("a line of more than %d bytes", b.longest), "lines of a table",
			"check that this is the right file")
	}
	b.carry = append(b.carry[:0], buf[end:]...)
	if end == 0 && b.ended {
		return k, nil, nil
	}
	return k, buf[:end], nil
}

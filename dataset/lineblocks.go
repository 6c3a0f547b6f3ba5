package dataset

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"sync"
)

// lineBlocks reads a text file, packed or not, in blocks of whole lines. parse is
// called on all cores; what it makes of a block goes to take in the order of the file.
// A parse that fails says at which line of its block.
func lineBlocks[T any](path string, longest int, opt ImportOptions, parse func(data []byte) (T, *lineError), take func(x T) error) error {
	in, err := openInput(path)
	if err != nil {
		return err
	}
	defer in.Close()
	b := blocks{path: path, in: in, longest: longest}
	var reading, taking sync.Mutex
	turn := sync.NewCond(&taking)
	var next, lines int64
	var failed error
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			var buf []byte
			for {
				reading.Lock()
				k, data, err := b.next(buf)
				opt.report("read "+baseName(path), b.read, 0)
				reading.Unlock()
				var x T
				var bad *lineError
				if err == nil && data != nil {
					x, bad = parse(data)
				}
				taking.Lock()
				for next != k && failed == nil {
					turn.Wait()
				}
				switch {
				case failed != nil:
				case err != nil:
					failed = err
				case bad != nil && bad.err != nil:
					failed = bad.err
				case bad != nil:
					failed = badFile(path, fmt.Sprintf("line %d", lines+bad.line), bad.found, bad.want, "correct the line, or download the file again")
				case data != nil:
					lines += int64(bytes.Count(data, newline))
					failed = take(x)
				}
				next++
				stop := failed != nil || data == nil
				turn.Broadcast()
				taking.Unlock()
				if stop {
					return
				}
				buf = data
			}
		})
	}
	wg.Wait()
	return failed
}

// blocks cuts a stream at line ends.
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
		return k, nil, badFile(b.path, "", fmt.Sprintf("a line of more than %d bytes", b.longest), "lines of a table", "check that this is the right file")
	}
	b.carry = append(b.carry[:0], buf[end:]...)
	if end == 0 && b.ended {
		return k, nil, nil
	}
	return k, buf[:end], nil
}

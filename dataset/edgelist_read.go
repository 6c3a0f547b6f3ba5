package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"strconv"
	"sync"
	"unsafe"

	"starling/dataset/table"
)

const (
	blockBytes = 1 << 20
	maxLine    = 1 << 16
)

// block is a range of whole lines of the file, and the edges in it, until
// they are spilled.
type block struct {
	data     []byte
	index    int
	line     int64 // lines in it
	comments int64 // lines after its first edge that are taken for comments
	headers  int64 // lines after the first that are the header again
	src, dst []uint32
	weights  []float32
	at       int64 // their position in the file
	edges    int
	err      *lineError
}

// lineError is a bad line, numbered within its block.
type lineError struct {
	line        int64
	found, want string
	err         error // errNames instead, when the ids are not numbers
}

// errNames tells that ids must be read as names.
var errNames = errors.New("ids are names")

// readEdges splits the file into blocks, parses them on all cores and spills their
// edges.
func readEdges(path string, lay layout, opt ImportOptions, parse func(*block, layout, bool)) (*edges, error) {
	in, err := table.OpenText(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	e := &edges{weighted: opt.Weights}
	if e.file, err = opt.newScratch(); err != nil {
		return nil, err
	}
	jobs, free := make(chan *block), make(chan []byte, 2*runtime.GOMAXPROCS(0))
	for range cap(free) {
		free <- nil
	}
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			var buffer block
			for b := range jobs {
				b.src, b.dst, b.weights = buffer.src[:0], buffer.dst[:0], buffer.weights[:0]
				parse(b, lay, opt.Weights)
				if e.put(b); b.err != nil {
					e.failed.Store(true)
				}
				buffer = *b
				buf := b.data
				b.data, b.src, b.dst, b.weights = nil, nil, nil, nil
				free <- buf
			}
		})
	}
	err = e.split(path, in, lay, opt.Progress, jobs, free)
	close(jobs)
	wg.Wait()
	if err == nil {
		err = e.join(path)
	}
	if err != nil {
		e.Close()
		return nil, err
	}
	return e, nil
}

// split reads blocks of whole lines and sends them to jobs.
func (e *edges) split(path string, in io.Reader, lay layout, progress Progress, jobs chan<- *block,
	free <-chan []byte) error {
	var carry []byte
	var read int64
	for {
		buf := <-free
		if buf == nil {
			buf = make([]byte, 0, blockBytes+maxLine)
		}
		buf = append(buf[:0], carry...)
		at := len(buf)
		n, err := io.ReadFull(in, buf[at:at+blockBytes])
		buf = buf[:at+n]
		read += int64(n)
		ended := err == io.EOF || err == io.ErrUnexpectedEOF
		if err != nil && !ended {
			return err
		}
		end := len(buf)
		if !ended {
			end = bytes.LastIndexByte(buf, '\n') + 1
		}
		if len(buf)-end > maxLine {
			return badFile(path, "", fmt.Sprintf("a line of more than %d bytes", maxLine),
				"a source and a target per line", "this is no edge list")
		}
		carry = append(carry[:0], buf[end:]...)
		b := &block{data: buf[:end], index: len(e.blocks)}
		e.blocks = append(e.blocks, b)
		jobs <- b
		if progress != nil {
			progress("read edges", read, 0)
		}
		if ended || e.failed.Load() { // an earlier block has the error
			return nil
		}
	}
}

// join counts the edges of all blocks and reports the first bad line.
func (e *edges) join(path string) error {
	var lines int64
	for _, b := range e.blocks {
		if b.err != nil && b.err.err != nil {
			return b.err.err
		}
		if b.err != nil {
			return badFile(path, fmt.Sprintf("line %d", lines+b.err.line), b.err.found, b.err.want,
				"correct or remove the line")
		}
		lines += b.line
		e.headers += b.headers
		e.total += int64(b.edges)
		e.comments += b.comments
	}
	return nil
}

// eachLine calls f for every line that holds an edge, until one is bad.
func (b *block) eachLine(lay layout, weighted bool, f func(u, v []byte) error) {
	skip := 0
	if b.index == 0 {
		skip = lay.skip
	}
	edges := 0
	for rest := b.data; len(rest) > 0; {
		line, more, _ := bytes.Cut(rest, newline)
		rest = more
		b.line++
		if skip == 0 && lay.isHeader(line) {
			b.headers++
			continue
		}
		if u, v, ok := lay.plain(line); ok && skip == 0 && !weighted {
			edges++
			if err := f(u, v); err != nil {
				b.err = &lineError{err: err}
				return
			}
			continue
		}
		line = lay.trim(line)
		if bare := bytes.TrimSpace(line); comment(bare) {
			if len(bare) > 0 && (edges > 0 || b.index > 0) {
				b.comments++
			}
			continue
		}
		if skip > 0 {
			skip--
			continue
		}
		edges++
		u, v, tail, torn := lay.edge(line)
		switch {
		case torn:
			b.fail(line, "quotes that end where the field does, on the same line")
			return
		case len(u) == 0 || len(v) == 0:
			b.fail(line, "a source and a target")
			return
		}
		if weighted && !b.weight(lay, line, tail) {
			return
		}
		if err := f(u, v); err != nil {
			b.err = &lineError{err: err}
			return
		}
	}
}

// isHeader tells whether a line is the header again, as in concatenated files.
func (l layout) isHeader(line []byte) bool {
	if l.skip == 0 || len(line) < len(l.header) || len(line) > len(l.header)+len(table.ByteOrderMark)+1 {
		return false
	}
	return string(bytes.TrimRight(bytes.TrimPrefix(line, []byte(table.ByteOrderMark)), "\r")) == l.header
}

var newline = []byte{'\n'}

func (b *block) fail(line []byte, want string) {
	b.err = &lineError{line: b.line, found: fmt.Sprintf("%.60q", line), want: want}
}

func (b *block) weight(lay layout, line, tail []byte) bool {
	field, _ := lay.next(tail)
	w, err := strconv.ParseFloat(text(field), 32)
	if err != nil || math.IsNaN(w) || math.IsInf(w, 0) {
		b.fail(line, fmt.Sprintf("a finite weight in column %d", lay.weightColumn()+1))
		return false
	}
	if w < 0 && !lay.negative {
		b.fail(line, fmt.Sprintf("a weight of 0 or more in column %d: gcn divides by the root of their sum; "+
			"--negative-weights keeps them for models that do not", lay.weightColumn()+1))
		return false
	}
	b.weights = append(b.weights, float32(w))
	return true
}

func (l layout) weightColumn() int {
	if l.at == nil {
		return 2
	}
	return l.at[2]
}

// text views bytes as a string for a call that does not keep it.
func text(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// parseNumbers reads ids that are whole numbers below 2^32, and adds each to ids.
func parseNumbers(ids *ranks) func(*block, layout, bool) {
	return func(b *block, lay layout, weighted bool) {
		if !weighted && b.plain(lay) {
			ids.add(b.src)
			ids.add(b.dst)
			return
		}
		b.src, b.dst, b.line = b.src[:0], b.dst[:0], 0
		b.eachLine(lay, weighted, func(u, v []byte) error {
			x, ok1 := smallNumber(u)
			y, ok2 := smallNumber(v)
			if !ok1 || !ok2 {
				return errNames
			}
			b.src, b.dst = append(b.src, x), append(b.dst, y)
			return nil
		})
		ids.add(b.src)
		ids.add(b.dst)
	}
}

// plain parses a block of exactly two numbers per line with one separator
// between, as in most large files; false if there is anything else. It is about
// three times as fast as eachLine, which trims, unquotes and counts.
func (b *block) plain(lay layout) bool {
	if b.index == 0 || lay.columns != 2 || lay.at != nil {
		return false // the first block may have comments and a header
	}
	delim := lay.delim
	if delim == 0 {
		delim = ' '
	}
	data := b.data
	for at := 0; at < len(data); {
		x, y := uint64(0), uint64(0)
		from := at
		for at < len(data) && data[at]-'0' <= 9 {
			x = x*10 + uint64(data[at]-'0')
			at++
		}
		if at == from || at-from > 10 || at >= len(data) || data[at] != delim {
			return false
		}
		at++
		from = at
		for at < len(data) && data[at]-'0' <= 9 {
			y = y*10 + uint64(data[at]-'0')
			at++
		}
		if at == from || at-from > 10 || max(x, y) >= math.MaxUint32 {
			return false
		}
		if at < len(data) && data[at] == '\r' {
			at++
		}
		if at < len(data) && data[at] != '\n' {
			return false
		}
		at++
		b.line++
		b.src, b.dst = append(b.src, uint32(x)), append(b.dst, uint32(y))
	}
	return true
}

func smallNumber(s []byte) (uint32, bool) {
	var x uint64
	if len(s) == 0 || len(s) > 10 {
		return 0, false
	}
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		x = x*10 + uint64(c-'0')
	}
	return uint32(x), x < math.MaxUint32
}

// parseNames numbers ids by a table that all blocks share.
func parseNames(t *nameTable) func(*block, layout, bool) {
	pool := sync.Pool{New: func() any { return &nameBatch{table: t} }}
	return func(b *block, lay layout, weighted bool) {
		names := pool.Get().(*nameBatch)
		edges := 0
		b.eachLine(lay, weighted, func(u, v []byte) error {
			names.add(b, u, 2*edges)
			names.add(b, v, 2*edges+1)
			edges++
			if names.pending >= mostBatched && !names.number(b, edges) {
				return errTooManyNames
			}
			return nil
		})
		if b.err == nil && !names.number(b, edges) {
			b.err = &lineError{err: errTooManyNames}
		}
		if b.err == nil {
			pool.Put(names)
		}
	}
}

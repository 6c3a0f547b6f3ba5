package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"unsafe"
)

const (
	blockBytes = 1 << 20
	maxLine    = 1 << 16
)

// layout is how the lines of one file are written.
type layout struct {
	delim   byte // 0: blanks
	columns int
	skip    int // lines before the first edge that are no comments: the header
	header  string
	at      *[3]int // columns of source, target and weight; nil: the first three
}

// block is a piece of the file that ends at a line end, and the edges in it, until
// they are put aside.
type block struct {
	data     []byte
	index    int
	line     int64 // lines in it
	comments int64 // lines after its first edge that are taken for comments
	headers  int64 // lines after the first that are the header again
	src, dst []uint32
	weights  []float32
	at       int64 // where they are put
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

// sniff looks at the first lines for the separator and a header.
func sniff(path string, opt ImportOptions) (layout, error) {
	var lay layout
	in, err := openInput(path)
	if err != nil {
		return lay, err
	}
	defer in.Close()
	head := make([]byte, maxLine)
	n, err := io.ReadFull(in, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return lay, err
	}
	var lines [][]byte
	for line := range bytes.Lines(head[:n]) {
		if !comment(bytes.TrimSpace(line)) {
			lines = append(lines, line)
		}
		if len(lines) == 2 {
			break
		}
	}
	if len(lines) == 0 {
		return lay, nil
	}
	if bytes.IndexByte(bytes.TrimSpace(lines[0]), '\r') >= 0 && bytes.IndexByte(head[:n], '\n') < 0 {
		return lay, badFile(path, "line 1", "lines that end with a carriage return only", "a line feed after each", "convert the file, for example with mac2unix")
	}
	lay.delim = separator(bytes.TrimSpace(lines[len(lines)-1]))
	for i := range lines {
		lines[i] = lay.trim(lines[i])
	}
	last := lines[len(lines)-1]
	lay.columns = lay.count(bytes.Clone(last))
	isHeader := opt.Header == "yes"
	if opt.Header == "" {
		isHeader = looksLikeHeader(lay, bytes.Clone(lines[0]), bytes.Clone(last))
	}
	if isHeader {
		lay.skip, lay.header = 1, string(lines[0])
		if at := edgeColumns(lay.split(bytes.Clone(lines[0]))); at != [3]int{0, 1, 2} {
			lay.at = &at
		}
	}
	if opt.Header != "" && opt.Header != "yes" && opt.Header != "no" {
		return lay, badParam("header", opt.Header, `"yes", "no" or nothing`)
	}
	return lay, nil
}

// trim takes off what is around the fields of a line. A tab that separates them may stand
// behind an empty one.
func (l layout) trim(line []byte) []byte {
	if l.delim == '\t' {
		return bytes.Trim(line, " \r\n")
	}
	return bytes.TrimSpace(line)
}

// separator is the first tab, comma or semicolon outside quotes; 0: there are blanks.
func separator(line []byte) byte {
	quoted := false
	for _, c := range line {
		switch {
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '\t' || c == ',' || c == ';'):
			return c
		}
	}
	return 0
}

func comment(line []byte) bool { return len(line) == 0 || line[0] == '#' || line[0] == '%' }

// headerWords are names that the first column of an edge table has.
var headerWords = []string{"source", "src", "from", "fromnodeid", "u", "node1", "node_1", "node_id", "id1", "id_1", "start", "head", "target"}

// looksLikeHeader compares the first two lines, which are one if there is no other: a
// header has no numbers where the next line has some, or it has the usual words.
func looksLikeHeader(lay layout, first, second []byte) bool {
	names := lay.split(bytes.Clone(first))
	if named(names, sourceNames) >= 0 && named(names, targetNames) >= 0 {
		return true
	}
	a, _ := lay.next(first)
	b, _ := lay.next(second)
	return slices.Contains(headerWords, strings.ToLower(string(a))) || (!isNumber(a) && isNumber(b))
}

// isNumber also knows numbers that are too large for us or have a fraction, but not "inf".
func isNumber(b []byte) bool {
	_, err := strconv.ParseFloat(string(b), 64)
	return !errors.Is(err, strconv.ErrSyntax) && bytes.ContainsAny(b, "0123456789")
}

// next splits the first field off a line. Quotes around a field are taken off, and of
// doubled ones inside it one, where they are: a line can be split once.
func (l layout) next(line []byte) (field, rest []byte) {
	if l.delim == 0 {
		line = bytes.TrimLeft(line, " \t")
	}
	if field, rest, ok := l.unquote(line); ok {
		if at := l.index(rest); at >= 0 {
			return field, rest[at+1:]
		}
		return field, nil
	}
	at := l.index(line)
	if at < 0 {
		return bytes.TrimSpace(line), nil
	}
	return bytes.TrimSpace(line[:at]), line[at+1:]
}

// unquote splits off a field in quotes.
func (l layout) unquote(line []byte) (field, rest []byte, ok bool) {
	at := l.endOfQuotes(line)
	if at < 0 {
		return nil, nil, false
	}
	field, rest = line[1:at], line[at+1:]
	if bytes.IndexByte(field, '"') >= 0 {
		field = append(field[:0], bytes.ReplaceAll(field, []byte(`""`), []byte(`"`))...)
	}
	return field, rest, true
}

// endOfQuotes is where the quotes end in which the first field is; -1: it is in none, or
// more than the field is: then they are part of a name.
func (l layout) endOfQuotes(line []byte) int {
	if len(line) == 0 || line[0] != '"' {
		return -1
	}
	for at := 1; at < len(line); at++ {
		switch {
		case line[at] != '"':
		case at+1 < len(line) && line[at+1] == '"':
			at++
		default:
			rest := line[at+1:]
			if l.delim != 0 {
				rest = bytes.TrimLeft(rest, " ")
			}
			if len(rest) == 0 || l.index(rest) == 0 {
				return at
			}
			return -1
		}
	}
	return -1
}

// torn tells of a first field that begins with quotes which do not end with it. In CSV that is
// a mistake, or a field of several lines; elsewhere names may begin with quotes.
func (l layout) torn(line []byte) bool {
	return len(line) > 0 && line[0] == '"' && (l.delim == ',' || l.delim == ';') && l.endOfQuotes(line) < 0
}

// plain splits a line of two fields that need no trimming and no look at quotes, as
// nearly all lines are.
func (l layout) plain(line []byte) (u, v []byte, ok bool) {
	at := bytes.IndexByte(line, l.delim)
	if l.delim == 0 || l.at != nil || at < 1 || at+1 == len(line) {
		return nil, nil, false
	}
	u, v = line[:at], line[at+1:]
	return u, v, inside(u[0]) && inside(u[at-1]) && inside(v[0]) && inside(v[len(v)-1]) && bytes.IndexByte(v, l.delim) < 0
}

// inside tells of a byte that begins or ends nothing but a name.
func inside(c byte) bool { return c > '%' && c < 0x7f }

// edge splits off the source and the target of a line; the weight begins the tail. It is
// torn where a field of these is.
func (l layout) edge(line []byte) (u, v, tail []byte, torn bool) {
	if l.at == nil {
		torn = l.torn(line)
		u, tail = l.next(line)
		torn = torn || l.torn(tail)
		v, tail = l.next(tail)
		return u, v, tail, torn
	}
	for i := 0; i <= max(l.at[0], l.at[1], l.at[2]) && len(line) > 0; i++ {
		var field []byte
		torn = torn || l.torn(line)
		if i == l.at[2] {
			tail = line
		}
		field, line = l.next(line)
		switch i {
		case l.at[0]:
			u = field
		case l.at[1]:
			v = field
		}
	}
	return u, v, tail, torn
}

func (l layout) index(line []byte) int {
	if l.delim == 0 {
		return bytes.IndexAny(line, " \t")
	}
	return bytes.IndexByte(line, l.delim)
}

func (l layout) count(line []byte) (n int) {
	for rest := line; len(rest) > 0; n++ {
		_, rest = l.next(rest)
	}
	return n
}

// readEdges cuts the file into blocks, parses them on all cores and puts their
// edges aside.
func readEdges(path string, lay layout, opt ImportOptions, parse func(*block, layout, bool)) (*edges, error) {
	in, err := openInput(path)
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
			var spare block
			for b := range jobs {
				b.src, b.dst, b.weights = spare.src[:0], spare.dst[:0], spare.weights[:0]
				parse(b, lay, opt.Weights)
				if e.put(b); b.err != nil {
					e.failed.Store(true)
				}
				spare = *b
				buf := b.data
				b.data, b.src, b.dst, b.weights = nil, nil, nil, nil
				free <- buf
			}
		})
	}
	err = e.cut(path, in, lay, opt.Progress, jobs, free)
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

// cut reads blocks that end at line ends and hands them to jobs.
func (e *edges) cut(path string, in io.Reader, lay layout, progress Progress, jobs chan<- *block, free <-chan []byte) error {
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
			return badFile(path, "", fmt.Sprintf("a line of more than %d bytes", maxLine), "a source and a target a line", "this is no edge list")
		}
		carry = append(carry[:0], buf[end:]...)
		b := &block{data: buf[:end], index: len(e.blocks)}
		e.blocks = append(e.blocks, b)
		jobs <- b
		if progress != nil {
			progress("read edges", read, 0)
		}
		if ended || e.failed.Load() { // blocks before this one tell why
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
			return badFile(path, fmt.Sprintf("line %d", lines+b.err.line), b.err.found, b.err.want, "correct or remove the line")
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

// isHeader tells whether a line is the header again, as where files were put one behind another.
func (l layout) isHeader(line []byte) bool {
	if l.skip == 0 || len(line) < len(l.header) || len(line) > len(l.header)+len(byteOrderMark)+1 {
		return false
	}
	return string(bytes.TrimRight(bytes.TrimPrefix(line, []byte(byteOrderMark)), "\r")) == l.header
}

// byteOrderMark is what some editors put before UTF-8.
const byteOrderMark = "\xef\xbb\xbf"

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

// parseNumbers reads ids that are whole numbers below 2^32, and notes each in ids.
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

// plain parses a block of nothing but two numbers a line with one separator in
// between, as most large files are; false if there is anything else. It is about
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
	spare := sync.Pool{New: func() any { return &nameBatch{table: t} }}
	return func(b *block, lay layout, weighted bool) {
		names := spare.Get().(*nameBatch)
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
			spare.Put(names)
		}
	}
}

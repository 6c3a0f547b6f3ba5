package dataset

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"starling/dataset/table"
	"starling/event"
	"starling/graph"
)

// METIS graph files (also KaHIP, Chaco and the DIMACS partitioning challenge):
//
//	% comments
//	VERTICES EDGES [FMT [NCON]]
//	one line per vertex: [size] [weight …] neighbour [weight] neighbour [weight] …
//
// Neighbours count from 1 and every edge is listed at both ends. The digits of FMT say
// whether there are sizes of vertices, NCON weights of vertices, weights of edges.
// Edge weights are kept; sizes and weights of vertices are not part of a dataset.

// maxMETISLine is enough for a vertex of some thirty million neighbours.
const maxMETISLine = 256 << 20

type metisHeader struct {
	nodes, edges  int64
	skip          int // numbers before the neighbours
	weighted      bool
	vertexWeights bool
}

func readMETIS(path string, opt ImportOptions) (*read, error) {
	in, err := table.OpenText(path)
	if err != nil {
		return nil, err
	}
	m := metisReader{path: path, in: bufio.NewReaderSize(in, 1<<20)}
	h, err := m.header()
	if err != nil {
		in.Close()
		return nil, err
	}
	r := &read{name: opt.Name}
	if r.name == "" {
		r.name, _, _ = strings.Cut(baseName(path), ".")
	}
	if h.vertexWeights {
		r.notes = append(r.notes, "sizes and weights of vertices are not used")
	}
	r.edges = &edgeFeed{nodes: int(h.nodes), expected: 2 * h.edges, weighted: h.weighted, close: func() { in.Close() },
		fill: func(s *graph.Sorter) error { return m.fill(s, h) }}
	return r, nil
}

// metisReader reads lines and counts them.
type metisReader struct {
	path string
	in   *bufio.Reader
	line int64
	long []byte
}

// next is the following line that is no comment; good until the next call.
func (m *metisReader) next() ([]byte, error) {
	for {
		m.line++
		line, err := m.in.ReadSlice('\n')
		if err == bufio.ErrBufferFull {
			m.long = append(m.long[:0], line...)
			for err == bufio.ErrBufferFull {
				if len(m.long) > maxMETISLine {
					return nil, m.bad(fmt.Sprintf("a line above %d bytes", maxMETISLine),
						"the neighbours of one vertex")
				}
				line, err = m.in.ReadSlice('\n')
				m.long = append(m.long, line...)
			}
			line = m.long
		}
		if err != nil && (err != io.EOF || len(line) == 0) {
			return nil, err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 || line[0] != '%' {
			return line, nil
		}
	}
}

func (m *metisReader) bad(found, want string) error {
	return badFile(m.path, fmt.Sprintf("line %d", m.line), found, want, "correct the file, or write it again")
}

func (m *metisReader) header() (h metisHeader, err error) {
	const want = "VERTICES EDGES [FMT [NCON]]"
	line, err := m.next()
	if err == io.EOF {
		return h, m.bad("the end of the file", want)
	}
	if err != nil {
		return h, err
	}
	f := strings.Fields(string(line[:min(len(line), 1000)]))
	if len(f) < 2 || len(f) > 4 {
		return h, m.bad(fmt.Sprintf("%.60q", line), want)
	}
	var e1, e2 error
	h.nodes, e1 = strconv.ParseInt(f[0], 10, 64)
	h.edges, e2 = strconv.ParseInt(f[1], 10, 64)
	if e1 != nil || e2 != nil || h.nodes < 1 || h.nodes > graph.MaxNodes || h.edges < 0 || h.edges > graph.MaxEdges/2 {
		return h, m.bad(fmt.Sprintf("%.60q", line), want+", fewer than 2^32 vertices and 2^31 edges")
	}
	format := "000"
	if len(f) > 2 {
		format = fmt.Sprintf("%03s", f[2])
	}
	if len(format) != 3 || strings.Trim(format, "01") != "" {
		return h, m.bad("FMT "+f[2], "three digits of 0 and 1")
	}
	ncon := 1
	if len(f) > 3 {
		if ncon, err = strconv.Atoi(f[3]); err != nil || ncon < 0 || ncon > 1000 {
			return h, m.bad("NCON "+f[3], "0 to 1000")
		}
	}
	if format[0] == '1' {
		h.skip++
	}
	if format[1] == '1' {
		h.skip += ncon
	}
	h.vertexWeights, h.weighted = h.skip > 0, format[2] == '1'
	return h, nil
}

// fill parses the lines of vertices, in order, while other cores distribute edges to buckets.
func (m *metisReader) fill(s *graph.Sorter, h metisHeader) error {
	parsed, free := make(chan numbered, 2), make(chan *chunk, 6)
	for range cap(free) {
		free <- &chunk{}
	}
	var failed error
	go func() {
		defer close(parsed)
		failed = m.parse(h, parsed, free)
	}()
	err := onAllCores(s, func() (bool, error) {
		x, ok := <-parsed
		if !ok {
			return false, nil
		}
		err := s.Add(x.seq, x.chunk.src, x.chunk.dst, x.chunk.weights)
		free <- x.chunk
		return true, err
	})
	for x := range parsed { // after an error of the sorter
		free <- x.chunk
	}
	if failed != nil {
		return failed
	}
	return err
}

type numbered struct {
	chunk *chunk
	seq   int64
}

func (m *metisReader) parse(h metisHeader, out chan<- numbered, free <-chan *chunk) error {
	x := <-free
	var seq, listed int64
	send := func() {
		out <- numbered{x, seq}
		seq++
		x = <-free
		x.src, x.dst, x.weights = x.src[:0], x.dst[:0], x.weights[:0]
	}
	for v := range h.nodes {
		line, err := m.next()
		if err == io.EOF {
			return m.bad(fmt.Sprintf("the end of the file instead of the line of vertex %d", v+1),
				fmt.Sprintf("a line for each of %d", h.nodes))
		}
		if err != nil {
			return err
		}
		before := len(x.src)
		if err := m.row(uint32(v), line, h, x); err != nil {
			return err
		}
		if listed += int64(len(x.src) - before); len(x.src) >= table.PieceNumbers {
			send()
		}
	}
	if listed != 2*h.edges {
		return m.bad(fmt.Sprintf("%s in all", event.Tally(listed, "neighbour")),
			fmt.Sprintf("%d, two for each of the header's %s", 2*h.edges, event.Tally(h.edges, "edge")))
	}
	if rest, err := m.next(); err == nil && len(bytes.TrimSpace(rest)) > 0 {
		return m.bad("lines after the last vertex", event.Tally(h.nodes, "vertex"))
	}
	if len(x.src) > 0 {
		send()
	}
	return nil
}

// row parses the line of one vertex.
func (m *metisReader) row(v uint32, line []byte, h metisHeader, x *chunk) error {
	skip, weight := h.skip, false
	for at := 0; ; {
		for at < len(line) && (line[at] == ' ' || line[at] == '\t') {
			at++
		}
		if at == len(line) {
			break
		}
		from, u := at, uint64(0)
		for at < len(line) && line[at]-'0' <= 9 && at-from < 18 {
			u = u*10 + uint64(line[at]-'0')
			at++
		}
		if weight || skip > 0 { // these may be reals in files of other tools
			for at < len(line) && line[at] != ' ' && line[at] != '\t' {
				at++
			}
			w, err := strconv.ParseFloat(text(line[from:at]), 32)
			if err != nil || math.IsNaN(w) || math.IsInf(w, 0) {
				return m.bad(fmt.Sprintf("%.40q", line[from:at]), "a weight")
			}
			if skip > 0 {
				skip--
			} else {
				x.weights = append(x.weights, float32(w))
				weight = false
			}
			continue
		}
		if at == from || at < len(line) && line[at] != ' ' && line[at] != '\t' || u < 1 || u > uint64(h.nodes) {
			return m.bad(fmt.Sprintf("%.40q", line[from:]), fmt.Sprintf("neighbours from 1 to %d", h.nodes))
		}
		x.src, x.dst = append(x.src, uint32(u-1)), append(x.dst, v)
		weight = h.weighted
	}
	if weight || skip > 0 {
		return m.bad(fmt.Sprintf("%.60q", line), "as many numbers as FMT says")
	}
	return nil
}

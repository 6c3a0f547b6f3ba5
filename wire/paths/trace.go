package paths

import (
	"bufio"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// Trace is requests in the order of their arrival.
type Trace []Arrival

// Arrival is one request: when it comes (seconds), its type, and what it may depend on.
type Arrival struct {
	At      float64
	Kind    int
	Address uint64 // of what it reads or writes
	Message uint64 // that it is part of
	// Of one that was recorded: its size, the path that it took, and for how many seconds. Took 0: it was not.
	Bytes int
	Path  int
	Took  float64
}

// key is what a request depends on, and whether it does.
func (a *Arrival) key(d Dependency) (uint64, bool) {
	switch d {
	case Address:
		return a.Address, true
	case Message:
		return a.Message, true
	}
	return 0, false
}

// A trace's first line. Those of version 2 were recorded, and say what became of each request.
const (
	traceHead    = "# starling paths trace 1: seconds type address message"
	recordedHead = "# starling paths trace 2: seconds type address message bytes path took"
)

// maxTrace bounds the requests of a trace that is read.
const maxTrace = 1 << 24

// WriteTrace writes a trace as lines of text, which ReadTrace reads.
func WriteTrace(w io.Writer, p *Plan, t Trace) error {
	b := bufio.NewWriter(w)
	recorded := slices.ContainsFunc(t, func(a Arrival) bool { return a.Took > 0 })
	head := traceHead
	if recorded {
		head = recordedHead
	}
	fmt.Fprintln(b, head)
	for _, a := range t {
		fmt.Fprintf(b, "%s %s %d %d", digits(a.At), p.Types[a.Kind].Name, a.Address, a.Message)
		if recorded {
			fmt.Fprintf(b, " %d %s %s", a.Bytes, p.File.Paths[a.Path].Name, digits(a.Took))
		}
		b.WriteByte('\n')
	}
	return b.Flush()
}

// digits are those that give the same number when read.
func digits(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// Recorded reports whether a trace is one that a run recorded: of its segments, whose plan Segments makes.
func Recorded(in *bufio.Reader) bool {
	head, _ := in.Peek(len(recordedHead))
	return string(head) == recordedHead
}

// ReadTrace reads what WriteTrace wrote. Its error is an *Error, or that of r.
func ReadTrace(r io.Reader, p *Plan) (t Trace, err error) {
	in, recorded := bufio.NewScanner(r), false
	for line := 1; in.Scan(); line++ {
		text := strings.TrimSpace(in.Text())
		if line == 1 && text != traceHead && text != recordedHead {
			return nil, &Error{1, "", strconv.Quote(text), strconv.Quote(traceHead), "record the trace anew"}
		}
		recorded = recorded || line == 1 && text == recordedHead
		if text == "" || text[0] == '#' {
			continue
		}
		a, err := p.arrival(strings.Fields(text), line, recorded)
		if err != nil {
			return nil, err
		}
		if len(t) > 0 && a.At < t[len(t)-1].At {
			return nil, &Error{line, "seconds", digits(a.At), "requests in the order of time", ""}
		}
		if t = append(t, a); len(t) > maxTrace {
			return nil, &Error{line, "", "more requests", fmt.Sprintf("at most %d", maxTrace), "cut the trace"}
		}
	}
	return t, in.Err()
}

// arrival reads one line.
func (p *Plan) arrival(fields []string, line int, recorded bool) (a Arrival, err error) {
	want, what := 4, "seconds, type, address and message"
	if recorded {
		want, what = 7, "seconds, type, address, message, bytes, path and took"
	}
	if len(fields) != want {
		return a, &Error{line, "", fmt.Sprintf("%d fields", len(fields)), what, ""}
	}
	if a.At, err = strconv.ParseFloat(fields[0], 64); err != nil || !(a.At >= 0 && a.At < 1e9) {
		return a, &Error{line, "seconds", strconv.Quote(fields[0]), "a time from 0 on", ""}
	}
	if a.Kind = p.Type(fields[1]); a.Kind < 0 {
		return a, &Error{line, "type", strconv.Quote(fields[1]), "a request type of the file", ""}
	}
	for i, to := range []*uint64{&a.Address, &a.Message} {
		if *to, err = strconv.ParseUint(fields[2+i], 10, 64); err != nil {
			return a, &Error{line, []string{"address", "message"}[i], strconv.Quote(fields[2+i]), "a whole number", ""}
		}
	}
	if recorded {
		err = p.outcome(&a, fields, line)
	}
	return a, err
}

// outcome reads what became of a request.
func (p *Plan) outcome(a *Arrival, fields []string, line int) (err error) {
	if a.Bytes, err = strconv.Atoi(fields[4]); err != nil || a.Bytes < 0 {
		return &Error{line, "bytes", strconv.Quote(fields[4]), "a whole number", ""}
	}
	if a.Path = p.File.path(fields[5]); a.Path < 0 {
		return &Error{line, "path", strconv.Quote(fields[5]), "a path of the file", ""}
	}
	if a.Took, err = strconv.ParseFloat(fields[6], 64); err != nil || !(a.Took >= 0 && a.Took < 1e9) {
		return &Error{line, "took", strconv.Quote(fields[6]), "a time from 0 on", ""}
	}
	return nil
}

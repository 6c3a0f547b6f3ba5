package paths

import (
	"bufio"
	"fmt"
	"io"
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

const traceHead = "# starling paths trace 1: seconds type address message"

// maxTrace bounds the requests of a trace that is read.
const maxTrace = 1 << 24

// WriteTrace writes a trace as lines of text, which ReadTrace reads.
func WriteTrace(w io.Writer, p *Plan, t Trace) error {
	b := bufio.NewWriter(w)
	fmt.Fprintln(b, traceHead)
	for _, a := range t {
		fmt.Fprintf(b, "%s %s %d %d\n", strconv.FormatFloat(a.At, 'g', -1, 64), p.Types[a.Kind].Name, a.Address, a.Message)
	}
	return b.Flush()
}

// ReadTrace reads what WriteTrace wrote. Its error is an *Error, or that of r.
func ReadTrace(r io.Reader, p *Plan) (t Trace, err error) {
	in := bufio.NewScanner(r)
	for line := 1; in.Scan(); line++ {
		text := strings.TrimSpace(in.Text())
		if line == 1 && text != traceHead {
			return nil, &Error{1, "", strconv.Quote(text), strconv.Quote(traceHead), "record the trace anew"}
		}
		if text == "" || text[0] == '#' {
			continue
		}
		a, err := p.arrival(text, line)
		if err != nil {
			return nil, err
		}
		if len(t) > 0 && a.At < t[len(t)-1].At {
			return nil, &Error{line, "seconds", strconv.FormatFloat(a.At, 'g', -1, 64), "requests in the order of time", ""}
		}
		if t = append(t, a); len(t) > maxTrace {
			return nil, &Error{line, "", "more requests", fmt.Sprintf("at most %d", maxTrace), "cut the trace"}
		}
	}
	return t, in.Err()
}

// arrival reads one line.
func (p *Plan) arrival(text string, line int) (a Arrival, err error) {
	fields := strings.Fields(text)
	if len(fields) != 4 {
		return a, &Error{line, "", fmt.Sprintf("%d fields", len(fields)), "seconds, type, address and message", ""}
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
	return a, nil
}

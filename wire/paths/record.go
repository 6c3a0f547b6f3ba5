package paths

import (
	"cmp"
	"fmt"
	"os"
	"slices"
)

// mostRecorded bounds the segments that a process keeps for its trace.
const mostRecorded = 1 << 20

// recorder keeps the segments of a run, as a trace that Replay takes: type, connection, offset, bytes, path, when a
// segment was given to its path and how long it took until it was acknowledged. Segments are kept in memory and written
// in the end, because a trace is in the order of arrival and they finish in another. A nil recorder keeps nothing.
type recorder struct {
	file  *os.File
	plan  *Plan
	trace Trace
	more  int // that were not kept
}

// newRecorder opens the file that a description names, with this process's number, so that a run does not end in vain.
func newRecorder(p *Plan) (*recorder, error) {
	if p.File.Record == "" {
		return nil, nil
	}
	f, err := os.Create(fmt.Sprintf("%s.%d", p.File.Record, os.Getpid()))
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return &recorder{file: f, plan: p}, nil
}

// add keeps a segment that was acknowledged.
func (r *recorder) add(now float64, g *segment, kind, path int) {
	switch {
	case r == nil || r.file == nil:
	case len(r.trace) >= mostRecorded:
		r.more++
	default:
		r.trace = append(r.trace, Arrival{At: g.sent, Kind: kind, Address: g.offset, Message: g.stream,
			Bytes: len(g.data), Path: path, Took: now - g.sent})
	}
}

// close writes what was kept.
func (r *recorder) close() error {
	if r == nil || r.file == nil {
		return nil
	}
	slices.SortStableFunc(r.trace, func(a, b Arrival) int { return cmp.Compare(a.At, b.At) })
	err := WriteTrace(r.file, r.plan, r.trace)
	if r.more > 0 {
		fmt.Fprintf(r.file, "# %d more were not recorded\n", r.more)
	}
	if closing := r.file.Close(); err == nil {
		err = closing
	}
	r.file, r.trace = nil, nil
	return err
}

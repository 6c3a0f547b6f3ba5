package bench

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"starling/event"
	"starling/report"
)

// Wire is the time of messages and collectives.
type Wire struct {
	Workers int       `json:"workers"`
	Rows    []WireRow `json:"rows"`
}

// WireRow is one operation of one size over one transport.
type WireRow struct {
	Transport string        `json:"transport"`
	Op        string        `json:"op"`
	Bytes     int           `json:"bytes"`      // per rank
	Seconds   float64       `json:"seconds"`    // of the median turn
	Best      float64       `json:"best"`       // of the fastest
	SentBytes int           `json:"sent_bytes"` // the least that a rank must send
	Ratio     report.Number `json:"ratio"`      // of the first transport's time to this one's
}

// Rate is the bus bandwidth: the bytes that a rank must send, whatever the algorithm, over the
// time.
func (r *WireRow) Rate() float64 { return float64(r.SentBytes) / r.Seconds }

func (b *Wire) setRatios() {
	for i := range b.Rows {
		r := &b.Rows[i]
		first := slices.IndexFunc(b.Rows, func(o WireRow) bool { return o.Op == r.Op && o.Bytes == r.Bytes })
		r.Ratio = report.Number(b.Rows[first].Seconds / r.Seconds)
	}
}

// JSON writes the times as one object, to a file or for "-" to stdout.
func (b *Wire) JSON(path string, stdout io.Writer) error { return report.WriteJSON(b, path, stdout) }

// String is the times as a table.
func (b *Wire) String() string {
	var t strings.Builder
	fmt.Fprintf(&t, "%-13s %-10s %10s %12s %12s %8s\n", "op", "transport", "size", "time", "rate", "ratio")
	for i := range b.Rows {
		r := &b.Rows[i]
		took := time.Duration(r.Seconds * 1e9).Round(100 * time.Nanosecond)
		fmt.Fprintf(&t, "%-13s %-10s %10s %12s %10s/s %7.2fx\n", r.Op, r.Transport, event.Bytes(int64(r.Bytes)), took,
			event.Bytes(int64(r.Rate())), float64(r.Ratio))
	}
	return t.String()
}

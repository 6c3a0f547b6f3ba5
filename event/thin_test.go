package event

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

// TestReportsGetRarer: a file of a long run has few reports of workers, and all of what they did.
func TestReportsGetRarer(t *testing.T) {
	var b bytes.Buffer
	j := NewJSONLines(&b)
	now := time.Unix(1, 0)
	j.now = func() time.Time { return now }
	const seconds = 20000
	for range seconds {
		now = now.Add(time.Second)
		for w := range 2 {
			j.On(Worker{Worker: w, Slices: []Slice{{Ago: 1, Seconds: 1, Wait: 0.25, For: 1 - w}}})
		}
	}
	j.On(Result{Report: json.RawMessage(`{"epochs":1}`)})
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	var known, waited float64
	var until [2]time.Time
	for _, line := range lines[:len(lines)-1] {
		e, at, err := DecodeAt([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		w := e.(Worker)
		if len(w.Slices) > slicesKept {
			t.Fatalf("%d slices", len(w.Slices))
		}
		for _, s := range w.Slices {
			from := at.Add(-time.Duration(s.Ago * 1e9))
			if gap := from.Sub(until[w.Worker]); !until[w.Worker].IsZero() && gap.Abs() > time.Millisecond {
				t.Fatalf("a gap of %v", gap)
			}
			until[w.Worker] = from.Add(time.Duration(s.Seconds * 1e9))
			known, waited = known+s.Seconds, waited+s.Wait
		}
	}
	if math.Abs(known-2*seconds) > 1 || math.Abs(waited-seconds/2) > 1 {
		t.Errorf("%v s known, %v s waited", known, waited)
	}
	if len(lines) > 8000 || !strings.Contains(lines[len(lines)-1], `"event":"result"`) {
		t.Errorf("%d lines", len(lines))
	}
}

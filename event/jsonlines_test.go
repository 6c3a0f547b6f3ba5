package event

import (
	"fmt"
	"math"
	"testing"
	"time"
)

// TestDecodeIsTheWayBack: every event reads back as what was written.
func TestDecodeIsTheWayBack(t *testing.T) {
	at := time.Unix(1700000000, 123456789).UTC()
	for _, e := range []Event{
		Started{Dataset: "d", Model: "gcn", Strategy: "halo", Vertices: 5, Edges: 1 << 40, Workers: 4, FirstEpoch: 2,
			Epochs: 9, Metric: "accuracy"},
		Epoch{Epoch: 3, Loss: 0.1234567890123, LR: 0.01, Measured: true, Val: math.NaN(), Test: 0.5, Best: true},
		Saved{Path: "a/b", Epoch: 4, Bytes: 7}, Note{Text: "one \"word\"\nand another"},
		Span{Name: "x", Kind: "wait", Worker: 3, Lane: 1, Start: at, Dur: 12345},
		Progress{Task: "t", Done: 1, Total: 2},
		Done{Reason: "finished", Epochs: 3, BestEpoch: -1, Val: 0.25, Seconds: 1.5},
	} {
		b, err := Encode(e, at)
		if err != nil {
			t.Fatal(err)
		}
		back, err := Decode(b)
		if err != nil {
			t.Fatal(err)
		}
		// NaN differs from itself, but not in print.
		if fmt.Sprintf("%#v", back) != fmt.Sprintf("%#v", e) {
			t.Errorf("%s reads back as %#v, want %#v", b, back, e)
		}
	}
}

// FuzzDecode: no line makes it panic, and what it accepts can be written again.
func FuzzDecode(f *testing.F) {
	for _, s := range []string{`{"event":"note","text":"x"}`, `{"event":"epoch","loss":null}`,
		`{"event":"span","start":"?"}`, `{}`, `[`, `{"event":3}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		if e, err := Decode(line); err == nil {
			if _, err := Encode(e, time.Time{}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

package tcp

import (
	"testing"
	"time"

	"starling/wire"
)

// write is a large write to a link with a rate in bytes per second.
func (p *pace) write(rate float64, trip time.Duration) {
	const n = wire.ChunkSize
	if p.wrote(n, time.Duration(n/rate*float64(time.Second))) {
		p.judge(trip, 100*time.Millisecond+2*trip)
	}
}

func TestPace(t *testing.T) {
	const lan = 100 * time.Microsecond
	for _, c := range []struct {
		name     string
		rate     float64 // bytes per second
		trip     time.Duration
		from, to int // of the window
	}{
		{"a quarter of 100 Mbit/s", 3e6, lan, leastHeld, leastHeld},
		{"half of 100 Mbit/s", 6.2e6, lan, leastHeld, leastHeld},
		{"an eighth of 1 Gbit/s", 15e6, lan, 0, 0},
		{"1 Gbit/s", 119e6, lan, 0, 0},
		{"loopback", 4e9, lan, 0, 0},
		{"far away, a little", 1e6, 20 * time.Millisecond, leastHeld, leastHeld},
		{"far away, 100 Mbit/s", 12e6, 20 * time.Millisecond, 0, 0},
		{"far away, and held by what was", leastHeld / 0.2, 200 * time.Millisecond, 2 * leastHeld, mostHeld},
	} {
		var p pace
		if c.to > mostHeld/2 {
			p.window = leastHeld
		}
		for range 20000 {
			p.write(c.rate, c.trip)
		}
		if p.window < c.from || p.window > c.to || p.slow() != (c.to > 0) {
			t.Errorf("%s: a window of %d bytes, expected %d to %d", c.name, p.window, c.from, c.to)
		}
	}
}

// A connection that is alone on a slow link again is not taken for a quick one, and a link
// near the edge stays what it was.
func TestPaceStays(t *testing.T) {
	const lan = 100 * time.Microsecond
	var slow, quick pace
	for range 100 {
		slow.write(3e6, lan)
		quick.write(30e6, lan)
	}
	for range 1000 {
		slow.write(12.5e6, lan)
		quick.write(8e6, lan)
	}
	if !slow.slow() || quick.slow() {
		t.Errorf("windows of %d and %d bytes, expected some and none", slow.window, quick.window)
	}
	for range 1000 {
		slow.write(100e6, lan)
		quick.write(0.1e6, lan)
	}
	if slow.slow() || !quick.slow() {
		t.Errorf("windows of %d and %d bytes, expected none and some", slow.window, quick.window)
	}
}

// Nothing arrives while a peer has stopped reading.
func TestPaceStandsStill(t *testing.T) {
	var p pace
	if !p.wrote(-1, time.Minute) || p.judge(0, time.Millisecond) || p.slow() {
		t.Errorf("a peer that stands still is taken for a slow link, with a window of %d bytes", p.window)
	}
}

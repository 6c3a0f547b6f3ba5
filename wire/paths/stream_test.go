package paths

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"
)

// links is a file with n paths of unequal rate between two hosts.
func links(t testing.TB, n int) *Plan {
	t.Helper()
	f := &File{Hardware: Hardware{Model: Custom, Nodes: []Node{{Name: "cpu", Capacity: 1}}}}
	r := RequestType{Name: "segment"}
	for i := range n {
		nic := fmt.Sprintf("nic%d", i)
		f.Hardware.Nodes = append(f.Hardware.Nodes, Node{Name: nic, Capacity: 1})
		f.Hardware.Links = append(f.Hardware.Links, Link{"cpu", nic, 125e6 / float64(i+1), 0})
		f.Hardware.Network = append(f.Hardware.Network, Network{Node: nic, Latency: 1e-4})
		f.Paths = append(f.Paths, Path{Name: nic, Stops: []string{"requester.cpu", "responder." + nic}})
		r.Options = append(r.Options, Option{Path: i, Sizes: []float64{nominalSize}, Compute: []float64{0, 0}})
	}
	f.Requests = []RequestType{r}
	return NewPlan(f)
}

// world is a stream over paths that delay, fail and heal at random, in its own time.
type world struct {
	t     *testing.T
	draw  *rand.Rand
	now   float64
	out   *sender
	in    receiver
	paths []worldPath
	sent  []byte // what was written
	got   []byte // what was read
	into  [2000]byte
}

// worldPath is a connection: in order, until it breaks, and then what is under way is lost. Both ends learn of that at
// their own time.
type worldPath struct {
	open    bool // frames get through
	known   bool // the sender believes so
	data    []worldFrame
	acks    []worldFrame
	arrived uint32 // segments, since it is up
	fails   float64
}

type worldFrame struct {
	at    float64
	g     segment
	count uint32
	limit uint64
}

// step lets one random thing happen.
func (w *world) step() {
	w.now += w.draw.ExpFloat64() * 1e-3
	i := w.draw.IntN(len(w.paths))
	p := &w.paths[i]
	switch w.draw.IntN(12) {
	case 0:
		p.open = false
		p.fails = w.now
		if w.draw.IntN(2) == 0 { // some of the acknowledgements are lost with it
			p.acks = p.acks[:w.draw.IntN(len(p.acks)+1)]
		}
		p.data = p.data[:w.draw.IntN(len(p.data)+1)]
	case 1:
		if !p.open {
			w.drain(i)
			w.out.down(w.now, i)
			p.known, p.data, p.acks, p.arrived = false, nil, nil, 0
		}
	case 2:
		if !p.open && !p.known {
			p.open, p.known = true, true
			w.out.raise(w.now, i)
		}
	case 3, 4, 5:
		n := 1 + w.draw.IntN(600)
		data := make([]byte, n)
		for k := range data {
			data[k] = byte(len(w.sent) + k + (len(w.sent)+k)>>8)
		}
		if w.out.takes(w.now, n) {
			w.out.put(w.now, data)
			w.sent = append(w.sent, data...)
		}
	case 6, 7, 8:
		w.send(i)
	default:
		w.deliver(i)
	}
	w.read()
}

// send puts what waits for a path on it; where the path has broken unnoticed, it is lost.
func (w *world) send(i int) {
	p := &w.paths[i]
	for _, g := range w.out.take(i, 1500, nil) {
		if p.open {
			p.data = append(p.data, worldFrame{at: w.now, g: segment{offset: g.offset, data: bytes.Clone(g.data)}})
		}
	}
}

// deliver lets a frame of each direction arrive.
func (w *world) deliver(i int) {
	p := &w.paths[i]
	if len(p.data) > 0 {
		f := p.data[0]
		p.data = p.data[1:]
		if _, err := w.in.arrived(f.g.offset, f.g.data); err != nil {
			w.t.Fatal(err)
		}
		p.arrived++
		if p.open {
			p.acks = append(p.acks, worldFrame{count: p.arrived, limit: w.in.limit()})
		}
	}
	if len(p.acks) > 0 {
		w.acknowledge(i, p.acks[0])
		p.acks = p.acks[1:]
	}
}

// drain is what still came through before the sender noticed.
func (w *world) drain(i int) {
	for p := &w.paths[i]; len(p.data)+len(p.acks) > 0; {
		w.deliver(i)
	}
}

func (w *world) acknowledge(i int, f worldFrame) {
	if !w.paths[i].known {
		return
	}
	if _, err := w.out.acknowledged(w.now, i, f.count, f.limit, func(*segment) {}); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) read() {
	into := w.into[:1+w.draw.IntN(len(w.into))]
	w.got = append(w.got, into[:w.in.read(into, func([]byte) {})]...)
}

// TestNothingLostTwiceOrOutOfOrder: 10,000 runs of random delays and failures of paths, with each policy. What was
// written is what is read, byte by byte; nothing is acknowledged that did not arrive; when one path heals, all of
// it arrives; and where a stream's segments depend on each other, those in progress are all on one path. STARLING_RUNS
// sets another number of runs.
func TestNothingLostTwiceOrOutOfOrder(t *testing.T) {
	t.Parallel()
	runs := 10000
	if n, err := strconv.Atoi(os.Getenv("STARLING_RUNS")); err == nil {
		runs = n
	}
	var plans []*Plan
	for n := range 4 {
		free, bound := links(t, n+1), links(t, n+1)
		bound.File.Requests[0].Dependency = Message
		plans = append(plans, Segments(free), Segments(bound))
	}
	var sent, got []byte // of the run before, whose memory serves again
	for seed := range uint64(runs) {
		draw := rand.New(rand.NewPCG(seed, 29))
		plan := plans[draw.IntN(len(plans))]
		policy := []func() Policy{func() Policy { return NewLEOQueue(plan) }, func() Policy { return NewRoundRobin(plan) },
			func() Policy { return NewGreedy(plan, true) }, func() Policy { return NewLEO(plan, 0.1) }}[draw.IntN(4)]()
		n := len(plan.File.Paths)
		w := &world{t: t, draw: draw, paths: make([]worldPath, n), sent: sent[:0], got: got[:0],
			out: newSender(newChooser(plan, policy, time.Time{}))}
		for range 120 {
			w.step()
			if plan.Types[0].Dependency == Message && w.out.used() > 1 {
				t.Fatalf("seed %d: messages that depend on each other take %d paths", seed, w.out.used())
			}
		}
		w.finish()
		if !bytes.Equal(w.got, w.sent) || w.out.chooser.mu.selector.InProgress() != 0 {
			t.Fatalf("seed %d: %d bytes were written, %d read; the first difference is at %d; %d in progress", seed,
				len(w.sent), len(w.got), difference(w.sent, w.got), w.out.chooser.mu.selector.InProgress())
		}
		sent, got = w.sent, w.got
	}
}

// used is how many paths have segments in progress.
func (s *sender) used() (n int) {
	for _, p := range s.paths {
		if len(p.waiting)+len(p.flight) > 0 {
			n++
		}
	}
	return n
}

// finish heals the first path, lets the others fail, and everything arrive.
func (w *world) finish() {
	for i := range w.paths {
		w.paths[i].open = false
		w.drain(i)
		w.out.down(w.now, i)
		w.paths[i] = worldPath{}
	}
	w.paths[0] = worldPath{open: true, known: true}
	w.out.raise(w.now, 0)
	for !w.out.idle() {
		w.now += 1e-3
		w.send(0)
		w.drain(0)
		w.read()
	}
	for before := -1; before < len(w.got); w.read() {
		before = len(w.got)
		w.read()
	}
}

func difference(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// TestWindows: a sender does not exceed what the receiver holds, nor what a path may have under way.
func TestWindows(t *testing.T) {
	plan := Segments(links(t, 2))
	s := newSender(newChooser(plan, NewLEOQueue(plan), time.Time{}))
	s.paths[0].most = flightSegments * segmentSize
	if s.takes(0, 10) {
		t.Error("it sends without a path")
	}
	s.raise(0, 0)
	n := 0
	for s.takes(0, segmentSize) {
		s.put(0, make([]byte, segmentSize))
		n++
	}
	if n != flightSegments {
		t.Errorf("%d segments under way, want %d", n, flightSegments)
	}
	s.limit = s.spent
	s.raise(0, 1)
	if s.takes(0, 10) {
		t.Error("it sends what the receiver cannot hold")
	}
	if _, err := s.acknowledged(0, 0, 1, 0, func(*segment) {}); err == nil {
		t.Error("what was not sent was acknowledged")
	}
	var r receiver
	for _, offset := range []uint64{window, window - 5, 1<<64 - 3} {
		if _, err := r.arrived(offset, make([]byte, 10)); err == nil {
			t.Errorf("a segment at %d was taken", offset)
		}
	}
}

package paths

import (
	"container/heap"
	"testing"
	"time"
)

// exchange is two ends that send to each other over links of given rates, in its own time: every byte takes its time on
// a link, in both directions independently, and acknowledgements wait behind the data of their direction, as they do in
// a socket.
type exchange struct {
	t      *testing.T
	now    float64
	rates  []float64 // bytes per second, by link
	ends   [2]exchangeEnd
	events exchangeEvents
}

type exchangeEnd struct {
	out   *sender
	in    receiver
	links []exchangeLink
	left  int // bytes to be written
}

// exchangeLink is one direction of a link, as its sender sees it.
type exchangeLink struct {
	free    float64 // when all that was given to the kernel has left
	arrived uint32  // segments from the other end
	answer  bool    // it is to be told so
	wake    float64 // when the kernel takes more, if that is awaited
}

// exchangeEvent is a frame that arrives at an end, or nothing but the time.
type exchangeEvent struct {
	at     float64
	end    int
	link   int
	frame  bool
	data   []byte
	offset uint64
	acked  uint32
	limit  uint64
}

type exchangeEvents []exchangeEvent

func (h exchangeEvents) Len() int           { return len(h) }
func (h exchangeEvents) Less(i, j int) bool { return h[i].at < h[j].at }
func (h exchangeEvents) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *exchangeEvents) Push(x any)        { *h = append(*h, x.(exchangeEvent)) }
func (h *exchangeEvents) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

const (
	exchangeTrip = 100e-6 // seconds on a link beside the bytes' own
	exchangeHeld = 128 << 10
)

// seconds is how long it takes until both ends have received all bytes.
func (x *exchange) seconds(bytes int, make func(*Plan) Policy) float64 {
	plan := Segments(links(x.t, len(x.rates)))
	for e := range x.ends {
		x.ends[e] = exchangeEnd{out: newSender(newChooser(plan, make(plan), time.Time{})), left: bytes}
		for i := range x.rates {
			x.ends[e].links = append(x.ends[e].links, exchangeLink{})
			x.ends[e].out.raise(0, i)
		}
	}
	x.pump(0)
	x.pump(1)
	for x.ends[0].in.consumed < uint64(bytes) || x.ends[1].in.consumed < uint64(bytes) {
		if len(x.events) == 0 {
			x.t.Fatal("nothing is under way")
		}
		v := heap.Pop(&x.events).(exchangeEvent)
		x.now = v.at
		x.take(&v)
		x.pump(v.end)
	}
	return x.now
}

// take is told what has come.
func (x *exchange) take(v *exchangeEvent) {
	e := &x.ends[v.end]
	if !v.frame {
		return
	}
	if _, err := e.out.acknowledged(x.now, v.link, v.acked, v.limit, func(*segment) {}); err != nil {
		x.t.Fatal(err)
	}
	if v.data == nil {
		return
	}
	if _, err := e.in.arrived(v.offset, v.data); err != nil {
		x.t.Fatal(err)
	}
	e.links[v.link].arrived++
	e.links[v.link].answer = true
	var b [segmentSize]byte
	for e.in.read(b[:], func([]byte) {}) > 0 {
	}
}

// pump writes what an end can write, in messages of 64 KiB with a head, and gives the kernel what it takes.
func (x *exchange) pump(end int) {
	e := &x.ends[end]
	for n := min(e.left, nominalSize+96); n > 0 && e.out.takes(x.now, n); n = min(e.left, nominalSize+96) {
		e.out.put(x.now, make([]byte, n))
		e.left -= n
	}
	for i := range e.links {
		x.write(end, i)
	}
}

func (x *exchange) write(end, i int) {
	e := &x.ends[end]
	l := &e.links[i]
	send := func(v exchangeEvent, bytes int) {
		l.free = max(l.free, x.now) + float64(bytes)/x.rates[i]
		v.at, v.end, v.link, v.frame = l.free+exchangeTrip, 1-end, i, true
		v.acked, v.limit = l.arrived, e.in.limit()
		heap.Push(&x.events, v)
	}
	for len(e.out.paths[i].waiting) > 0 && l.free-x.now < exchangeHeld/x.rates[i] {
		for _, g := range e.out.take(i, batchBytes, nil) {
			send(exchangeEvent{data: g.data, offset: g.offset}, frameSize+len(g.data))
			l.answer = false
		}
	}
	if l.answer && l.free <= x.now {
		l.answer = false
		send(exchangeEvent{}, frameSize)
	}
	wake := 0.0
	if full := l.free - exchangeHeld/x.rates[i]; len(e.out.paths[i].waiting) > 0 && full > x.now {
		wake = full + 1e-9
	} else if l.answer {
		wake = l.free + 1e-9
	}
	if wake > x.now && !(l.wake > x.now && l.wake <= wake) {
		l.wake = wake
		heap.Push(&x.events, exchangeEvent{at: wake, end: end})
	}
}

// TestExchangeFillsBothLinks: both ends send 8 MiB to each other over links of 1 Gbit/s and 300 Mbit/s that the file
// takes for 1 Gbit/s and 500 Mbit/s. The heuristic has at least 90% of the sum, one path the share of the first.
func TestExchangeFillsBothLinks(t *testing.T) {
	t.Parallel()
	const bytes = 8 << 20
	share := func(make func(*Plan) Policy) float64 {
		x := &exchange{t: t, rates: []float64{125e6, 37.5e6}}
		return bytes / x.seconds(bytes, make) / (125e6 + 37.5e6)
	}
	first := func(p *Plan) Policy { return &singlePath{plan: p} }
	ours, one, even := share(NewLEOQueue), share(first), share(NewRoundRobin)
	if ours < 0.9 || one > 0.78 || even > 0.5 {
		t.Errorf("of the sum: leo-queue %.3f, first %.3f, round-robin %.3f", ours, one, even)
	}
}

package netsim

// eventKind is what happens. The two arguments of an event depend on it.
type eventKind uint8

const (
	eventCall    eventKind = iota // a: the slot of a function
	eventFree                     // a: a port that has finished a transmission while others wait
	eventArrive                   // a: a port whose oldest packet in flight arrives
	eventAck                      // a: a way back whose oldest acknowledgements arrive
	eventTimeout                  // a: a connection
	eventRates                    // the rates of flows are to be shared out again
	eventEnded                    // a flow ends
)

// event is one thing that happens at a time.
type event struct {
	at   Time
	turn uint64 // the order of scheduling, above the kind
	a, b int32
}

func (e *event) kind() eventKind { return eventKind(e.turn & 7) }

// before is the order of events: by time, and of those at one time as they were scheduled.
func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.turn < o.turn }

// engine has the time and the events to come, in a heap of four children per parent.
// Events are values in one slice, so scheduling allocates nothing once the slice has grown.
type engine struct {
	now     Time
	heap    []event
	turns   uint64
	handled uint64
	calls   []func() // by slot
	unused  []int32  // slots of calls
}

// Now is the time of the simulation.
func (e *engine) Now() Time { return e.now }

// Handled is how many events have happened.
func (e *engine) Handled() uint64 { return e.handled }

// Next is the time of the next event, or Never.
func (e *engine) Next() Time {
	if len(e.heap) == 0 {
		return Never
	}
	return e.heap[0].at
}

// At calls f at a time, which is not before now.
func (e *engine) At(at Time, f func()) {
	slot := int32(len(e.calls))
	if n := len(e.unused); n > 0 {
		slot, e.unused = e.unused[n-1], e.unused[:n-1]
		e.calls[slot] = f
	} else {
		e.calls = append(e.calls, f)
	}
	e.schedule(at, eventCall, slot, 0)
}

// call makes the call of a slot.
func (e *engine) call(slot int32) {
	f := e.calls[slot]
	e.calls[slot] = nil
	e.unused = append(e.unused, slot)
	f()
}

// schedule adds an event.
func (e *engine) schedule(at Time, kind eventKind, a, b int32) {
	e.turns += 8
	ev := event{max(at, e.now), e.turns | uint64(kind), a, b}
	e.heap = append(e.heap, ev)
	h, i := e.heap, len(e.heap)-1
	for i > 0 {
		parent := (i - 1) / 4
		if !ev.before(&h[parent]) {
			break
		}
		h[i] = h[parent]
		i = parent
	}
	h[i] = ev
}

// take removes the next event and makes its time now. REQUIRES: there is one.
func (e *engine) take() event {
	first := e.heap[0]
	last := len(e.heap) - 1
	ev := e.heap[last]
	e.heap = e.heap[:last]
	if last > 0 {
		e.sink(ev)
	}
	e.now = first.at
	e.handled++
	return first
}

// sink puts an event into the heap whose first place is free.
func (e *engine) sink(ev event) {
	h, i := e.heap, 0
	for {
		child := 4*i + 1
		if child >= len(h) {
			break
		}
		for other := child + 1; other < min(4*i+5, len(h)); other++ {
			if h[other].before(&h[child]) {
				child = other
			}
		}
		if !h[child].before(&ev) {
			break
		}
		h[i] = h[child]
		i = child
	}
	h[i] = ev
}

package paths

// Outcome is what became of the requests of a replay, in the order of arrival.
type Outcome struct {
	Choices []int
	// Begin is when a request was put on its path, End when it was back; Host is its time inside hosts.
	Begin, End, Host []float64
}

// Load is how requests come: those of a trace, each at its time; or, with Outstanding above 0, the same requests
// without their times, a fixed number at once: the next begins when one ends.
type Load struct {
	Trace       Trace
	Outstanding int
	// Delay is by how much longer than without jitter the network delays a request: a number from 0 to 1, by request
	// and stage, that is multiplied with the jitter. Nil: not at all.
	Delay func(request, stage int) float64
}

// Replay runs requests through queues: at every resource of its path a request waits for those that came before it,
// first come, first served, and occupies one unit of the resource's capacity for its work.
func Replay(p *Plan, policy Policy, load Load) *Outcome {
	n := len(load.Trace)
	r := &replay{plan: p, selector: NewSelector(p, policy), load: load, ids: make([]int32, n),
		out: &Outcome{make([]int, n), make([]float64, n), make([]float64, n), make([]float64, n)}}
	r.free = make([][]float64, len(p.Resources))
	for i := range r.free {
		r.free[i] = make([]float64, p.Resources[i].Capacity)
	}
	r.run()
	return r.out
}

// replay is one under way.
type replay struct {
	plan     *Plan
	selector *Selector
	load     Load
	out      *Outcome
	ids      []int32
	free     [][]float64 // by resource: when each unit is free
	events   eventHeap
	turn     int64
	waiting  []int // requests that must wait for others, in their order
	next     int   // the request that begins next, where they come without times
}

// event is a request that comes to a stage. Stage -1: it arrives.
type event struct {
	at      float64
	turn    int64
	request int32
	stage   int32
}

func (r *replay) run() {
	if r.load.Outstanding > 0 {
		for r.next < min(r.load.Outstanding, len(r.load.Trace)) {
			r.push(0, r.next, -1)
			r.next++
		}
	} else if len(r.load.Trace) > 0 {
		r.push(r.load.Trace[0].At, 0, -1)
		r.next = 1
	}
	for len(r.events) > 0 {
		e := r.events.pop()
		if e.stage < 0 {
			r.arrive(e.at, int(e.request))
			continue
		}
		r.step(e.at, int(e.request), int(e.stage))
	}
}

func (r *replay) push(at float64, request, stage int) {
	r.turn++
	r.events.push(event{at, r.turn, int32(request), int32(stage)})
}

// arrive begins a request, unless it has to wait for another.
func (r *replay) arrive(now float64, i int) {
	if r.load.Outstanding == 0 && r.next < len(r.load.Trace) {
		r.push(r.load.Trace[r.next].At, r.next, -1)
		r.next++
	}
	if len(r.waiting) > 0 || !r.begin(now, i) {
		r.waiting = append(r.waiting, i)
	}
}

func (r *replay) begin(now float64, i int) bool {
	id, choice := r.selector.Begin(now, &r.load.Trace[i])
	if choice == Wait {
		return false
	}
	r.ids[i], r.out.Choices[i], r.out.Begin[i] = id, choice, now
	r.step(now, i, 0)
	return true
}

// step puts a request that has come to a stage in its queue.
func (r *replay) step(now float64, i, stage int) {
	stages := r.plan.Types[r.load.Trace[i].Kind].Choices[r.out.Choices[i]].Stages
	if stage == len(stages) {
		r.end(now, i)
		return
	}
	s := &stages[stage]
	done := now
	if s.Work > 0 {
		unit := r.soonest(s.Resource)
		done = max(now, *unit) + s.Work
		*unit = done
	}
	done += s.After
	if s.Jitter > 0 && r.load.Delay != nil {
		done += s.Jitter * r.load.Delay(i, stage)
	}
	if !s.Network {
		r.out.Host[i] += done - now
	}
	r.push(done, i, stage+1)
}

// soonest is the unit of a resource that is free first.
func (r *replay) soonest(resource int) *float64 {
	units := r.free[resource]
	best := 0
	for i, at := range units {
		if at < units[best] {
			best = i
		}
	}
	return &units[best]
}

// end tells the policy, and begins what waited.
func (r *replay) end(now float64, i int) {
	r.out.End[i] = now
	r.selector.End(now, r.ids[i], r.out.Host[i])
	for len(r.waiting) > 0 && r.begin(now, r.waiting[0]) {
		r.waiting = r.waiting[1:]
	}
	if r.load.Outstanding > 0 && r.next < len(r.load.Trace) {
		r.push(now, r.next, -1)
		r.next++
	}
}

// eventHeap has the earliest event first; of those at one time the one that was pushed first.
type eventHeap []event

func (e *event) before(o *event) bool { return e.at < o.at || e.at == o.at && e.turn < o.turn }

func (h *eventHeap) push(e event) {
	*h = append(*h, e)
	a, i := *h, len(*h)-1
	for i > 0 {
		parent := (i - 1) / 2
		if !e.before(&a[parent]) {
			break
		}
		a[i] = a[parent]
		i = parent
	}
	a[i] = e
}

func (h *eventHeap) pop() event {
	a := *h
	first, e := a[0], a[len(a)-1]
	a = a[:len(a)-1]
	*h = a
	i := 0
	for child := 1; child < len(a); child = 2*i + 1 {
		if child+1 < len(a) && a[child+1].before(&a[child]) {
			child++
		}
		if !a[child].before(&e) {
			break
		}
		a[i] = a[child]
		i = child
	}
	if len(a) > 0 {
		a[i] = e
	}
	return first
}

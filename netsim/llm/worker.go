package llm

import "starling/netsim"

// worker is a tensor-parallel group of GPUs: one stage of one pipeline.
type worker struct {
	run            *run
	stage, replica int
	ops            []operation
	at, iteration  int
	arrived        map[arrival]bool // activations and gradients from neighbors
	waits          *arrival         // what it waits for, if it waits for that
}

// arrival names what a neighbor sends.
type arrival struct {
	iteration, microbatch, layer int
	backward                     bool
}

// step executes operations until one has to wait. What that one waits for calls step.
func (w *worker) step() {
	for {
		if w.at == len(w.ops) {
			w.run.ends[w.iteration] = w.run.net.Now() // the last worker's stays
			w.at = 0
			if w.iteration++; w.iteration == w.run.Iterations {
				return
			}
		}
		op := &w.ops[w.at]
		w.at++
		if w.do(op) {
			return
		}
	}
}

// do executes an operation, and reports whether the worker waits for its end.
func (w *worker) do(op *operation) (waits bool) {
	r := w.run
	switch op.kind {
	case opCompute:
		seconds := op.seconds
		if op.experts {
			m := w.exchangeKey(op)
			seconds *= r.variant(&m).load[w.replica%r.EP]
		}
		r.busy += seconds
		r.net.At(r.net.Now()+netsim.Time(seconds*float64(netsim.Second)), w.step)
		return true
	case opExchange:
		r.exchange(w, op)
		return true
	case opSend:
		r.toNeighbor(w, op)
	case opRecv:
		return w.receive(arrival{w.iteration, int(op.microbatch), int(op.layer), op.backward})
	case opReduce:
		r.reduce(w, int(op.layer))
	case opGathered:
		return r.parameters(w, int(op.layer))
	}
	return false
}

func (w *worker) receive(a arrival) (waits bool) {
	if w.arrived[a] {
		delete(w.arrived, a)
		return false
	}
	w.waits = &a
	return true
}

// deliver gives a worker what its neighbor sent.
func (w *worker) deliver(a arrival) {
	if w.waits != nil && *w.waits == a {
		w.waits = nil
		w.step()
		return
	}
	w.arrived[a] = true
}

// exchangeKey names the exchange of an operation in the worker's group.
func (w *worker) exchangeKey(op *operation) exchangeKey {
	r := w.run
	return exchangeKey{group: (w.stage*r.replicas + w.replica) / r.EP, iteration: w.iteration,
		microbatch: int(op.microbatch), layer: int(op.layer), backward: op.backward, back: op.back}
}

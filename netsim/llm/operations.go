package llm

// operation is a step of a worker.
type operation struct {
	kind       opKind
	backward   bool
	back       uint8 // of an exchange: 1: from the experts to the tokens' owners
	microbatch int16
	layer      int16 // of send and recv: the layer that consumes the activations
	seconds    float64
	experts    bool // compute: seconds are for the mean load of experts
}

type opKind uint8

const (
	opCompute opKind = iota
	opExchange
	opSend
	opRecv
	opReduce
	opGathered // wait for the layer's parameters
)

// operations of a stage, the same in every iteration.
func (r *run) operations(stage int) (out []operation) {
	last := r.Microbatches - 1
	per := r.Layers / (r.PP * r.VirtualStages)
	for _, p := range passes(stage, r.PP, r.Microbatches, r.VirtualStages) {
		first := (p.chunk*r.PP + stage) * per // its first layer
		out = r.receive(out, p, first, per)
		for i := range per {
			layer := first + i
			if p.backward {
				layer = first + per - 1 - i
			}
			if p.microbatch == 0 && !p.backward {
				out = append(out, operation{kind: opGathered, layer: int16(layer)})
			}
			out = r.layer(out, p, layer)
			if p.microbatch == last && p.backward {
				out = append(out, operation{kind: opReduce, layer: int16(layer), backward: true})
			}
		}
		out = r.send(out, p, first, per)
	}
	return out
}

// receive waits for what the neighbor sent, where there is one.
func (r *run) receive(out []operation, p pass, first, per int) []operation {
	if p.backward && first+per == r.Layers || !p.backward && first == 0 {
		return out
	}
	layer := first
	if p.backward {
		layer = first + per - 1
	}
	return append(out, operation{kind: opRecv, backward: p.backward, microbatch: int16(p.microbatch),
		layer: int16(layer)})
}

// send hands the result to the neighbor, where there is one.
func (r *run) send(out []operation, p pass, first, per int) []operation {
	layer := first + per
	if p.backward {
		layer = first - 1
	}
	if layer < 0 || layer == r.Layers {
		return out
	}
	return append(out, operation{kind: opSend, backward: p.backward, microbatch: int16(p.microbatch),
		layer: int16(layer)})
}

// layer is the computing and the exchanges of one layer. The backward pass computes twice as much.
func (r *run) layer(out []operation, p pass, layer int) []operation {
	op := operation{backward: p.backward, microbatch: int16(p.microbatch), layer: int16(layer)}
	compute := func(seconds float64, experts bool) {
		op.kind, op.seconds, op.experts = opCompute, seconds, experts
		out = append(out, op)
	}
	exchange := func(back uint8) {
		op.kind, op.back = opExchange, back
		out = append(out, op)
	}
	switch {
	case r.EP == 1 && p.backward:
		compute(2*(r.attention+r.feedForward), false)
	case r.EP == 1:
		compute(r.attention+r.feedForward, false)
	case p.backward: // the gradient goes to the experts, through them, and back to the tokens' owners
		exchange(0)
		compute(2*r.feedForward, true)
		exchange(1)
		compute(2*r.attention, false)
	default:
		compute(r.attention, false)
		exchange(0)
		compute(r.feedForward, true)
		exchange(1)
	}
	return out
}

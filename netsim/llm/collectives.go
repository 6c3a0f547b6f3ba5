package llm

// toNeighbor starts the transfer of a worker's activations, or their gradient, to its neighbor.
func (r *run) toNeighbor(w *worker, op *operation) {
	per := r.Layers / (r.PP * r.VirtualStages)
	to := r.worker(int(op.layer)/per%r.PP, w.replica)
	a := arrival{w.iteration, int(op.microbatch), int(op.layer), op.backward}
	flows := []flow{{from: w.host(), to: to.host(), bytes: int64(r.activations())}}
	if to == w { // one stage with several chunks
		flows = nil
	}
	r.start(traits{pipeline, int(op.microbatch), int(op.layer), op.backward}, flows, func() { to.deliver(a) })
}

// exchange begins the all-to-all of a group when its last member has come.
func (r *run) exchange(w *worker, op *operation) {
	m := w.exchangeKey(op)
	if r.exchanges[m]++; r.exchanges[m] < r.EP {
		return
	}
	delete(r.exchanges, m)
	t := traits{expert, m.microbatch, m.layer, m.backward}
	x := r.variant(&m)
	if r.Policy.matchings {
		r.inPhases(t, x.matrix(int(m.back)), w)
	} else {
		r.allToAll(t, x.matrix(int(m.back)), w)
	}
}

// allToAll starts all flows at once. A member goes on when what it sends and receives has ended.
func (r *run) allToAll(t traits, sizes [][]int64, w *worker) {
	left := make([]int, r.EP) // flows of each member
	first := w.replica - w.replica%r.EP
	var flows []flow
	for i := range sizes {
		for j, bytes := range sizes[i] {
			if i == j || bytes == 0 {
				continue
			}
			left[i]++
			left[j]++
			flows = append(flows, flow{r.host(w.stage, first+i), r.host(w.stage, first+j), bytes, func() {
				r.ended(left, w.stage, first, i)
				r.ended(left, w.stage, first, j)
			}})
		}
	}
	r.start(t, flows, nil)
	r.wakeIdle(left, w.stage, first)
}

// ended counts a flow of a member that has ended.
func (r *run) ended(left []int, stage, first, member int) {
	if left[member]--; left[member] == 0 {
		r.worker(stage, first+member).step()
	}
}

// wakeIdle lets members go on that neither send nor receive.
func (r *run) wakeIdle(left []int, stage, first int) {
	for i, n := range left {
		if n == 0 {
			r.net.At(r.net.Now(), r.worker(stage, first+i).step)
		}
	}
}

// reduce begins the reduce-scatter of a layer's gradients when all replicas have them, and the
// all-gather of its parameters after that.
func (r *run) reduce(w *worker, layer int) {
	key := parameters{w.iteration + 1, layer}
	if r.ready[key]++; r.ready[key] < r.replicas {
		return
	}
	delete(r.ready, key)
	stage := w.stage
	r.start(traits{scatter, r.Microbatches - 1, layer, true}, r.rings(stage, 4), func() {
		r.start(traits{gather, 0, layer, false}, r.rings(stage, 2), func() { r.parametersCame(key) })
	})
}

// rings returns the flows of a reduce-scatter or an all-gather of width bytes per parameter:
// each worker sends (n-1)/n of its parameters to the next replica. Experts are replicated in every
// EP-th replica only.
func (r *run) rings(stage, width int) (flows []flow) {
	dense, experts := r.Model.attention(), r.block()
	if r.EP > 1 {
		experts *= float64(r.Experts / r.EP)
	} else {
		dense, experts = dense+experts*float64(max(1, r.Experts)), 0
	}
	flows = r.ring(flows, stage, 1, dense*float64(width))
	return r.ring(flows, stage, r.EP, experts*float64(width))
}

func (r *run) ring(flows []flow, stage, step int, bytes float64) []flow {
	n := r.replicas / step
	if n < 2 || bytes == 0 {
		return flows
	}
	each := int64(bytes * float64(n-1) / float64(n))
	for i := range r.replicas {
		flows = append(flows, flow{from: r.host(stage, i), to: r.host(stage, (i+step)%r.replicas), bytes: each})
	}
	return flows
}

// parameters names a layer's for an iteration.
type parameters struct{ iteration, layer int }

// parameters reports whether a worker waits for the parameters of a layer.
func (r *run) parameters(w *worker, layer int) (waits bool) {
	key := parameters{w.iteration, layer}
	if w.iteration == 0 || r.gathered[key] {
		return false
	}
	r.waiting[key] = append(r.waiting[key], w)
	return true
}

func (r *run) parametersCame(key parameters) {
	r.gathered[key] = true
	for _, w := range r.waiting[key] {
		w.step()
	}
	delete(r.waiting, key)
}

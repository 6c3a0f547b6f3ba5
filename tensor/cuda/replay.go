package cuda

import (
	"runtime"
	"slices"
	"unsafe"
)

// replay is a sequence of operations as a graph of the driver's.
type replay struct {
	sequence           // with the arguments that the graph has now
	nodes    []uintptr // of kernels
	graph    uintptr
	exec     uintptr
}

// capture makes a graph of a sequence; nil where the driver or a library cannot. REQUIRES: the thread is the card's.
func (d *Device) capture(s sequence) *replay {
	if d.card.captureBegin == 0 {
		return nil
	}
	const relaxed = 2 // what other threads do meanwhile has nothing to do with it
	if call(d.card.captureBegin, d.stream, relaxed) != 0 {
		return nil
	}
	g := &replay{sequence: sequence{slices.Clone(s.ops), slices.Clone(s.args)}, nodes: make([]uintptr, len(s.ops))}
	ok := true
	for i, op := range g.ops {
		if ok = d.start(op, g.args[op.lo:op.hi]) == 0; !ok {
			break
		}
		if op.kernel {
			g.nodes[i] = d.lastNode()
		}
	}
	if call(d.card.captureEnd, d.stream, address(&g.graph)) != 0 || !ok ||
		call(d.card.graphInstantiate, address(&g.exec), g.graph, 0) != 0 {
		g.close(d)
		return nil
	}
	return g
}

// lastNode is the node that was captured last; 0 where the driver does not say.
func (d *Device) lastNode() uintptr {
	var status int32
	var id, graph, nodes, n uintptr
	code := call(d.card.captureInfo, d.stream, address(&status), address(&id), address(&graph), address(&nodes),
		address(&n))
	if code != 0 || n != 1 {
		return 0
	}
	return *(*uintptr)(pointer(nodes))
}

// nodeParams is the driver's CUDA_KERNEL_NODE_PARAMS_v1.
type nodeParams struct {
	f             uintptr
	shape         [6]uint32
	shared, _     uint32
	params, extra uintptr
}

// launch launches the graph with the arguments of a sequence; false where it is not of this sequence.
func (g *replay) launch(d *Device, s sequence) bool {
	if !g.same(&s) {
		return false
	}
	for i, op := range g.ops {
		had, want := g.args[op.lo:op.hi], s.args[s.ops[i].lo:s.ops[i].hi]
		if !op.kernel || slices.Equal(had, want) {
			continue
		}
		copy(had, want)
		if !g.update(d, i) {
			d.dropGraphs() // this one has arguments of two sequences now
			d.queue.off = true
			return false
		}
	}
	d.do("cuGraphLaunch", d.card.graphLaunch, g.exec, d.stream)
	return true
}

// update gives a node its arguments.
func (g *replay) update(d *Device, i int) bool {
	op := g.ops[i]
	if g.nodes[i] == 0 {
		return false
	}
	args := &[1]unsafe.Pointer{unsafe.Pointer(&g.args[op.lo])}
	p := &nodeParams{f: op.f, shape: op.shape, shared: op.shared, params: address(&args[0])}
	code := call(d.card.graphUpdate, g.exec, g.nodes[i], address(p))
	runtime.KeepAlive(args)
	return code == 0
}

func (g *replay) close(d *Device) {
	if g.exec != 0 {
		call(d.card.execDestroy, g.exec)
	}
	if g.graph != 0 {
		call(d.card.graphDestroy, g.graph)
	}
}

// dropGraphs gives all graphs back.
func (d *Device) dropGraphs() {
	for _, g := range d.queue.graphs {
		g.close(d)
	}
	clear(d.queue.graphs)
}

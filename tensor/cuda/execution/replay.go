package execution

import (
	"runtime"
	"slices"
	"unsafe"

	"starling/tensor/cuda/driver"
)

// replay is a sequence of operations as a graph of the driver's.
type replay struct {
	sequence           // with the arguments that the graph has now
	nodes    []uintptr // of kernels
	graph    uintptr
	exec     uintptr
}

// capture makes a graph of a sequence; nil where the driver or a library cannot. REQUIRES: the thread is the GPU's.
func (s *Stream) capture(of sequence) *replay {
	if s.GPU.CaptureBegin == 0 {
		return nil
	}
	const relaxed = 2 // what other threads do meanwhile has nothing to do with it
	if driver.Call(s.GPU.CaptureBegin, s.Handle, relaxed) != 0 {
		return nil
	}
	g := &replay{sequence: sequence{slices.Clone(of.ops), slices.Clone(of.args)}, nodes: make([]uintptr, len(of.ops))}
	ok := true
	for i, op := range g.ops {
		if ok = s.start(op, g.args[op.lo:op.hi]) == 0; !ok {
			break
		}
		if op.kernel {
			g.nodes[i] = s.lastNode()
		}
	}
	if driver.Call(s.GPU.CaptureEnd, s.Handle, driver.Address(&g.graph)) != 0 || !ok ||
		driver.Call(s.GPU.GraphInstantiate, driver.Address(&g.exec), g.graph, 0) != 0 {
		g.close(s)
		return nil
	}
	return g
}

// lastNode is the node that was captured last; 0 where the driver does not say.
func (s *Stream) lastNode() uintptr {
	var status int32
	var id, graph, nodes, n uintptr
	code := driver.Call(s.GPU.CaptureInfo, s.Handle, driver.Address(&status), driver.Address(&id), driver.Address(&graph), driver.Address(&nodes),
		driver.Address(&n))
	if code != 0 || n != 1 {
		return 0
	}
	return *(*uintptr)(driver.Pointer(nodes))
}

// nodeParams is the driver's CUDA_KERNEL_NODE_PARAMS_v1.
type nodeParams struct {
	f             uintptr
	shape         [6]uint32
	shared, _     uint32
	params, extra uintptr
}

// launch launches the graph with the arguments of a sequence; false where it is not of this sequence.
func (g *replay) launch(s *Stream, now sequence) bool {
	if !g.same(&now) {
		return false
	}
	for i, op := range g.ops {
		had, want := g.args[op.lo:op.hi], now.args[now.ops[i].lo:now.ops[i].hi]
		if !op.kernel || slices.Equal(had, want) {
			continue
		}
		copy(had, want)
		if !g.update(s, i) {
			s.dropGraphs() // this one has arguments of two sequences now
			s.queue.off = true
			return false
		}
	}
	s.Do("cuGraphLaunch", s.GPU.GraphLaunch, g.exec, s.Handle)
	return true
}

// update gives a node its arguments.
func (g *replay) update(s *Stream, i int) bool {
	op := g.ops[i]
	if g.nodes[i] == 0 {
		return false
	}
	args := &[1]unsafe.Pointer{unsafe.Pointer(&g.args[op.lo])}
	p := &nodeParams{f: op.f, shape: op.shape, shared: op.shared, params: driver.Address(&args[0])}
	code := driver.Call(s.GPU.GraphUpdate, g.exec, g.nodes[i], driver.Address(p))
	runtime.KeepAlive(args)
	return code == 0
}

func (g *replay) close(s *Stream) {
	if g.exec != 0 {
		driver.Call(s.GPU.ExecDestroy, g.exec)
	}
	if g.graph != 0 {
		driver.Call(s.GPU.GraphDestroy, g.graph)
	}
}

// dropGraphs gives all graphs back.
func (s *Stream) dropGraphs() {
	for _, g := range s.queue.graphs {
		g.close(s)
	}
	clear(s.queue.graphs)
}

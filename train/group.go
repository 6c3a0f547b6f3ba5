package train

import (
	"context"
	"slices"
	"time"

	"starling/coflow"
	"starling/collective"
	"starling/nn"
	"starling/tensor"
	"starling/wire"
)

// Group is the workers of a run, joined by collectives. Sums are made in a fixed order,
// so that they have the same bits on every worker and in every run.
type Group struct {
	ctx  context.Context
	comm *collective.Comm
	dev  tensor.Device
	// servers of equally many workers each: gradients are reduced inside them first.
	servers int

	// reducer sums gradients on the devices themselves; nil: the hosts do, in order of ranks.
	reducer tensor.Reducer
	within  time.Duration

	buckets *collective.Buckets
	place   map[*nn.Param]int // in the buckets
}

// NewGroup is the group of an endpoint's workers, for gradients on dev. They are on so
// many servers, equally many on each, in rank order.
func NewGroup(ctx context.Context, end wire.Endpoint, dev tensor.Device, servers int) *Group {
	return &Group{ctx: ctx, comm: collective.New(end), dev: dev, servers: servers}
}

// ReduceBy has gradients be summed by the devices, with a deadline for each step. The order of additions is theirs.
func (g *Group) ReduceBy(r tensor.Reducer, within time.Duration) { g.reducer, g.within = r, within }

// AllReduce sends nothing of a device that has failed.
func (g *Group) AllReduce(epoch, batch int, v []float64) error {
	if err := g.dev.Err(); err != nil {
		return err
	}
	id := coflow.ID{Epoch: uint32(epoch), Batch: uint32(batch), Type: coflow.Control, Layer: -1}
	return g.comm.AllReduce64(g.ctx, id, wire.Control, v, collective.Ordered)
}

// Gradients travel in buckets, each as soon as the backward pass has filled it.
func (g *Group) Gradients(epoch, batch int, params []*nn.Param) (Gradients, error) {
	if g.reducer != nil {
		return onDevices{g, params}, nil
	}
	if g.buckets == nil {
		g.buckets, g.place = gradientBuckets(g.comm, g.dev, g.servers, params)
	}
	id := coflow.ID{Epoch: uint32(epoch), Batch: uint32(batch), Type: coflow.Params, Layer: -1, Backward: true}
	return inFlight{g}, g.buckets.Begin(g.ctx, id)
}

// gradientBuckets packs the gradients in the order of the backward pass.
func gradientBuckets(comm *collective.Comm, dev tensor.Device, servers int, params []*nn.Param) (*collective.Buckets,
	map[*nn.Param]int) {
	var grads []tensor.Matrix
	place := map[*nn.Param]int{}
	for _, p := range slices.Backward(params) {
		place[p] = len(grads)
		grads = append(grads, p.Grad)
	}
	return collective.NewBuckets(comm, dev, wire.Parameter, collective.Among(servers), collective.BucketBytes,
		grads), place
}

// inFlight is the all-reduce of a step's gradients.
type inFlight struct{ *Group }

func (g inFlight) Ready(params []*nn.Param) {
	for _, p := range slices.Backward(params) {
		g.buckets.Ready(g.place[p])
	}
}

func (g inFlight) Wait() error { return g.buckets.Wait(g.ctx) }

// onDevices is the all-reduce of a step's gradients by the devices themselves.
type onDevices struct {
	*Group
	params []*nn.Param
}

func (onDevices) Ready([]*nn.Param) {}

func (g onDevices) Wait() error {
	var all []tensor.Matrix
	for _, p := range slices.Backward(g.params) {
		all = append(all, p.Grad)
	}
	end := g.comm.Endpoint()
	err := g.reducer.Reduce(all, end.Done(), g.within)
	if err != nil && end.Err() != nil {
		return end.Err() // which was first
	}
	return err
}

package simulate

import (
	"context"
	"fmt"
	"math/bits"
	"runtime"
	"time"

	"starling/cost"
	"starling/event"
	"starling/graph"
	"starling/plan"
	"starling/setup"
	"starling/spec"
	"starling/tensor"
	"starling/tensor/cpu/simd"
)

// chargeBy replaces "measured" by the rates of this machine, with the shapes of the first case, so that all cases are
// charged alike. They are measured once and kept in plan's file of rates, so that two simulations of the same print the
// same. from says where they come from; "": they were given.
func (o *Options) chargeBy(ctx context.Context, first *spec.Spec, events event.Listener) (from string, err error) {
	if o.Computing != "measured" {
		for flag, given := range map[string]bool{"--measure": o.Measure, "--rates-file": o.RatesFile != ""} {
			if given {
				return "", graph.Apart(flag, "--computing "+o.Computing, "nothing is measured", "leave out one of the two")
			}
		}
		return "", nil
	}
	p, err := setup.FindParts(ctx, first, events)
	if err != nil {
		return "", err
	}
	defer p.Remove()
	s := *first
	s.ForData(&p.Meta, simd.Best().String())
	shape := cost.Shape{Rows: int(p.Book.Nodes) / s.Cluster.Workers, Degree: int(p.Book.Edges / max(p.Book.Nodes, 1)),
		In: s.Model.Hidden, Hidden: s.Model.Hidden, Type: s.Machine.RowType()}
	kept := &plan.Options{RatesFile: o.RatesFile, Measure: o.Measure}
	measured := o.measure
	if measured == nil {
		measured = func() (cost.Compute, error) { return measure(ctx, &s, shape) }
	}
	charging, path, err := kept.Charged(shapeKey(&s, shape), measured, events)
	if err != nil {
		return "", err
	}
	rates, err := cost.ParseCompute(charging.Computing)
	if err != nil {
		return "", err
	}
	o.Computing = rates.Shared(o.Sharing).String()
	return fmt.Sprintf("measured on this machine at %s, kept in %s; --measure measures anew", charging.Measured, path), nil
}

// shapeKey is what rates of operations depend on. Numbers of rows and edges count by their magnitude, so that clusters of
// about one size are charged alike.
func shapeKey(s *spec.Spec, shape cost.Shape) string {
	return fmt.Sprintf("%s rows=2^%d degree=2^%d width=%d threads=%d", s.Machine.DType, bits.Len64(uint64(shape.Rows)),
		bits.Len64(uint64(shape.Degree)), shape.Hidden, s.Machine.Cores())
}

// measure times the operations of a shape, and sending, with all of this machine.
func measure(ctx context.Context, s *spec.Spec, shape cost.Shape) (cost.Compute, error) {
	dev := setup.HostDevice(s)
	defer dev.Close()
	c := cost.MeasureCompute(dev, shape, time.Now)
	sending, err := cost.MeasureSending(ctx, tensor.CPUSeconds)
	if err != nil {
		return c, spec.Mistake("--computing measured", graph.Sentence(err.Error()), "a host with a loopback device",
			"give rates, as docs/simulator.md has them")
	}
	return c.WithSending(sending, runtime.GOMAXPROCS(0)), nil
}

// rates are what computing is charged by.
func (o *Options) rates() (cost.Compute, error) {
	if o.Computing == "none" {
		return cost.Compute{}, nil
	}
	c, err := cost.ParseCompute(o.Computing)
	if err != nil {
		return c, spec.Mistake("--computing", graph.Sentence(err.Error()), "measured, none or rates",
			`for example "gemm=40 spmm=2 memory=8 op=2us send=2 recv=2 message=8us"`)
	}
	return c, nil
}

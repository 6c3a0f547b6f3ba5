package inspect

import (
	"context"
	"fmt"
	"math"
	"slices"
	"time"

	"starling/event"
	"starling/graph"
	"starling/plan"
	"starling/report"
	"starling/setup"
	"starling/spec"
	"starling/tensor"
	"starling/tensor/cpu/simd"
	"starling/tensor/cuda"
	"starling/train"
)

// Estimate is what training a dataset with the usual settings will take on this
// machine: memory by the plan of that run, time by running a few epochs of a thinned
// graph.
type Estimate struct {
	Settings     string        `json:"settings"`
	Memory       int64         `json:"memory_bytes"`
	Mapped       int64         `json:"mapped_bytes"`
	Available    int64         `json:"available_bytes"`
	OnCard       int64         `json:"on_card_bytes"`
	Cards        []cuda.Info   `json:"cards,omitempty"` // of this host
	EpochSeconds report.Number `json:"epoch_seconds"`
	RunSeconds   report.Number `json:"run_seconds"`
	Timed        string        `json:"timed"` // what the time was taken from
}

// estimateEdges is the size up to which a graph is timed as it is. Larger ones
// are thinned to this and their time scaled up.
const estimateEdges = 400_000

// estimate plans and times the default run; nil where the dataset cannot be trained on.
func estimate(ctx context.Context, d *graph.Dataset) (*Estimate, error) {
	if d.Features == nil || d.Labels == nil || len(d.Splits.Train) == 0 {
		return nil, nil
	}
	s := spec.Default()
	if err := s.Complete(); err != nil {
		return nil, err
	}
	s.ForData(&d.Meta, simd.Best().String())
	part, share := thinned(d)
	e := &Estimate{Settings: fmt.Sprintf("%s, %s, hidden %d, %s, %s", s.Model.Name,
		event.Counted(s.Model.Layers, "layer"), s.Model.Hidden, s.Machine.DType,
		event.Counted(s.Training.Epochs, "epoch")), Available: tensor.MemoryFree()}
	p, err := plan.Alone(&s, d)
	if err != nil {
		return nil, err
	}
	e.Memory, e.Mapped, e.OnCard = p.Needed(), p.Mapped, p.OnGPU(&s)
	e.Cards, _ = cuda.GPUs() // none: starling devices says why
	if e.EpochSeconds, err = timeEpochs(ctx, s, part); err != nil {
		return nil, err
	}
	e.EpochSeconds = report.Number(float64(e.EpochSeconds) / share)
	e.RunSeconds = e.EpochSeconds * report.Number(s.Training.Epochs)
	e.Timed = "two epochs of it"
	if share < 1 {
		e.Timed = fmt.Sprintf("two epochs of a graph with %.2g%% of its vertices, scaled up", 100*share)
	}
	return e, nil
}

// timeEpochs is the shorter of two epochs after a first. They measure accuracy as the
// default run does.
func timeEpochs(ctx context.Context, s spec.Spec, d *graph.Dataset) (report.Number, error) {
	s.Training.Epochs = 3
	dev, err := setup.NewDevice(&s, 0)
	if err != nil {
		return 0, err
	}
	defer dev.Close()
	opt, err := setup.Options(&s, &d.Meta)
	if err != nil {
		return 0, err
	}
	var at []time.Time
	_, err = train.Full(ctx, dev, d, opt, event.Func(func(e event.Event) {
		if _, ok := e.(event.Epoch); ok {
			at = append(at, time.Now())
		}
	}))
	if err != nil || len(at) < 2 {
		return report.Number(math.NaN()), err
	}
	best := at[1].Sub(at[0])
	for i := 2; i < len(at); i++ {
		best = min(best, at[i].Sub(at[i-1]))
	}
	return report.Number(best.Seconds()), nil
}

// thinned is a graph of every k-th vertex with its in-edges, whose sources are wrapped
// round to vertices it has: the same degrees and features, about estimateEdges edges. It
// fits caches that the whole may not, so that the time is rather a lower bound.
func thinned(d *graph.Dataset) (part *graph.Dataset, share float64) {
	n := d.Graph.Nodes()
	k := n
	if heavy := d.Graph.Edges() + int64(n)*8; heavy > estimateEdges {
		k = int(max(1, int64(n)*estimateEdges/heavy))
	}
	pick := func(i int) int { return int(int64(i) * int64(n) / int64(k)) }
	var src, dst []uint32
	f := &graph.Features{Rows: k, Cols: d.Features.Cols}
	if sparse := d.Features.Kind() == graph.Sparse; sparse {
		f.Indptr = make([]int64, 1, k+1)
	} else {
		f.F32 = make([]float32, k*f.Cols)
	}
	class := make([]int32, k)
	var s graph.Splits
	for i := range k {
		v := pick(i)
		for _, u := range d.Graph.Neighbors(uint32(v)) {
			src, dst = append(src, u%uint32(k)), append(dst, uint32(i))
		}
		if f.F32 != nil {
			d.Features.CopyRow(f.F32[i*f.Cols:(i+1)*f.Cols], uint32(v))
		} else {
			a, b := d.Features.Indptr[v], d.Features.Indptr[v+1]
			f.Indices, f.Values = append(f.Indices, d.Features.Indices[a:b]...), append(f.Values, d.Features.Values[a:b]...)
			f.Indptr = append(f.Indptr, int64(len(f.Indices)))
		}
		class[i] = int32(i % d.Labels.Classes)
		if i == 0 || inSplit(&d.Splits, uint32(v)) {
			s.Train = append(s.Train, uint32(i))
		}
	}
	g, err := graph.FromEdges(k, src, dst, nil, graph.BuildOptions{})
	if err != nil {
		g = &graph.CSR{Indptr: make([]int64, k+1)}
	}
	meta := d.Meta
	meta.Nodes, meta.Edges, meta.Task = int64(k), g.Edges(), graph.SingleLabel
	return &graph.Dataset{Meta: meta, Graph: g, Features: f, Labels: &graph.Labels{Classes: d.Labels.Classes, Class: class}, Splits: s}, float64(k) / float64(n)
}

func inSplit(s *graph.Splits, v uint32) bool {
	_, found := slices.BinarySearch(s.Train, v)
	return found
}

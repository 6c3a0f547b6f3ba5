package plan

import (
	"errors"
	"fmt"

	"starling/event"
	"starling/graph"
	"starling/spec"
	"starling/tensor/cuda"
)

// planFunc is the plan of the same run with other settings.
type planFunc func(s *spec.Spec) (*Plan, error)

// ChooseDevice settles --device auto, and checks that a GPU is there and has the memory. again plans variants that
// may fit; nil: none are looked for.
func ChooseDevice(s *spec.Spec, p *Plan, again planFunc, events event.Listener) error {
	if s.Machine.Device == "cpu" || s.Machine.DType == "f64" {
		if s.Machine.Device == "auto" {
			s.Machine.Device = "cpu"
		}
		return nil
	}
	err := fitsGPU(s, p)
	if tooSmall := (*graph.InputError)(nil); errors.As(err, &tooSmall) && s.Mode == "mini" &&
		s.Machine.FeaturesOn == "auto" {
		host := *s
		host.Machine.FeaturesOn = "host"
		if p.Features > 0 && fitsGPU(&host, p) == nil { // the same count, without features
			err, s.Machine.FeaturesOn = nil, "host"
			events.On(event.Note{Text: fmt.Sprintf("features do not fit the GPU: their %s stay in the host's memory "+
				"(--features-on host)", event.Bytes(p.Features))})
		}
	}
	if err == nil && s.Mode == "mini" && s.Machine.DrawOn == "auto" && fitsGPU(s, p.withGraph()) != nil {
		s.Machine.DrawOn = "host"
	}
	if tooSmall := (*graph.InputError)(nil); errors.As(err, &tooSmall) && s.Machine.Device != "auto" {
		fits := func(other *spec.Spec, q *Plan) bool { return fitsGPU(other, q) == nil }
		if fix := fittingGPU(s, again, fits); fix != "" {
			tooSmall.Fix = fix
		}
	}
	switch {
	case err == nil && s.Machine.Device == "auto":
		s.Machine.Device = "cuda"
		events.On(event.Note{Text: "computing on a GPU (--device cuda)", Minor: true})
	case err != nil && s.Machine.Device == "auto":
		s.Machine.Device = "cpu"
		events.On(event.Note{Text: "computing on the CPU (--device cpu): " + err.Error()})
		return nil
	case errors.Is(err, cuda.ErrUnavailable):
		return spec.Mistake("--device", s.Machine.Device, "a device that this host has", err.Error())
	}
	return err
}

// withGraph is the plan of a run with the graph on the GPU once more, which batches are drawn from, and as much again
// for them.
func (p *Plan) withGraph() *Plan {
	q := *p
	q.Matrices += 2 * (p.Mapped - p.Features)
	return &q
}

// fitsGPU refuses a run whose matrices do not fit the memory of its GPU.
func fitsGPU(s *spec.Spec, p *Plan) error {
	gpus, err := cuda.GPUs()
	if err != nil {
		return err
	}
	number := max(0, s.Machine.GPU())
	if number >= len(gpus) {
		return spec.Mistake("--device", s.Machine.Device, fmt.Sprintf("cuda:0 to cuda:%d", len(gpus)-1),
			"see starling devices")
	}
	gpu, need := gpus[number], p.OnGPU(s)
	if !s.Machine.MemoryCheck || need <= gpu.Free {
		return nil
	}
	return &graph.InputError{Field: "memory of " + gpu.Name, Found: "a run that needs about " + event.Bytes(need),
		Want: fmt.Sprintf("at most the %s that are free there", event.Bytes(gpu.Free)),
		Fix: "try --dtype bf16, --cache-first off, a smaller --hidden or --mode mini (then --features-on host may help); " +
			"--memory-check=false tries anyway"}
}

// fittingGPU says which variants of a run fit its GPU, by the same count; "" where none was found.
func fittingGPU(s *spec.Spec, again planFunc, fits func(*spec.Spec, *Plan) bool) string {
	if again == nil {
		return ""
	}
	return fitting(smallerOnGPU(s), func(other *spec.Spec) (int64, bool) {
		q, err := again(other)
		if err != nil {
			return 0, false
		}
		return q.OnGPU(other), !q.AtLeast && fits(other, q)
	})
}

// smallerOnGPU lists ways to need less memory of a GPU: those that help on any device, and mini-batches, with features on the host
// where a whole layer's do not fit.
func smallerOnGPU(s *spec.Spec) []variant {
	list := smallerSpecs(s)
	switch {
	case s.Mode == "full" && s.Cluster.Workers <= 1 && !s.LearnsPairs():
		batches := *s
		batches.Mode, batches.Machine.FeaturesOn = "mini", "host"
		return append(list, variant{"--mode mini --features-on host", batches})
	case s.Mode == "mini" && s.Machine.FeaturesOn != "host":
		host := *s
		host.Machine.FeaturesOn = "host"
		return append([]variant{{"--features-on host", host}}, list...)
	}
	return list
}

// OnGPU is what a run takes there: its matrices, and copies of features and edges, which are there in both
// directions, unless features stay on the host.
func (p *Plan) OnGPU(s *spec.Spec) int64 {
	if s.Machine.FeaturesOn == "host" {
		return p.Matrices + 2*(p.Mapped-p.Features)
	}
	return p.Matrices + 2*p.Mapped
}

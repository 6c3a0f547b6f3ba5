package run

import (
	"fmt"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/plan"
	"starling/resume"
	"starling/setup"
	"starling/spec"
	"starling/tensor"
	"starling/tensor/cpu/simd"
	"starling/train"
)

// prepared is a run of one worker that can start: its spec complete, its data open, its plan
// made.
type prepared struct {
	spec spec.Spec
	data *graph.Dataset
	plan *plan.Plan
	from *train.State // nil: from the beginning
}

// prepare checks all that can be checked before the first epoch.
func prepare(s spec.Spec, events event.Listener) (*prepared, error) {
	if err := setup.Check(&s); err != nil {
		return nil, err
	}
	data, err := setup.OpenForTraining(&s)
	if err != nil {
		return nil, err
	}
	p := &prepared{spec: s, data: data}
	if err = setup.CheckEdges(&s, data); err == nil {
		err = setup.CheckWeights(&s, data.Graph)
	}
	if err == nil {
		setup.NoteEdges(&s, data.Graph.Weights != nil, data.Graph.EdgeDim, event.All(events))
		err = p.complete(events)
	}
	if err != nil {
		data.Close()
		return nil, err
	}
	return p, nil
}

// complete completes the spec from the data, the checkpoints and the machine, and makes the
// plan.
func (p *prepared) complete(events event.Listener) (err error) {
	s := &p.spec
	if s.Training.Patience > 0 && !s.LearnsPairs() && len(p.data.Splits.Val) == 0 {
		return spec.Mistake("--patience", fmt.Sprint(s.Training.Patience), "0 for a dataset without a validation split",
			"")
	}
	if err := s.ForLabels(&p.data.Meta); err != nil {
		return err
	}
	s.ForCounts(nn.LabelCounts(p.data.Labels, p.data.Splits.Train))
	from, err := resume.StartOf(s, func() resume.Identity { return resume.DatasetIdentity(p.data) }, &p.data.Meta, events)
	if err != nil {
		return err
	}
	if from != nil {
		p.from = from.State
		if p.from.Caches, _, err = from.Learnt(); err != nil {
			return err
		}
	}
	s.ForData(&p.data.Meta, simd.Best().String())
	if err := plan.PlaceFeatures(s, p.data, events); err != nil {
		return err
	}
	if p.plan, err = plan.Alone(s, p.data); err != nil {
		return err
	}
	if err := setup.CheckDiskRoom(s, p.plan.Parameters); err != nil {
		return err
	}
	again := func(other *spec.Spec) (*plan.Plan, error) { return plan.Alone(other, p.data) }
	if err := plan.ChooseDevice(s, p.plan, again, events); err != nil || s.Machine.OnGPU() {
		return err
	}
	return plan.Fits(s, p.plan, p.data, tensor.MemoryFree())
}

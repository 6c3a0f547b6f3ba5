package run

import (
	"fmt"
	"reflect"
	"strings"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/serve"
	"starling/spec"
	"starling/train"
)

// startOf is the state that a run starts from: its newest checkpoint with --resume, the weights of
// another run with --init-from; nil: random weights.
func startOf(s *spec.Spec, identity func() savedData, data *graph.Meta, events event.Listener) (*start, error) {
	from, err := checkpointToResume(s, identity, events)
	if from != nil || err != nil || s.Training.InitFrom == "" {
		return from, err
	}
	t, err := serve.Open(s.Training.InitFrom)
	if err != nil {
		return nil, err
	}
	if differ := shapeDifferences(t.Config.Model, s.ModelConfig(data)); len(differ) > 0 {
		return nil, spec.Mistake("--init-from", s.Training.InitFrom+", whose model differs: "+strings.Join(differ,
			"; "), "a model of the same shape",
			"give the settings that it was trained with; rates, dropout, seed and workers "+
				"may differ")
	}
	st := &train.State{Model: t.Weights, History: train.History{BestEpoch: -1}}
	return &start{State: st, spec: s}, nil
}

// shapeDifferences name the settings that give two models other weights.
func shapeDifferences(have, want nn.Config) (list []string) {
	a, b := reflect.ValueOf(have), reflect.ValueOf(want)
	for i := range a.NumField() {
		name := strings.Split(a.Type().Field(i).Tag.Get("json"), ",")[0]
		if strings.HasSuffix(name, "dropout") || reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()) {
			continue
		}
		if (name == "heads" || name == "out_heads") && !have.Attends() && !want.Attends() {
			continue
		}
		list = append(list, fmt.Sprintf("its %s is %v, this run's %v", name, a.Field(i), b.Field(i)))
	}
	return list
}

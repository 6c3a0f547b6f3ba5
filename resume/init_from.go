package resume

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

// StartOf is the state that a run starts from: its newest checkpoint with --resume, the weights of
// another run with --init-from; nil: random weights.
func StartOf(s *spec.Spec, identity func() Identity, data *graph.Meta, events event.Listener) (*Start, error) {
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
	from, err = WeightsOf(t, data.Schema, s)
	if err == nil {
		noteLearnt(t, data, events)
	}
	return from, err
}

// WeightsOf is a trained model as a start, with the learnt rows of types whose vertices a graph has.
func WeightsOf(t *serve.Trained, schema *graph.Schema, s *spec.Spec) (*Start, error) {
	of := *s
	of.Model.Name = t.Config.Model.Model
	from := &Start{State: &train.State{Model: t.Weights, History: train.History{BestEpoch: -1}}, Spec: &of}
	var learnt []nn.Tensor
	for k := range schema.Count() {
		if typ := &schema.Types[k]; t.SameVertices(typ) {
			learnt = append(learnt, train.LearntTensors(*t.Learnt[typ.Name], verticesOf(typ))...)
		}
	}
	if learnt == nil {
		return from, nil
	}
	packed, err := PackTensors(learnt, nil)
	if err != nil {
		return nil, err
	}
	all, err := packed.Bytes()
	from.OwnCaches = [][]byte{all}
	return from, err
}

func verticesOf(t *graph.VertexType) []uint32 {
	list := make([]uint32, t.Count)
	for i := range list {
		list[i] = uint32(t.First) + uint32(i)
	}
	return list
}

// noteLearnt says which types' rows are learnt anew.
func noteLearnt(t *serve.Trained, data *graph.Meta, events event.Listener) {
	for k := range data.Schema.Count() {
		typ := &data.Schema.Types[k]
		if t.Learnt[typ.Name] != nil && !t.SameVertices(typ) {
			events.On(event.Note{Text: fmt.Sprintf("the rows of %s are learnt anew: its vertices are others than those of %s",
				typ.Name, t.Dir)})
		}
	}
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

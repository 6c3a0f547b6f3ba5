package train

import (
	"context"
	"fmt"
	"math"
	"testing"

	"starling/graph"
	"starling/rng"
	"starling/tensor"
)

// withTask has the communities' labels made into those of another task. A vertex in no
// split has none.
func withTask(t *testing.T, kind string) *graph.Dataset {
	t.Helper()
	d := communities(t, 240, false)
	n, class := d.Graph.Nodes(), d.Labels.Class
	d.Splits.Test = d.Splits.Test[1:]
	unknown := uint32(2)
	l := &graph.Labels{Classes: 4}
	if kind == graph.MultiLabel {
		for v := range n {
			for c := range int32(4) {
				mark := uint8(0)
				if c == class[v] || c == (class[v]+1)%4 && class[v] < 2 {
					mark = 1
				}
				if uint32(v) == unknown {
					mark = graph.NoLabel
				}
				l.Multi = append(l.Multi, mark)
			}
		}
	} else {
		l.Classes = 2
		for v := range n {
			y := float32(class[v]) + 0.1*float32(rng.New(8).Normal(uint64(v)))
			z := 1 - y/2
			if uint32(v) == unknown {
				y, z = float32(math.NaN()), float32(math.NaN())
			}
			l.Values = append(l.Values, y, z)
		}
	}
	d.Labels, d.Meta.Task, d.Meta.Classes = l, kind, l.Classes
	return d
}

var taskKinds = []string{graph.MultiLabel, graph.Regression}

func taskOptions(d *graph.Dataset) Options {
	o := options("sage")
	o.Model.Out, o.Model.Dropout, o.Epochs = d.Labels.Classes, 0.2, 30
	return o
}

// TestTasksLearn: full graphs, on both devices and in bfloat16, and mini-batches.
func TestTasksLearn(t *testing.T) {
	for _, kind := range taskKinds {
		d := withTask(t, kind)
		o := taskOptions(d)
		check := func(name string, r *Result, err error) {
			t.Helper()
			if err != nil {
				t.Fatalf("%s, %s: %v", kind, name, err)
			}
			want := map[string]string{graph.MultiLabel: "micro_f1", graph.Regression: "r2"}[kind]
			if r.Metric != want || !(r.TestMetric > 0.4) || r.Measures[want] != r.TestMetric {
				t.Errorf("%s, %s: %s is %.3f, measures %v", kind, name, r.Metric, r.TestMetric, r.Measures)
			}
		}
		one := mustTrain(t, tensor.NewRef(), d, o)
		check("float64", one, nil)
		single := mustTrain(t, cpu(t, 2), d, o)
		check("float32", single, nil)
		for i, l := range single.Loss {
			if math.Abs(l-one.Loss[i]) > 1e-3 {
				t.Fatalf("%s: loss %d is %g, %g in float64", kind, i, l, one.Loss[i])
			}
		}
		half := o
		half.Rows = tensor.BF16
		check("bfloat16", mustTrain(t, cpu(t, 2), d, half), nil)
		for _, m := range []MiniOptions{{Sampler: "neighbour", Size: 16, Fanouts: []int{5, 5}}, {Sampler: "cluster", Size: 80, Clusters: 6}} {
			m.Threads = 2
			r, err := Mini(context.Background(), cpu(t, 2), d, o, m, nil)
			check("mini "+m.Sampler, r, err)
		}
	}
}

// TestTasksOnManyWorkers: the loss curve and the measures of one worker, whatever the
// strategy; one part may be without vertices of a split.
func TestTasksOnManyWorkers(t *testing.T) {
	for _, kind := range taskKinds {
		d := withTask(t, kind)
		o := taskOptions(d)
		o.Epochs = 8
		want := mustTrain(t, tensor.NewRef(), d, o)
		for _, strategy := range []string{"halo", "cagnet", "g3", "neutronstar"} {
			t.Run(fmt.Sprintf("%s/%s", kind, strategy), func(t *testing.T) {
				o := o
				o.Strategy = DefaultChoice(strategy)
				r := trainParts(t, cut(t, d, "multilevel", 3), func() tensor.Device { return tensor.NewRef() }, o)[0]
				for i, l := range want.Loss {
					if math.Abs(r.Loss[i]-l) > 1e-9 {
						t.Fatalf("loss %d is %.12g, want %.12g", i, r.Loss[i], l)
					}
				}
				for name, x := range want.Measures {
					if math.Abs(r.Measures[name]-x) > 1e-9 {
						t.Errorf("%s is %.12g, want %.12g", name, r.Measures[name], x)
					}
				}
			})
		}
	}
}

// TestTaskOfAnEmptyPart: a worker without vertices counts as the others do.
func TestTaskOfAnEmptyPart(t *testing.T) {
	dev := tensor.NewRef()
	for _, l := range []*graph.Labels{{Classes: 3, Multi: []uint8{}}, {Classes: 2, Values: []float32{}}, {Classes: 3, Class: []int32{}}} {
		task := taskOf(dev, l)
		counts := task.Counts(dev, dev.New(tensor.F64, 0, l.Classes), dev.Indices(nil))
		if task.Loss(dev, tensor.Matrix{}, dev.New(tensor.F64, 0, l.Classes), dev.Indices(nil), 1) != 0 || len(counts) != task.Width() {
			t.Errorf("%s: %v", l.Kind(), counts)
		}
	}
}

package batch

import (
	"testing"

	"starling/train"
	"starling/train/traintest"
)

// TestTasksLearn in mini-batches of seed vertices and of subgraphs.
func TestTasksLearn(t *testing.T) {
	for _, kind := range traintest.Tasks {
		d := traintest.WithTask(t, kind)
		for _, m := range []train.BatchSettings{{Sampler: "neighbour", Size: 16, Fanouts: []int{5, 5}},
			{Sampler: "cluster", Size: 80, Clusters: 6}} {
			m.Threads = 2
			traintest.LearnsTask(t, kind, "mini "+m.Sampler,
				mustMini(t, traintest.CPU(t, 2), d, traintest.TaskOptions(d), m))
		}
	}
}

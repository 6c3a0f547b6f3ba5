package spec

import (
	"strings"
	"testing"
)

// TestDeviceGPUSuggestsCUDA: not cpu, which resembles it more.
func TestDeviceGPUSuggestsCUDA(t *testing.T) {
	for device, want := range map[string]string{"gpu": "did you mean cuda?", "GPU:1": "did you mean cuda:1?",
		"cupa": "did you mean cuda?", "cpus": "did you mean cpu?"} {
		s := Default()
		s.Machine.Device = device
		if err := s.Validate(); !isMistake(err, want) || !isMistake(err, "want one of cpu, cuda, auto") {
			t.Errorf("%s: %v", device, err)
		}
	}
}

// TestModelsOfTypedGraphsThatAreNotHere: a user of one is sent to those that are, not to one that resembles it.
func TestModelsOfTypedGraphsThatAreNotHere(t *testing.T) {
	for _, model := range []string{"magnn", "compgcn", "HAN"} {
		s := Default()
		s.Model.Name = model
		err := s.Validate()
		if !isMistake(err, "rgcn, hsage, rgat, hgt, simplehgn for a typed graph") ||
			strings.Contains(err.Error(), "did you mean") {
			t.Errorf("%s: %v", model, err)
		}
		p := DefaultPartition()
		p.Model, p.Parts = model, 2
		if _, err := p.Options(); !isMistake(err, "rgcn, hsage, rgat, hgt, simplehgn for a typed graph") {
			t.Errorf("partition --model %s: %v", model, err)
		}
	}
}

// TestPartitionPlansTheModelOfTrain: what neither is told, both have alike.
func TestPartitionPlansTheModelOfTrain(t *testing.T) {
	for _, model := range []string{"", "sage", "gat", "ressage+"} {
		for _, data := range []dataset{{}, {sparse: true}, {train: manyLabels}} {
			run, cut := Default(), DefaultPartition()
			if model != "" {
				run.Model.Name, cut.Model = model, model
			}
			run.complete(data)
			cut = cut.forData(data)
			m := run.Model
			if cut.Model != m.Name || cut.Layers != m.Layers || cut.Hidden != m.Hidden || cut.Heads != m.Heads ||
				cut.BatchSize != run.Batches.Size || len(cut.Fanout) != m.Layers ||
				cut.Method != run.Cluster.Partitioner {
				t.Errorf("%+v: partition plans %+v, train %+v", data, cut, m)
			}
		}
	}
	given := DefaultPartition()
	given.Layers, given.Hidden, given.Fanout = 4, 128, []int{9}
	if cut := given.forData(dataset{}); cut.Layers != 4 || cut.Hidden != 128 || len(cut.Fanout) != 1 {
		t.Errorf("%+v", cut)
	}
}

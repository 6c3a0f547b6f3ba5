package spec

import "testing"

// TestWordsOfUsers: what people type who come from PyG or DGL is understood.
func TestWordsOfUsers(t *testing.T) {
	s := Default()
	s.Model.Name, s.Batches.Sampler, s.Optimizer.Name, s.Mode, s.Machine.DType = "GraphSAGE", "neighbors", "Adam",
		"mini-batch", "BFLOAT16"
	if err := s.Complete(); err != nil {
		t.Fatal(err)
	}
	if s.Model.Name != "sage" || s.Batches.Sampler != "neighbour" || s.Optimizer.Name != "adam" || s.Mode != "mini" ||
		s.Machine.DType != "bf16" {
		t.Errorf("%+v", s)
	}
	s.Model.Name = "GCNN"
	if err := s.Complete(); err == nil {
		err = s.Validate()
		if err == nil {
			t.Error("GCNN is a model")
		}
	}
}

package spec

import "testing"

// TestWordsOfUsers: what people type who come from PyG or DGL is understood.
func TestWordsOfUsers(t *testing.T) {
	s := Default()
	s.Model, s.Sampler, s.Optimizer, s.Mode, s.DType = "GraphSAGE", "neighbors", "Adam", "mini-batch", "BFLOAT16"
	if err := s.Complete(); err != nil {
		t.Fatal(err)
	}
	if s.Model != "sage" || s.Sampler != "neighbour" || s.Optimizer != "adam" || s.Mode != "mini" || s.DType != "bf16" {
		t.Errorf("%+v", s)
	}
	s.Model = "GCNN"
	if err := s.Complete(); err == nil {
		err = s.Validate()
		if err == nil {
			t.Error("GCNN is a model")
		}
	}
}

package spec

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"starling/train"
)

// TestForStrategy: options of other strategies are left out.
func TestForStrategy(t *testing.T) {
	s := Default()
	set(&s, "staleness=epoch:5", "smooth=0.5")
	if halo := s.ForStrategy("halo"); get(halo, "staleness") != "epoch:2" || get(halo, "smooth") != 0.0 ||
		get(s, "smooth") != 0.5 {
		t.Errorf("%+v", halo)
	}
	if sancus := s.ForStrategy("sancus:epoch:5"); chosen(t, sancus)["staleness"] != "epoch:5" ||
		get(sancus, "smooth") != 0.0 {
		t.Errorf("%+v", sancus)
	}
	s.Cluster.Workers = 2
	if older := s.ForStrategy("sancus:epoch:2"); older.Validate() != nil {
		t.Error("the option after the name does not win:", older.Validate())
	}
	for text, want := range map[string]string{
		"halo+bf16":                "map[wire_dtype:bf16]",
		"g3+relay+bf16":            "map[g3_pipeline:both relay:true wire_dtype:bf16]",
		"pipegcn+relay+means+int8": "map[means:true relay:true smooth:0.5 stale:1 wire_dtype:int8]",
		"g3+relay+sparse":          "map[g3_pipeline:both relay:true sparse_rows:true]",
	} {
		s := s
		s.Cluster.Workers, s.Cluster.Servers, s.Model.Layers = 4, 2, 3
		c := s.ForStrategy(text)
		if err := c.Validate(); err != nil || fmt.Sprint(chosen(t, c)) != want {
			t.Errorf("%s: %v, %v", text, chosen(t, c), err)
		}
	}
	if no := s.ForStrategy("halo+sparse+bf16"); no.Validate() == nil ||
		!strings.Contains(no.Validate().Error(), "--sparse-rows") {
		t.Errorf("halo+sparse+bf16: %v", no.Validate())
	}
	s.Cluster.Workers = 4
	for text, want := range map[string]string{"halo+means": "not +means", "bns:0.1+means": "--means",
		"sancus+relay": "not +relay"} {
		if no := s.ForStrategy(text); no.Validate() == nil || !strings.Contains(no.Validate().Error(), want) {
			t.Errorf("%s: %v", text, no.Validate())
		}
	}
}

// TestLabels: a strategy's label, made from its result, is its name in a comparison.
func TestLabels(t *testing.T) {
	for want, change := range map[string]func(*Spec){
		"halo":               func(s *Spec) { s.Strategy = "halo" },
		"halo+bf16":          func(s *Spec) { s.Strategy = "halo"; set(s, "wire_dtype=bf16") },
		"g3+relay+bf16":      func(s *Spec) { s.Strategy = "g3"; set(s, "relay", "wire_dtype=bf16") },
		"g3+relay+sparse":    func(s *Spec) { s.Strategy = "g3"; set(s, "relay", "sparse_rows") },
		"pipegcn+means":      func(s *Spec) { s.Strategy = "pipegcn"; set(s, "means") },
		"bns:0.5":            func(s *Spec) { s.Strategy = "bns:0.5" },
		"pipegcn":            func(s *Spec) { s.Strategy = "pipegcn" },
		"pipegcn smooth=0.5": func(s *Spec) { s.Strategy = "pipegcn"; set(s, "smooth=0.5") },
		"sancus:epoch:4":     func(s *Spec) { s.Strategy = "sancus"; set(s, "staleness=epoch:4") },
		"sancus:epoch:3":     func(s *Spec) { s.Strategy = "sancus:epoch:3" },
		"granndis:eas1,15":   func(s *Spec) { s.Strategy = "granndis:eas1,15" },
		"granndis:2:eas1,9":  func(s *Spec) { s.Strategy = "granndis:2:eas1,9" },
		"granndis:1:eas1,9":  func(s *Spec) { s.Strategy = "granndis:eas1,9"; set(s, "preload=1") },
		"granndis:3:eas1,9":  func(s *Spec) { s.Strategy = "granndis:3"; set(s, "eas=1,9") },
		"granndis:4:eas1,9":  func(s *Spec) { s.Strategy = "granndis"; set(s, "preload=4", "eas=1,9") },
		"granndis:2+int8":    func(s *Spec) { s.Strategy = "granndis"; set(s, "preload=2", "wire_dtype=int8") },
	} {
		s := Default()
		change(&s)
		b, err := json.Marshal(chosen(t, s))
		if err != nil {
			t.Fatal(err)
		}
		var read map[string]any
		if err := json.Unmarshal(b, &read); err != nil {
			t.Fatal(err)
		}
		if got := train.Label(s.Strategy, read); got != want {
			t.Errorf("%s, want %s, of %s", got, want, b)
		}
	}
}

package spec

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"starling/graph"
)

func TestText(t *testing.T) {
	s := Default()
	s.Dataset = "some where: with #signs"
	s.Optimizer.LR, s.Optimizer.WeightDecay, s.Optimizer.Schedule, s.Seed = 0.1+0.2, 5e-4, "cosine:20,0", 1<<63
	set(&s, "relay", "smooth=0.25", "staleness=epoch:7")
	back, err := Parse([]byte(s.String()))
	if err != nil || !reflect.DeepEqual(back, s) {
		t.Fatalf("%v\n%+v\n%+v", err, back, s)
	}
	if d, err := Parse(nil); err != nil || d.String() != Default().String() {
		t.Error(d, err)
	}
	if d, err := Parse([]byte("# only a comment\nlr: 0.5\n")); err != nil || d.Optimizer.LR != 0.5 ||
		d.Model.Hidden != Auto {
		t.Error(d, err)
	}
	for _, bad := range []string{"lrr: 1", "lr: fast", "layers: 1.5", "- a", "lr: [1]", "a: b: c",
		"layers: 99999999999999999999", "lr: 0.5\n---\nlayers: 2\n", "lr: 0.5\n---\n- ]"} {
		if _, err := Parse([]byte(bad)); !errors.Is(err, graph.ErrInput) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestTextSuggestions(t *testing.T) {
	for _, good := range []string{"---\nlr: 0.5\n", "lr: 0.5\n---\n", "lr: 0.5\n...\n", "# only\n# comments\n",
		"---\n"} {
		if s, err := Parse([]byte(good)); err != nil || strings.Contains(good, "lr") && s.Optimizer.LR != 0.5 {
			t.Errorf("%q: %v", good, err)
		}
	}
	if _, err := Parse([]byte("weight-decay: 0.1\n")); err == nil ||
		!strings.HasSuffix(err.Error(), "did you mean weight_decay?") {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(Default().String()))
	f.Add([]byte("lr: 0.5\nmodel: sage\n"))
	f.Add([]byte("lr: 0.5\n---\nmodel: sage\n"))
	f.Add([]byte("model: {name: sage, layers: 2}\noptimizer:\n  lr: 0.5\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := Parse(b); err == nil {
			s.complete(dataset{})
			s.Validate()
		}
	})
}

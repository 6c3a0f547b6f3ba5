package plan

import (
	"runtime"
	"strings"
	"testing"

	"starling/dataset/generate"
	"starling/graph"
	"starling/setup/setuptest"
	"starling/spec"
)

func TestDoesNotFit(t *testing.T) {
	data, err := graph.Open(setuptest.Block(t, func(p *generate.Params) { p.Nodes, p.Edges = 20_000, 40_000 }))
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	s := setuptest.Quick("")
	s.Model.Hidden = 128
	if err := s.Complete(); err != nil {
		t.Fatal(err)
	}
	s.ForData(&data.Meta, "auto")
	p, err := Alone(&s, data)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		free int64
		want string
	}{
		{p.Needed() - 1, "would fit: --cache-first off"},
		{p.Processes + (p.Needed()-p.Processes)/2, "would fit: --cache-first off --dtype bf16 --hidden 64 ("},
		{p.Needed() / 100, "nothing smaller"},
	} {
		if err := Fits(&s, p, data, c.free); !setuptest.IsMistake(err, "memory") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%d free: %v", c.free, err)
		}
	}
	if err := Fits(&s, p, data, p.Needed()); err != nil {
		t.Error(err)
	}
	s.Machine.MemoryCheck = false
	if err := Fits(&s, p, data, 1); err != nil {
		t.Error(err)
	}
	s.Model.Hidden, s.Model.Layers = 1<<16, 1000 // more than there are addresses for
	if p, err := Alone(&s, data); err != nil || !p.AtLeast || p.Needed() < mostAllocated() {
		t.Error(p, err)
	}
}

// TestRefusedUntouched: a model that is far too large is refused, and smaller ones are
// found, without as much memory as any of them has.
func TestRefusedUntouched(t *testing.T) {
	data, err := graph.Open(setuptest.Block(t, func(p *generate.Params) { p.Nodes, p.Edges = 2_000, 8_000 }))
	if err != nil {
		t.Fatal(err)
	}
	defer data.Close()
	s := setuptest.Quick("")
	s.Machine.MemoryCheck, s.Model.Hidden, s.Model.Layers, s.Machine.CacheFirst = true, 16384, 3, "off"
	if err := s.Complete(); err != nil {
		t.Fatal(err)
	}
	s.ForData(&data.Meta, "auto")
	before := heapTaken()
	p, err := Alone(&s, data)
	if err != nil {
		t.Fatal(err)
	}
	weights := int64(16384 * 16384)
	if p.Needed() < 16*weights {
		t.Errorf("planned %d for %d weights", p.Needed(), weights)
	}
	if err := Fits(&s, p, data, p.Needed()/10); !setuptest.IsMistake(err, "memory") ||
		!strings.Contains(err.Error(), "would fit: ") {
		t.Error(err)
	}
	if took := heapTaken() - before; took > weights {
		t.Errorf("to refuse %d weights took %d bytes", weights, took)
	}
}

// heapTaken is the bytes of all that was ever made on the heap.
func heapTaken() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.TotalAlloc)
}

// TestWorkersDoNotFit: refused before they start, with what to do.
func TestWorkersDoNotFit(t *testing.T) {
	s, p := spec.Default(), &Plan{Workers: 4, Matrices: 1000, Graph: 24}
	if err := WorkersFit(&s, p, 1023); !setuptest.IsMistake(err, "4 workers") || !strings.Contains(err.Error(), "several hosts") {
		t.Error(err)
	}
	if err := WorkersFit(&s, p, 1024); err != nil {
		t.Error(err)
	}
}

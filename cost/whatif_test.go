package cost

import (
	"math"
	"testing"
)

// TestWhatIf: hand-computed figures of a graph that is not there, and how they move.
func TestWhatIf(t *testing.T) {
	p := WhatIf{Vertices: 1e6, Edges: 1e7, Train: 1e5, In: 10, Hidden: 10, Classes: 2, Layers: 2, Hosts: 10, Cut: 0.01,
		Batch: 1000, Fanout: 5, Compute: Compute{GEMM: 1e9, SpMM: 1e9, Memory: 1e9}, Link: Link{Rate: 1e6}}
	full := p.FullGraph()
	remote := 9e5 * (1 - math.Exp(-1e4/9e5))
	if math.Abs(full.Remote-remote) > 1e-6*remote || math.Abs(full.Sent-2*remote*40) > 1e-6*full.Sent ||
		full.Messages != 18 || full.Seconds != full.Compute+full.Link {
		t.Errorf("%+v, want %g remote rows", full, remote)
	}
	worse := p
	worse.Cut = 0
	if r := worse.FullGraph(); !(r.Remote > full.Remote) || r.Remote > 9e5 {
		t.Errorf("a random cut needs %g rows", r.Remote)
	}
	more := p
	more.Hosts = 100
	if r := more.FullGraph(); !(r.Compute < full.Compute) || !(r.Memory < full.Memory) {
		t.Errorf("more hosts: %+v", r)
	}
	batches, all := p.Batches(), worse.Batches()
	if !(batches.Sent > 0) || !(all.Sent > batches.Sent) || !(batches.Memory < full.Memory) {
		t.Errorf("%+v and %+v", batches, all)
	}
	typed := p // one relation from half of the vertices to the other, and back
	typed.Relations = []RelationSize{{5e5, 5e5}, {5e5, 5e5}}
	if got := typed.FullGraph(); typed.products() != 2 || typed.wide() != 10+2*10*2 || got.Sent != 2*full.Sent ||
		got.Memory != full.Memory {
		t.Errorf("%g products of width %g, %+v", typed.products(), typed.wide(), got)
	}
	typed.Attends, typed.Learnt = true, 1e6
	if typed.products() != 1 || typed.wide() != 2*10 || typed.kept() != 2+4*10 || typed.rowsKept() != 4 {
		t.Errorf("attention: %g products of width %g", typed.products(), typed.wide())
	}
	slow := p
	slow.HostByte = 1
	if r := slow.FullGraph(); r.Seconds != r.Compute+r.Host {
		t.Errorf("processors that take a second per byte: %+v", r)
	}
}

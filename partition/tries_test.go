package partition

import (
	"context"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"

	"starling/graph"
)

func TestTriesKeepTheBest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "g")
	r := rand.New(rand.NewPCG(1, 14))
	if err := graph.Save(dir, &graph.Dataset{Meta: graph.Meta{Name: "blocks"}, Graph: blocks(r, 400, 9, 8, 0.7)},
		graph.WriterOptions{}); err != nil {
		t.Fatal(err)
	}
	run := func(o Options) *Report {
		report, err := Run(context.Background(), dir, o)
		if err != nil {
			t.Fatal(err)
		}
		return report
	}
	for _, objective := range []Objective{Cut, Volume} {
		for _, method := range []string{"random", "hash", "multilevel", "g3"} {
			// which hash meets as well
			o := Options{Parts: 4, Servers: 2, Method: method, Objective: objective, Balance: "vertices:0.5", Seed: 5}
			of := func(r *Report) int64 { return []int64{r.EdgeCut, r.CommVolume}[objective] }
			var each []int64
			for i := range 4 {
				o.Seed = seedOf(5, i)
				each = append(each, of(run(o)))
			}
			o.Seed, o.Tries = 5, 4
			var stages []int64
			o.Progress = func(stage string, done, total int64) {
				if stage == "try" && total == 4 {
					stages = append(stages, done)
				}
			}
			best := run(o)
			if want := slices.Min(each); of(best) != want || best.Seed != 5 || best.Tries != 4 {
				t.Errorf("%s, %v: kept %d of %v", method, objective, of(best), each)
			}
			if best.KeptSeed != seedOf(5, slices.Index(each, slices.Min(each))) {
				t.Errorf("%s, %v: seed %d kept of %v", method, objective, best.KeptSeed, each)
			}
			if !slices.Equal(stages, []int64{1, 2, 3, 4}) {
				t.Errorf("%s: progress %v", method, stages)
			}
			again := run(Options{Parts: 4, Servers: 2, Method: method, Objective: objective, Balance: o.Balance,
				Seed: best.KeptSeed})
			if again.EdgeCut != best.EdgeCut || again.CommVolume != best.CommVolume || again.Tries != 1 {
				t.Errorf("%s, %v: the seed that was kept gives another partition", method, objective)
			}
		}
	}
}

// Tries of multilevel that are combined cut no more than the best of them, and less on most graphs.
func TestCombinedTries(t *testing.T) {
	g := blocks(rand.New(rand.NewPCG(1, 16)), 2000, 40, 8, 0.6)
	cut := func(seed uint64, tries int) int64 {
		p := &Problem{Graph: g, Parts: 7, Seed: seed, Tries: tries}
		parts, err := Multilevel(context.Background(), p)
		if err != nil {
			t.Fatal(err)
		}
		return Measure(g, parts, 7, nil, false, 1).EdgeCut
	}
	less := 0
	for seed := range uint64(4) {
		best := cut(seed, 1)
		for i := 1; i < 3; i++ {
			best = min(best, cut(seedOf(seed, i), 1))
		}
		combined := cut(seed, 3)
		if combined > best || combined != cut(seed, 3) {
			t.Errorf("seed %d: %d, the best of its tries %d", seed, combined, best)
		}
		if combined < best {
			less++
		}
	}
	if less < 2 {
		t.Errorf("combined tries were better %d times of 4", less)
	}
}

// The limits come first, then the objective, then who was first.
func TestTryIsBetter(t *testing.T) {
	few, many := &Quality{EdgeCut: 1, CommVolume: 9}, &Quality{EdgeCut: 2, CommVolume: 8}
	for _, x := range []struct {
		name    string
		a, than try
		o       Objective
		want    bool
	}{
		{"balanced", try{q: many}, try{q: few, over: 0.1}, Cut, true},
		{"broken", try{q: few, over: 0.1}, try{q: many}, Cut, false},
		{"cut", try{q: few}, try{q: many}, Cut, true},
		{"volume", try{q: few}, try{q: many}, Volume, false},
		{"equal", try{q: few}, try{q: few}, Cut, false},
	} {
		if got := x.a.better(&x.than, x.o); got != x.want {
			t.Errorf("%s: %v", x.name, got)
		}
	}
}

// A method is called seeded if, and only if, another seed gives another partition.
func TestSeededMethodsDraw(t *testing.T) {
	g := blocks(rand.New(rand.NewPCG(1, 15)), 300, 5, 8, 0.7)
	for _, e := range entries() {
		var parts [5][]uint32
		var err error
		for i := range parts {
			if parts[i], err = By(context.Background(), e.name,
				&Problem{Graph: g, Parts: 3, Seed: uint64(i),
					Splits: graph.Splits{Train: []uint32{3, 5, 80, 200}}}); parts[i] == nil {
				break
			}
		}
		var u *Unbalanced
		switch {
		case errors.Is(err, ErrNoMetis), errors.Is(err, ErrNoEngine):
			continue
		case err != nil && !errors.As(err, &u):
			t.Fatal(e.name, err)
		}
		if differ := slices.ContainsFunc(parts[1:],
			func(p []uint32) bool { return !slices.Equal(p, parts[0]) }); differ != e.seeded {
			t.Errorf("%s: seeded %v, but another seed changes it: %v", e.name, e.seeded, differ)
		}
	}
}

func TestTriesThatMakeNoSense(t *testing.T) {
	for _, o := range []Options{{Method: "multilevel", Tries: -1}, {Method: "chunk", Tries: 2},
		{Method: "fennel", Tries: 3}} {
		o.Parts = 2
		var in *graph.InputError
		if _, err := Run(context.Background(), "nowhere", o); !errors.As(err, &in) || in.Field != "tries" {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

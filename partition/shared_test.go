package partition

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"starling/graph"
)

// saved writes a graph with features, labels and splits to a folder.
func saved(t *testing.T, n, m int, weighted, loops bool) string {
	t.Helper()
	r := rand.New(rand.NewPCG(1, uint64(n)))
	var src, dst []uint32
	var weights []float32
	for range m {
		u := uint32(float64(n) * r.Float64() * r.Float64())
		v := (u + uint32(r.IntN(20))) % uint32(n)
		if r.IntN(4) == 0 {
			v = uint32(r.IntN(n))
		}
		src, dst = append(src, u), append(dst, v)
		if weighted {
			weights = append(weights, float32(r.Float64()))
		}
	}
	g, err := graph.FromEdges(n, src, dst, weights, graph.BuildOptions{Symmetrize: true, DropDuplicates: true, DropSelfLoops: !loops})
	must(t, err)
	d := &graph.Dataset{Graph: g, Features: &graph.Features{Rows: n, Cols: 3, F32: make([]float32, 3*n)},
		Labels: &graph.Labels{Classes: 2, Class: make([]int32, n)}}
	for v := range n {
		d.Features.F32[3*v], d.Labels.Class[v] = float32(v), int32(v%2)
		if v%3 == 0 {
			d.Splits.Train = append(d.Splits.Train, uint32(v))
		} else if v%7 == 0 {
			d.Splits.Val = append(d.Splits.Val, uint32(v))
		}
	}
	dir := filepath.Join(t.TempDir(), "graph")
	must(t, graph.Save(dir, d, graph.WriterOptions{}))
	return dir
}

// TestSharedIsTheSame: several at work write the bytes of one.
func TestSharedIsTheSame(t *testing.T) {
	for name, c := range map[string]struct {
		weighted, loops bool
		opt             Options
	}{
		"fennel":     {false, false, Options{Method: "fennel", Parts: 5, Refine: 2}},
		"ldg":        {true, false, Options{Method: "ldg", Parts: 3, Passes: 2, Refine: 1, Balance: "vertices:0.05,edges:0.3"}},
		"hash":       {false, true, Options{Method: "hash", Parts: 4}},
		"multilevel": {false, false, Options{Method: "multilevel", Parts: 4, Servers: 2}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := saved(t, 3000, 12_000, c.weighted, c.loops)
			opt := c.opt
			opt.Seed = 1
			opt.Out = filepath.Join(t.TempDir(), "one")
			one, err := Run(t.Context(), dir, opt)
			must(t, err)
			opt.Out, opt.Shared = filepath.Join(t.TempDir(), "many"), Shared{Processes: 1, Memory: 1 << 16}
			help := opt
			help.Shared.Role.Helper = true
			opt.Shared.Begun = func() error {
				var wg sync.WaitGroup
				for range 2 {
					wg.Go(func() {
						if _, err := Run(t.Context(), dir, help); err != nil {
							t.Error(err)
						}
					})
				}
				wg.Wait()
				if _, err := os.Stat(opt.Out); err == nil {
					t.Error("the helpers have published the parts")
				}
				return nil
			}
			opt.Verify = true
			many, err := Run(t.Context(), dir, opt)
			must(t, err)
			out, err := exec.Command("diff", "-r", "-x", settingsFile, filepath.Join(filepath.Dir(opt.Out), "many"), one.Out).CombinedOutput()
			if err != nil {
				t.Errorf("%s", out)
			}
			a, b := *one, *many
			for _, r := range []*Report{&a, &b} {
				r.Seconds, r.WriteSeconds, r.PeakRSSBytes, r.Out, r.Verified = 0, 0, 0, "", false
			}
			x, err := json.Marshal(a)
			must(t, err)
			y, err := json.Marshal(b)
			must(t, err)
			if string(x) != string(y) {
				t.Errorf("%s\n%s", y, x)
			}
			help.Overwrite = true // which is no reason to begin again, for one that comes too late
			if _, err := Run(t.Context(), dir, help); err != nil {
				t.Error(err)
			}
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(opt.Out), ".*")); left != nil {
				t.Error(left)
			}
		})
	}
}

// TestSharedGoesOn: stopped in every stage, the work goes on to the same bytes; with other settings it does not.
func TestSharedGoesOn(t *testing.T) {
	dir := saved(t, 3000, 12_000, false, false)
	opt := Options{Method: "fennel", Parts: 3, Seed: 1, Refine: 2, Out: filepath.Join(t.TempDir(), "one"), Shared: Shared{Processes: 1, Memory: 1 << 16}}
	_, err := Run(t.Context(), dir, opt)
	must(t, err)
	whole := opt.Out
	opt.Out = filepath.Join(t.TempDir(), "stopped")
	for _, stage := range []string{"check", "pass0", "pass2", "refine0", "refine1", "settle", "scatter", "gather", "halo", "write"} {
		ctx, cancel := context.WithCancel(t.Context())
		opt.Progress = func(s string, _, _ int64) {
			if s == stage {
				cancel()
			}
		}
		if _, err := Run(ctx, dir, opt); stage != "write" && stage != "settle" && !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", stage, err)
		}
		cancel()
		if stage == "scatter" {
			other := opt
			other.Parts = 4
			_, err := Run(t.Context(), dir, other)
			if !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), `unfinished work on another dataset or with other settings (it has "Parts": 3, this has "Parts": 4)`) {
				t.Error(err)
			}
		}
	}
	opt.Progress = nil
	if _, err := os.Stat(opt.Out); err != nil {
		_, err = Run(t.Context(), dir, opt)
		must(t, err)
	}
	if out, err := exec.Command("diff", "-r", "-x", settingsFile, whole, opt.Out).CombinedOutput(); err != nil {
		t.Errorf("%s", out)
	}
	gone := opt.Shared.folder(opt.Out) + ".gone" // of a process that was killed at the very end
	must(t, os.Mkdir(gone, 0o777))
	if again, err := Run(t.Context(), dir, opt); again != nil || err != nil {
		t.Error("what is there is made again", err)
	}
	if _, err := os.Stat(gone); err == nil {
		t.Error("what was left behind is still there")
	}
	opt.Seed++
	_, err = Run(t.Context(), dir, opt)
	if !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), "an existing partition") {
		t.Error(err)
	}
	opt.Balance, opt.Method, opt.Parts = "vertices:0.001,edges:0.0001", "ldg", 700
	opt.Out = filepath.Join(t.TempDir(), "unbalanced")
	if _, err = Run(t.Context(), dir, opt); !errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), "cannot be met") {
		t.Error(err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

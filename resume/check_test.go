package resume

import (
	"math"
	"strings"
	"testing"

	"starling/cluster"
	"starling/nn"
	"starling/spec"
	"starling/train"
)

// arrayChecks says, for every array of a checkpoint, which values are found although checksums are right.
var arrayChecks = []struct {
	group, array string
	bad          []float64
}{
	{"model", "convs.0.lin.weight", []float64{math.NaN(), math.Inf(1), math.Inf(-1)}},
	{"model", "norms.0.running_var", []float64{math.NaN(), math.Inf(1), -1e-9}},
	{"best", "convs.0.lin.weight", []float64{math.NaN(), math.Inf(-1)}},
	{"optimiser", "convs.0.lin.weight.exp_avg", []float64{math.NaN(), math.Inf(1)}},
	{"optimiser", "convs.0.lin.weight.exp_avg_sq", []float64{math.NaN(), -1e-9, math.Inf(-1)}},
	{"optimiser", "convs.0.lin.weight.momentum_buffer", []float64{math.NaN(), math.Inf(1)}},
	{"caches-0", "embeddings.rows", []float64{math.NaN(), math.Inf(1)}},
	{"caches-0", "embeddings.best", []float64{math.NaN()}},
	{"caches-0", "embeddings.first_moment", []float64{math.NaN(), math.Inf(1)}},
	{"caches-0", "embeddings.second_moment", []float64{math.NaN(), -1}},
	{"caches-0", "embeddings.steps", []float64{math.NaN(), -1, 0.5, 1 << 33}},
	{"caches-0", "merged time steps", []float64{math.NaN(), -1, 0.5}},
	{"caches-0", "dgs.versions", []float64{math.NaN(), -1, 0.5}},
	{"caches-0", "dgs.columns.3", []float64{math.NaN(), -1, 0.5, 1 << 33}},
	{"caches-0", "dgs.nodes.3", []float64{math.NaN(), -1, 0.5, 256}},
	{"caches-0", "learnt.rows.paper", []float64{math.NaN(), math.Inf(1)}},
	{"caches-0", "learnt.optimiser.paper.exp_avg_sq", []float64{math.NaN(), -1}},
	{"caches-0", "rates", []float64{math.NaN(), -1}},
	{"caches-0", "memory", []float64{math.NaN(), -1}},
	{"caches-0", "layer 1 rows", []float64{math.NaN(), math.Inf(1)}}, // stale rows of any strategy
}

// written is a checkpoint as a run writes it, with an array that has a value.
func written(t *testing.T, group, array string, x float64) *cluster.Checkpoint {
	t.Helper()
	s := spec.Default()
	s.Mode = "full"
	of := func(name string, x float64) nn.Tensor {
		return nn.Tensor{Name: name, Shape: []int{2, 1}, F64: true, Data: []float64{1, x}}
	}
	st := &train.State{Epoch: 3, Steps: 3, Model: []nn.Tensor{of("convs.0.lin.weight", 2)},
		History: train.History{Loss: []float64{3, 2, 1}, EpochSeconds: []float64{1, 1, 1}, BestEpoch: 1,
			Measured: []int{0, 1}, Train: []float64{0, 1}, Val: []float64{0, math.NaN()}, Test: []float64{0, 1}}}
	c, err := ToCheckpoint(&s, Identity{}, st)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(group, "caches") {
		if group == "model" {
			c.Groups[group] = nil
		}
		c.Groups[group] = append(c.Groups[group], of(array, x))
		return c
	}
	stream, err := PackTensors([]nn.Tensor{of(array, x)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	file, err := stream.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	c.Files = map[string][]byte{group: file}
	return c
}

// TestEveryArrayOfACheckpointIsCheckedOnLoad: a value that no run writes is found with the checksums right, and the
// warning names file and array; the checkpoint before is taken.
func TestEveryArrayOfACheckpointIsCheckedOnLoad(t *testing.T) {
	dir := t.TempDir()
	used := map[string]bool{}
	for _, a := range arrayChecks {
		used[ruleOf(a.array).name] = true
		for i, x := range append(a.bad, 2) {
			c := written(t, a.group, a.array, x)
			err := check(dir, c)
			if i == len(a.bad) {
				if err != nil {
					t.Errorf("%s, %s: %v", a.group, a.array, err)
				}
				continue
			}
			if err == nil || !strings.Contains(err.Error(), a.group+`.safetensors: array "`+a.array+`" has `) {
				t.Errorf("%s, %s, %g: %v", a.group, a.array, x, err)
			}
		}
	}
	for _, r := range arrayRules {
		if !used[r.name] {
			t.Errorf("no array of the table has the rule of %s", r.name)
		}
	}
}

// TestLatestPassesOverWrongValues: the checkpoint before one with a wrong value is taken, with a warning.
func TestLatestPassesOverWrongValues(t *testing.T) {
	dir, warned := t.TempDir(), ""
	good, bad := written(t, "best", "convs.0.lin.weight", 1), written(t, "best", "convs.0.lin.weight", math.NaN())
	bad.Epoch, bad.Steps = 4, 4
	bad.History = []byte(strings.Replace(string(bad.History), "[3,2,1]", "[3,2,1,1]", 1))
	for _, c := range []*cluster.Checkpoint{good, bad} {
		if _, _, err := cluster.Save(dir, c, 0); err != nil {
			t.Fatal(err)
		}
	}
	c, err := Latest(dir, func(text string) { warned += text })
	const want = `epoch-000004/best.safetensors: array "convs.0.lin.weight" has NaN as number 1, want finite numbers`
	if err != nil || c.Epoch != 3 || !strings.Contains(warned, want) {
		t.Errorf("%v, %v: %s", c, err, warned)
	}
}

// TestCountersOfACheckpointAreChecked: positions, histories and shapes that contradict each other are refused.
func TestCountersOfACheckpointAreChecked(t *testing.T) {
	replace := func(field *[]byte, old, new string) { *field = []byte(strings.Replace(string(*field), old, new, 1)) }
	for want, change := range map[string]func(c *cluster.Checkpoint){
		"steps is 7 after 3 epochs":          func(c *cluster.Checkpoint) { c.Steps = 7 },
		"steps is 3 after 3 epochs and 9":    func(c *cluster.Checkpoint) { c.Batch = 9 },
		"best_epoch is 3":                    func(c *cluster.Checkpoint) { replace((*[]byte)(&c.History), `"best_epoch":1`, `"best_epoch":3`) },
		"best_epoch is -2":                   func(c *cluster.Checkpoint) { replace((*[]byte)(&c.History), `"best_epoch":1`, `"best_epoch":-2`) },
		"measured has epoch 9 after epoch 0": func(c *cluster.Checkpoint) { replace((*[]byte)(&c.History), `[0,1]`, `[0,9]`) },
		"measured has epoch 0 after epoch 0": func(c *cluster.Checkpoint) { replace((*[]byte)(&c.History), `[0,1]`, `[0,0]`) },
		`array "convs.0.lin.weight" has shape [1 2], its weights [2 1]`: func(c *cluster.Checkpoint) {
			c.Groups["best"][0].Shape = []int{1, 2}
		},
		"it has 2 arrays, the model 1": func(c *cluster.Checkpoint) {
			c.Groups["best"] = append(c.Groups["best"], c.Groups["best"][0])
		},
		`array "x.exp_avg" has shape [2 1], its weights []`: func(c *cluster.Checkpoint) {
			c.Groups["optimiser"] = []nn.Tensor{{Name: "x.exp_avg", Shape: []int{2, 1}, Data: []float64{1, 1}}}
		},
	} {
		c := written(t, "best", "convs.0.lin.weight", 1)
		if err := check("", c); err != nil {
			t.Fatal(err)
		}
		change(c)
		if err := check("", c); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

package resume

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"starling/cluster"
	"starling/nn"
	"starling/train"
)

// Latest is the newest checkpoint of a folder that is whole and has values that a run can have written. Others are
// passed over, each with a warning: checksums show what a disk has damaged, not what a program has written.
func Latest(dir string, warn func(string)) (*cluster.Checkpoint, error) {
	return cluster.Latest(dir, check, warn)
}

// check names the file of a checkpoint, and the array or field there, that no run has written.
func check(folder string, c *cluster.Checkpoint) error {
	st, before, err := FromCheckpoint(c)
	if err == nil {
		err = checkCounters(st, before.Mode)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(folder, "state.json"), err)
	}
	inFile := func(group string, err error) error {
		return fmt.Errorf("%s: %w", filepath.Join(folder, group+".safetensors"), err)
	}
	for _, group := range slices.Sorted(maps.Keys(c.Groups)) {
		if err := cmp.Or(checkValues(c.Groups[group]), checkShapes(group, c.Groups)); err != nil {
			return inFile(group, err)
		}
	}
	for _, group := range slices.Sorted(maps.Keys(c.Files)) {
		list, err := nn.OpenSafetensors(c.Files[group])
		if err = cmp.Or(err, checkValues(list)); err != nil {
			return inFile(group, err)
		}
	}
	return nil
}

// checkCounters refuses positions and histories that contradict each other. A step over the whole graph is an epoch.
func checkCounters(st *train.State, mode string) error {
	h := &st.History
	switch {
	case mode == "full" && (st.Steps != st.Epoch || st.Batch != 0), st.Steps < st.Batch,
		st.Epoch == 0 && st.Batch != st.Steps:
		return fmt.Errorf("steps is %d after %d epochs and %d steps of another", st.Steps, st.Epoch, st.Batch)
	case h.BestEpoch < -1 || h.BestEpoch >= st.Epoch:
		return fmt.Errorf("best_epoch is %d, want one of %d epochs, or -1", h.BestEpoch, st.Epoch)
	case st.Batch > 0 && (len(st.Partial) == 0 || slices.ContainsFunc(st.Partial, math.IsNaN)):
		return fmt.Errorf("partial is %v, want the sums of %d steps", st.Partial, st.Batch)
	}
	before := -1
	for _, epoch := range h.Measured {
		if epoch <= before || epoch >= st.Epoch {
			return fmt.Errorf("measured has epoch %d after epoch %d, want ascending ones of %d", epoch, before, st.Epoch)
		}
		before = epoch
	}
	return nil
}

// arrayRule is the values that arrays of a name may have, where a star at an end is any text.
type arrayRule struct {
	name, want string
	ok         func(x float64) bool
}

// arrayRules are for all arrays. The first that fits counts.
var arrayRules = []arrayRule{
	{"*.exp_avg_sq", "numbers of at least 0", notNegative},
	{"embeddings.second_moment", "numbers of at least 0", notNegative},
	{"*.running_var", "finite numbers of at least 0", func(x float64) bool { return isFinite(x) && x >= 0 }},
	{"embeddings.steps", "a count", isCount},
	{"merged time steps", "a count", isCount},
	{"dgs.versions", "counts", isCount},
	{"dgs.columns.*", "columns", isCount},
	{"dgs.nodes.*", "bytes", func(x float64) bool { return isCount(x) && x <= math.MaxUint8 }},
	{"rates", "numbers of at least 0", notNegative}, // measured: Inf is what is never cheaper
	{"memory", "numbers of at least 0", notNegative},
	{"*", "finite numbers", isFinite}, // weights, first moments, statistics and rows
}

// notNegative takes Inf: the square of a finite gradient may be that.
func notNegative(x float64) bool { return x >= 0 }
func isFinite(x float64) bool    { return !math.IsNaN(x) && !math.IsInf(x, 0) }
func isCount(x float64) bool     { return x >= 0 && x <= math.MaxUint32 && x == math.Trunc(x) }

// checkValues names the first number that its array cannot have.
func checkValues(list []nn.Tensor) (err error) {
	for i := range list {
		t := &list[i]
		rule, at := ruleOf(t.Name), 0
		t.Pieces(func(numbers []float64, _ int) {
			if bad := slices.IndexFunc(numbers, func(x float64) bool { return !rule.ok(x) }); bad >= 0 && err == nil {
				err = fmt.Errorf("array %q has %g as number %d, want %s", t.Name, numbers[bad], at+bad, rule.want)
			}
			at += len(numbers)
		})
	}
	return err
}

func ruleOf(name string) arrayRule {
	return arrayRules[slices.IndexFunc(arrayRules, func(r arrayRule) bool { return r.fits(name) })]
}

func (r *arrayRule) fits(name string) bool {
	if rest, ok := strings.CutPrefix(r.name, "*"); ok {
		return strings.HasSuffix(name, rest)
	}
	if rest, ok := strings.CutSuffix(r.name, "*"); ok {
		return strings.HasPrefix(name, rest)
	}
	return r.name == name
}

// checkShapes compares the best weights and what the optimiser keeps, as PARAM.KIND, with the weights.
func checkShapes(group string, groups map[string][]nn.Tensor) error {
	shapes := map[string][]int{}
	for _, t := range groups["model"] {
		shapes[t.Name] = t.Shape
	}
	if group == "best" && len(groups[group]) != len(shapes) {
		return fmt.Errorf("it has %d arrays, the model %d", len(groups[group]), len(shapes))
	}
	for _, t := range groups[group] {
		of := t.Name
		if group == "optimiser" {
			of = of[:max(strings.LastIndexByte(of, '.'), 0)]
		}
		if want, ok := shapes[of]; !ok || !slices.Equal(t.Shape, want) {
			return fmt.Errorf("array %q has shape %v, its weights %v", t.Name, t.Shape, want)
		}
	}
	return nil
}

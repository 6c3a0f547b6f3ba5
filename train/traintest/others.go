package traintest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/train"
)

// ResumesOnOthers: workers that go on from what others have saved after some epochs have their learnt rows to the bit,
// each those of its own vertices, with what the optimiser keeps of them, and the curve of a run that began with them.
func ResumesOnOthers(t testing.TB, before, after []*partition.Part, o train.Options, epoch int) {
	t.Helper()
	label := fmt.Sprintf("%s, %d workers, then %d", o.Strategy.Name(), len(before), len(after))
	on := func(parts []*partition.Part, o train.Options) (*train.Result, []*train.State) {
		states := make([]*train.State, len(parts))
		results, errs := make([]*train.Result, len(parts)), make([]error, len(parts))
		ends := Ends(len(parts))
		defer Close(ends)
		Each(len(parts), func(rank int) {
			o := o
			o.Save = func(s *train.State) error {
				for i := range s.Caches { // they are on the device, where they change
					c := &s.Caches[i]
					c.Data, c.Read = slices.Clone(c.Numbers()), nil
				}
				states[rank] = s
				return nil
			}
			results[rank], errs[rank] = Work(parts[rank], ends[rank], func() tensor.Device { return Ref() }, o, nil)
		})
		if err := errors.Join(errs...); err != nil {
			t.Fatal(label, err)
		}
		return results[0], states
	}
	o.EvalEvery = 1
	half := o
	half.Epochs = epoch
	_, states := on(before, half)
	saved := joinedOf(states)
	from := *states[0]
	from.Caches = saved
	half.Resume, o.Resume = &from, &from
	_, states = on(after, half) // no epoch more
	want, got := byVertex(t, saved), byVertex(t, joinedOf(states))
	if len(want) < 100 || len(got) != len(want) {
		t.Fatalf("%s: %d rows, saved %d", label, len(got), len(want))
	}
	for name, row := range want {
		if !slices.Equal(got[name], row) {
			t.Fatalf("%s: %s is %v, was %v", label, name, got[name], row)
		}
	}
	resumed, _ := on(after, o)
	o.Resume = nil
	whole, _ := on(after, o)
	SameCurve(t, label, resumed.Loss, whole.Loss, 1e-9)
	SameCurve(t, label+", validation", resumed.Val, whole.Val, 1e-9)
}

// Table is the rows that all workers learnt, as one worker's.
func Table(t testing.TB, results []*train.Result) nn.Tensor {
	t.Helper()
	var shards [][]nn.Tensor
	for _, r := range results {
		shards = append(shards, r.LearntRows)
	}
	tables, _, err := nn.JoinRows(shards)
	if err != nil || len(tables) != 1 {
		t.Fatalf("%d tables, %v", len(tables), err)
	}
	return tables[0]
}

// joinedOf are the learnt rows that all workers saved.
func joinedOf(states []*train.State) []nn.Tensor {
	var all [][]nn.Tensor
	for _, s := range states {
		all = append(all, s.Caches)
	}
	joined, _ := train.JoinLearnt(all)
	return joined
}

// byVertex are rows by the names of tensors and vertices.
func byVertex(t testing.TB, list []nn.Tensor) map[string][]float64 {
	t.Helper()
	vertices, rows := map[string][]float64{}, map[string][]float64{}
	kind := func(name string) (of string, ids bool) {
		of, ids = strings.CutSuffix(name, ".ids")
		if of, other := strings.CutPrefix(name, "learnt.ids."); other {
			return of, true
		}
		for _, of := range []string{"embeddings", "learnt.sparse"} {
			if strings.HasPrefix(name, of+".") {
				return of, ids
			}
		}
		for _, cut := range []string{"learnt.rows.", "learnt.best.", "learnt.optimiser."} {
			name = strings.TrimPrefix(name, cut)
		}
		return strings.TrimSuffix(strings.TrimSuffix(name, ".exp_avg"), ".exp_avg_sq"), false
	}
	for i := range list {
		if of, ids := kind(list[i].Name); ids {
			vertices[of] = list[i].Numbers()
		}
	}
	for i := range list {
		of, ids := kind(list[i].Name)
		if ids || len(list[i].Shape) != 2 {
			continue
		}
		all, wide := list[i].Numbers(), list[i].Shape[1]
		if len(vertices[of]) != list[i].Shape[0] {
			t.Fatalf("%s: rows of %d vertices, shape %v", list[i].Name, len(vertices[of]), list[i].Shape)
		}
		for k, v := range vertices[of] {
			rows[fmt.Sprint(list[i].Name, " of vertex ", v)] = all[k*wide : (k+1)*wide]
		}
	}
	return rows
}

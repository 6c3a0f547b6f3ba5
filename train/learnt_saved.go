package train

import (
	"fmt"
	"slices"
	"strings"

	"starling/nn"
)

// Saved learnt rows have the ids of their vertices, so that a run may go on with other workers, each of which takes the
// rows of its own vertices from those of all.

// idsTensor is the vertices of a parameter's rows.
func idsTensor(name string, ids []uint32) nn.Tensor {
	t := nn.Tensor{Name: learntIDs + name, Shape: []int{len(ids)}, F64: true, Data: make([]float64, len(ids))}
	for i, v := range ids {
		t.Data[i] = float64(v)
	}
	return t
}

// JoinLearnt joins what workers saved of learnt rows; none: they have not learnt any. others reports whether they saved
// anything else.
func JoinLearnt(saved [][]nn.Tensor) (joined []nn.Tensor, others bool) {
	at := map[string]int{}
	for _, list := range saved {
		for _, t := range list {
			if !strings.HasPrefix(t.Name, "learnt.") {
				others = true
				continue
			}
			t.Data, t.Read, t.Shape = t.Numbers(), nil, slices.Clone(t.Shape)
			i, seen := at[t.Name]
			if !seen {
				at[t.Name] = len(joined)
				joined = append(joined, t)
				continue
			}
			joined[i].Shape[0] += t.Shape[0]
			joined[i].Data = append(slices.Clip(joined[i].Data), t.Data...)
		}
	}
	return joined, others
}

// own are the saved rows of this worker's vertices, of what may be those of all.
func (l *Learnt) own(saved []nn.Tensor) (out []nn.Tensor, err error) {
	for i, p := range l.params {
		rows, err := l.rowsOf(i, saved)
		if err != nil {
			return nil, err
		}
		for _, t := range saved {
			if belongs(t.Name, p.Name) {
				out = append(out, pick(t, rows))
			}
		}
	}
	return out, nil
}

// belongs reports whether a tensor has rows of a parameter: itself, its best values, or what the optimiser keeps.
func belongs(name, param string) bool {
	return name == learntRows+param || name == learntBest+param || strings.HasPrefix(name, learntStep+param+".")
}

// rowsOf are where the rows of parameter i are among saved ones.
func (l *Learnt) rowsOf(i int, saved []nn.Tensor) ([]int, error) {
	name := learntIDs + l.params[i].Name
	at := slices.IndexFunc(saved, func(t nn.Tensor) bool { return t.Name == name })
	if at < 0 {
		return nil, fmt.Errorf("it has none of %s", l.params[i].Name)
	}
	row := map[uint32]int{}
	for k, v := range saved[at].Numbers() {
		row[uint32(v)] = k
	}
	rows := make([]int, len(l.ids[i]))
	for k, v := range l.ids[i] {
		r, ok := row[v]
		if !ok {
			return nil, fmt.Errorf("it has none of vertex %d", v)
		}
		rows[k] = r
	}
	return rows, nil
}

// pick is some rows of a tensor.
func pick(t nn.Tensor, rows []int) nn.Tensor {
	all, wide := t.Numbers(), t.Shape[1]
	out := nn.Tensor{Name: t.Name, Shape: []int{len(rows), wide}, F64: t.F64, Data: make([]float64, 0, len(rows)*wide)}
	for _, r := range rows {
		out.Data = append(out.Data, all[r*wide:(r+1)*wide]...)
	}
	return out
}

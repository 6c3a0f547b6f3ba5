package train

import (
	"fmt"
	"slices"
	"strings"

	"starling/nn"
)

// Saved learnt rows have the ids of their vertices, so that a run may go on with other workers, each of which takes the
// rows of its own vertices from those of all.

// IDsTensor is the vertices of saved rows.
func IDsTensor(name string, ids []uint32) nn.Tensor {
	t := nn.Tensor{Name: name, Shape: []int{len(ids), 1}, F64: true, Data: make([]float64, len(ids))}
	for i, v := range ids {
		t.Data[i] = float64(v)
	}
	return t
}

// JoinLearnt joins what workers saved of learnt rows, which are read from where they are when they are asked for; none:
// no rows are learnt. others reports whether they saved anything else.
func JoinLearnt(saved [][]nn.Tensor) (joined []nn.Tensor, others bool) {
	var names []string
	of := map[string][]nn.Tensor{}
	for _, list := range saved {
		for _, t := range list {
			switch {
			case !strings.HasPrefix(t.Name, "learnt.") && !strings.HasPrefix(t.Name, "embeddings."):
				others = true
				continue
			case of[t.Name] == nil:
				names = append(names, t.Name)
			}
			of[t.Name] = append(of[t.Name], t)
		}
	}
	for _, name := range names {
		joined = append(joined, joinRows(of[name]))
	}
	return joined, others
}

// joinRows are the rows of several tensors, one after the other.
func joinRows(list []nn.Tensor) nn.Tensor {
	t := nn.Tensor{Name: list[0].Name, Shape: slices.Clone(list[0].Shape), F64: list[0].F64}
	if len(t.Shape) != 2 { // a few numbers, or ids as earlier versions saved them
		for i := range list {
			t.Data = append(t.Data, list[i].Numbers()...)
		}
		t.Shape = []int{len(t.Data)}
		return t
	}
	t.Shape[0] = 0
	for i := range list {
		t.Shape[0] += list[i].Shape[0]
	}
	t.Read = func(into []float64, row int) {
		for i := range list {
			n := list[i].Shape[0]
			if row >= n {
				row -= n
				continue
			}
			here := min((n-row)*t.Shape[1], len(into))
			readRows(&list[i], into[:here], row)
			if into, row = into[here:], 0; len(into) == 0 {
				return
			}
		}
	}
	return t
}

// readRows reads whole rows, from one on.
func readRows(t *nn.Tensor, into []float64, row int) {
	if t.Read != nil {
		t.Read(into, row)
		return
	}
	copy(into, t.Data[row*t.Shape[1]:])
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
				out = append(out, PickRows(t, rows))
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
	rows, err := RowsAt(saved, learntIDs+l.params[i].Name, l.ids[i])
	if rows == nil && err == nil {
		err = fmt.Errorf("it has none of %s", l.params[i].Name)
	}
	return rows, err
}

// RowsAt are where the rows of vertices are among saved ones, whose vertices a tensor has; nil: there is no such
// tensor.
func RowsAt(saved []nn.Tensor, name string, vertices []uint32) ([]int, error) {
	i := slices.IndexFunc(saved, func(t nn.Tensor) bool { return t.Name == name })
	if i < 0 {
		return nil, nil
	}
	rows, at := make([]int, len(vertices)), make(map[uint32]int, len(vertices))
	for k, v := range vertices {
		rows[k], at[v] = -1, k
	}
	row := 0
	saved[i].Pieces(func(numbers []float64, _ int) {
		for _, v := range numbers {
			if k, ok := at[uint32(v)]; ok {
				rows[k] = row
			}
			row++
		}
	})
	if k := slices.Index(rows, -1); k >= 0 {
		return nil, fmt.Errorf("it has none of vertex %d", vertices[k])
	}
	return rows, nil
}

// PickRows is some rows of a tensor.
func PickRows(t nn.Tensor, rows []int) nn.Tensor {
	wide := t.Shape[1]
	out := nn.Tensor{Name: t.Name, Shape: []int{len(rows), wide}, F64: t.F64, Data: make([]float64, len(rows)*wide)}
	for i, r := range rows {
		readRows(&t, out.Data[i*wide:(i+1)*wide], r)
	}
	return out
}

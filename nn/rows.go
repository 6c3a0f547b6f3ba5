package nn

import (
	"fmt"
	"strings"
)

// A shard of a table has some of its rows, as a tensor of the table's name, and their places in the table: a tensor
// [rows, 1] of the name with ".places".
const placesSuffix = ".places"

// PlacesOf are the places of a shard's rows.
func PlacesOf(name string, places []uint32) Tensor {
	t := Tensor{Name: name + placesSuffix, Shape: []int{len(places), 1}, F64: true, Data: make([]float64, len(places))}
	for i, v := range places {
		t.Data[i] = float64(v)
	}
	return t
}

// JoinRows joins the shards of tables. An error comes with the number of the shard that it is about.
func JoinRows(shards [][]Tensor) (tables []Tensor, shard int, err error) {
	at, places := map[string]int{}, map[string]*Tensor{}
	for k, list := range shards {
		for i := range list {
			t := &list[i]
			name, is := strings.CutSuffix(t.Name, placesSuffix)
			switch n, seen := at[name]; {
			case is:
				places[fmt.Sprint(k, " ", name)] = t
			case len(t.Shape) != 2:
				return nil, k, fmt.Errorf("array %q has shape %v, want rows", t.Name, t.Shape)
			case !seen:
				at[name] = len(tables)
				tables = append(tables, Tensor{Name: name, Shape: []int{t.Shape[0], t.Shape[1]}, F64: t.F64})
			case tables[n].Shape[1] != t.Shape[1]:
				return nil, k, fmt.Errorf("array %q has rows of %d numbers, others of %d", t.Name, t.Shape[1], tables[n].Shape[1])
			default:
				tables[n].Shape[0] += t.Shape[0]
			}
		}
	}
	filled := make([][]bool, len(tables))
	for n := range tables {
		rows := tables[n].Shape[0]
		tables[n].Data, filled[n] = make([]float64, rows*tables[n].Shape[1]), make([]bool, rows)
	}
	for k, list := range shards {
		for i := range list {
			if n, ok := at[list[i].Name]; ok {
				if err := tables[n].put(&list[i], places[fmt.Sprint(k, " ", list[i].Name)], filled[n]); err != nil {
					return nil, k, err
				}
			}
		}
	}
	return tables, 0, nil
}

// put puts the rows of a shard at their places, of which none is filled.
func (t *Tensor) put(rows, places *Tensor, filled []bool) (err error) {
	if places == nil || len(places.Shape) == 0 || places.Shape[0] != rows.Shape[0] {
		return fmt.Errorf("array %q has %d rows without a place for each", rows.Name, rows.Shape[0])
	}
	at, wide := places.Numbers(), t.Shape[1]
	rows.Pieces(func(numbers []float64, row int) {
		for ; len(numbers) > 0 && err == nil; row, numbers = row+1, numbers[wide:] {
			p := at[row]
			if !(p >= 0 && p < float64(len(filled))) || filled[int(p)] {
				err = fmt.Errorf("array %q has a row at place %g of %d, which is filled or not in the table: another shard is "+
					"missing or of another run", rows.Name, p, len(filled))
				return
			}
			filled[int(p)] = true
			copy(t.Data[int(p)*wide:], numbers[:wide])
		}
	})
	return err
}

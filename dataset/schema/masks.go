package schema

import (
	"fmt"
	"slices"
	"strings"

	"starling/dataset/table"
)

// splitNames are the splits, in the order of masks and files.
var splitNames = [3]string{"train", "val", "test"}

// maskPlan is an open mask; no table: there is none.
type maskPlan struct {
	table *table.Table
	col   string
}

// masked tells whether vertices are divided by columns of 0 and 1.
func (s *Split) masked() bool { return s.Masks != [3]*Mask{} }

// openMasks finds the columns of masks.
func (n *nodePlan) openMasks() error {
	for i, m := range n.Split.Masks {
		if m == nil {
			continue
		}
		t, err := n.own(&m.Table, m.Col, n.Split.at)
		if err != nil {
			return err
		}
		c, err := column(t, m.Col, n.Split.at)
		if err == nil && (c.Kind == table.Vector || c.Kind == table.Time) {
			err = n.Split.at.wrong(fmt.Sprintf("%s, which are %s", c.Name, c.String()), "0 and 1, or true and false",
				"name the column of the mask")
		}
		if err != nil {
			return err
		}
		n.masks[i] = maskPlan{t, c.Name}
	}
	return nil
}

// addMasks has the masks read.
func (d *typeData) addMasks(list *[]pass) {
	for i, m := range d.plan.masks {
		if m.table == nil {
			continue
		}
		add(list, m.table, m.col, table.Text, func(b *table.Batch, v *table.Values) error {
			return d.mask(b, v, i)
		})
	}
}

// mask takes rows of the mask of split i.
func (d *typeData) mask(b *table.Batch, v *table.Values, i int) error {
	for len(d.masks) < int(b.First)+b.Rows {
		d.masks = append(d.masks, 0)
	}
	wrong := func(row int, found, want, fix string) error {
		return place{b.File, fmt.Sprintf("%s, column %s", b.Place(row), d.plan.masks[i].col)}.wrong(found, want, fix)
	}
	for row := range b.Rows {
		at := &d.masks[int(b.First)+row]
		switch strings.ToLower(v.Text[row]) {
		case "", "0", "0.0", "false":
			continue
		case "1", "1.0", "true":
		default:
			return wrong(row, fmt.Sprintf("%.60q", v.Text[row]), "0 or 1, or false or true", "correct it")
		}
		if *at != 0 {
			return wrong(row, "a vertex that the mask of "+splitNames[*at-1]+" has too", "each in one split at most",
				"correct one of the masks")
		}
		*at = uint8(1 + i)
	}
	return nil
}

// byMasks takes the splits of masks. Vertices without a label are in none.
func (b *build) byMasks(d *typeData) error {
	parts, unlabelled := [3]*[]uint32{&d.splits.Train, &d.splits.Val, &d.splits.Test}, 0
	for v, k := range d.masks {
		switch {
		case k == 0:
		case !d.labels.Has(v):
			unlabelled++
		default:
			*parts[k-1] = append(*parts[k-1], uint32(v))
		}
	}
	d.masks = nil
	if unlabelled > 0 {
		b.note("%svertices of the splits without a label are left out: %d", d.prefix(), unlabelled)
	}
	if len(d.splits.Train) == 0 && b.plan.Schema.Like == nil {
		return d.plan.Split.at.wrong("no labelled vertex to train on in the masks", "some of train", "check the masks")
	}
	return nil
}

// oneGraph refuses a column that names more than one graph.
type oneGraph struct {
	column, name string
	seen         bool
}

func (o *oneGraph) check(b *table.Batch, v *table.Values) error {
	if !o.seen && b.Rows > 0 {
		o.seen, o.name = true, v.Text[0]
	}
	i := slices.IndexFunc(v.Text[:b.Rows], func(s string) bool { return s != o.name })
	if i < 0 {
		return nil
	}
	return place{b.File, fmt.Sprintf("%s, column %s", b.Place(i), o.column)}.wrong(
		fmt.Sprintf("graph %.40q after graph %.40q", v.Text[i], o.name), "one graph",
		"write each graph to a folder of its own")
}

// last checks the last column of a batch; a nil one has none to check.
func (o *oneGraph) last(b *table.Batch) error {
	if o == nil {
		return nil
	}
	return o.check(b, &b.Columns[len(b.Columns)-1])
}

// wants are the columns of ids, and then that of graphs, if there is one.
func (e *edgePlan) wants() ([]table.Want, *oneGraph) {
	want := []table.Want{{Name: e.Src, As: table.ID}, {Name: e.Dst, As: table.ID}}
	if e.Graph == "" {
		return want, nil
	}
	return append(want, table.Want{Name: e.Graph, As: table.Text}), &oneGraph{column: e.Graph}
}

package report

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"starling/spec"
)

// nameSettings names the settings of the model in which rows differ from the baseline, or where several models are
// compared, from the first row of their model. Such a row trains another model, and is not exact.
func (c *Comparison) nameSettings(base *CompareRow) {
	for i := range c.Rows {
		r := &c.Rows[i]
		if r.Spec == nil {
			continue
		}
		if of := c.firstOf(r.Spec.Model.Name, base); of != nil {
			r.Without = modelDifferences(&r.Spec.Model, &of.Spec.Model)
		}
		r.Exact = r.Exact && len(r.Without) == 0
	}
}

// firstOf is the row that others of a model are compared with.
func (c *Comparison) firstOf(model string, base *CompareRow) *CompareRow {
	has := func(r CompareRow) bool { return r.Spec != nil && r.Spec.Model.Name == model }
	if has(*base) {
		return base
	}
	if i := slices.IndexFunc(c.Rows, has); i >= 0 {
		return &c.Rows[i]
	}
	return nil
}

// modelDifferences are the settings that differ: "without input dropout", "with layers 3".
func modelDifferences(m, of *spec.Model) (list []string) {
	a, b := reflect.ValueOf(*m), reflect.ValueOf(*of)
	for i := range a.NumField() {
		if x := a.Field(i).Interface(); x != b.Field(i).Interface() {
			name := strings.ReplaceAll(a.Type().Field(i).Tag.Get("json"), "_", " ")
			switch x {
			case false, spec.Off:
				list = append(list, "without "+name)
			case true, spec.On:
				list = append(list, "with "+name)
			default:
				list = append(list, fmt.Sprintf("with %s %v", name, x))
			}
		}
	}
	return list
}

// isExact reports whether the strategy of a run follows the loss curve of one worker.
func isExact(s *spec.Spec) bool {
	if s == nil {
		return false
	}
	choice, err := s.Choice()
	return err == nil && choice.Exact()
}

// label is the strategy, what of the model it cannot have, and whether it is the paper's where the default is not.
func (r *CompareRow) label() string {
	label := r.Strategy
	if r.Paper != nil && r.Paper.Own == r.Strategy {
		label += " (the paper's)"
	}
	if len(r.Without) == 0 {
		return label
	}
	return label + ", " + strings.Join(r.Without, ", ")
}

// exactness is the cell of the table.
func (r *CompareRow) exactness() string {
	switch {
	case len(r.Without) > 0:
		return "another model"
	case r.Exact:
		return "yes"
	}
	return "no"
}

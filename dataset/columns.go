package dataset

import (
	"slices"
	"strings"
)

// The roles of the columns of a text table, by the names in its header: the usual words
// are found in any column; without them the first columns are used. A first column with
// no name is the row numbers that pandas puts before a table, unless nothing else
// identifies a row.

var labelNames = []string{"label", "labels", "y", "class"}

// named is the first column that is called one of the words; -1: none is.
func named(names, words []string) int {
	return slices.IndexFunc(names, func(s string) bool { return slices.Contains(words, strings.ToLower(s)) })
}

// edgeColumns finds source, target and weight. An end whose name is not known is the column
// beside the other end.
func edgeColumns(names []string) [3]int {
	src, dst := named(names, sourceNames), named(names, targetNames)
	switch {
	case src >= 0 && dst < 0:
		dst = src + 1
	case dst > 0 && src < 0:
		src = dst - 1
	case src < 0:
		src = 0
		if len(names) > 2 && names[0] == "" {
			src = 1
		}
		dst = src + 1
	}
	weight := named(names, weightNames)
	if weight == src || weight == dst {
		weight = -1
	}
	for i := 0; weight < 0; i++ { // the first other that has a name
		if i != src && i != dst && (i >= len(names) || names[i] != "") {
			weight = i
		}
	}
	return [3]int{src, dst, weight}
}

// idWords are names of a column of ids that is not the first. The first may have
// other names too.
var idWords = []string{"id", "nodeid", "node_id", "vertex_id"}

// vertexColumns orders the columns of a table of vertices: the id, then what is called
// one of the words, then the others. nil: they are in order.
func vertexColumns(names, words []string) []int {
	id := 0
	if at := named(names, idWords); at > 0 && !namesColumn(names[0]) {
		id = at
	}
	order := []int{id}
	if at := named(names, words); at >= 0 && at != id {
		order = append(order, at)
	}
	for i, name := range names {
		rowNumber := i == 0 && name == ""
		if !slices.Contains(order, i) && !rowNumber {
			order = append(order, i)
		}
	}
	if slices.IsSorted(order) && len(order) == len(names) {
		return nil
	}
	return order
}

// ordered is the fields of a row in another order; a missing one is empty.
func ordered(fields []string, columns int, order []int) []string {
	if order == nil {
		return fields
	}
	out := make([]string, 0, len(fields))
	for _, i := range order {
		if i < len(fields) {
			out = append(out, fields[i])
		} else {
			out = append(out, "")
		}
	}
	return append(out, fields[min(columns, len(fields)):]...)
}

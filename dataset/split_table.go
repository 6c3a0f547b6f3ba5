package dataset

import (
	"fmt"
	"slices"
	"strings"

	"starling/graph"
)

// splitTable is a file of id,split lines: train, val or test, or 0, 1 or 2.
type splitTable struct {
	path   string
	ids    []string
	splits []string
}

func (t *splitTable) add(id string, fields []string) *badCell {
	name := SplitName(fields[0])
	switch {
	case name == "" || slices.Contains(splitChoices, name):
	case len(t.ids) == 0 && (namesColumn(id) || slices.Contains(splitNames, strings.ToLower(fields[0]))):
		return isHeader
	default:
		return &badCell{at: 1, want: "train, val or test (or 0, 1, 2), or nothing for none of them"}
	}
	t.ids, t.splits = append(t.ids, id), append(t.splits, name)
	return nil
}

// splitNames are names of a column of splits.
var splitNames = []string{"split", "role", "set", "subset"}

var splitChoices = []string{"train", "val", "test"}

// SplitName normalizes the name of a split: train, val, test, nothing, or what it was.
func SplitName(s string) string {
	switch s := strings.ToLower(s); s {
	case "valid", "validation", "dev", "va", "1":
		return "val"
	case "tr", "training", "0":
		return "train"
	case "te", "testing", "2":
		return "test"
	default:
		return s
	}
}

// attach sorts the vertices into splits. Those without a label are left out, where there are labels.
func (t *splitTable) attach(r *read, ids *idMap) error {
	of := make([]string, ids.n)
	unlabelled := 0
	for i, id := range t.ids {
		v, ok := ids.find(id)
		switch {
		case !ok:
			return badFile(t.path, "id", fmt.Sprintf("%q", id), "an id of the graph", "remove it or give a larger --nodes")
		case of[v] != "" && t.splits[i] != of[v]:
			return badFile(t.path, "id", fmt.Sprintf("%q in %s and in %s", id, of[v], t.splits[i]), "one split",
				"keep one of its lines")
		case t.splits[i] != "" && r.labels != nil && !r.labels.Has(int(v)):
			unlabelled++
			continue
		}
		of[v] = t.splits[i]
	}
	r.splits = graph.Splits{}
	for v, name := range of {
		switch name {
		case "train":
			r.splits.Train = append(r.splits.Train, uint32(v))
		case "val":
			r.splits.Val = append(r.splits.Val, uint32(v))
		case "test":
			r.splits.Test = append(r.splits.Test, uint32(v))
		}
	}
	if unlabelled > 0 {
		r.notes = append(r.notes, fmt.Sprintf("vertices of the splits without a label are left out: %d", unlabelled))
	}
	if len(r.splits.Train) == 0 {
		return badFile(t.path, "split", "no vertex to train on", "some of train", "check the file")
	}
	return nil
}

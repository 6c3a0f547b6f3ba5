package graph

import (
	"fmt"
	"hash/crc32"
	"slices"
)

// Contents identify what a dataset has, by kind: a checksum over the checksums (CRC-32C) of its
// files. Two datasets with equal Contents train alike, whatever their names and notes.
type Contents struct {
	Graph    string `json:"graph,omitempty"` // structure, weights and features of edges
	Features string `json:"features,omitempty"`
	Labels   string `json:"labels,omitempty"`
	Splits   string `json:"splits,omitempty"`
	Schema   string `json:"schema,omitempty"` // of a typed graph: its types and relations
	Times    string `json:"times,omitempty"`  // of edges and vertices
}

// Contents returns the checksums of the dataset. A file without a checksum in meta.json is read.
func (d *Dataset) Contents() Contents {
	return Contents{
		Graph: d.sumOf("indptr.npy", "indices.npy", "weights.npy", "edge_features.npy", relationsFile),
		Features: d.sumOf(append(d.typedNames("features"), "features.npy", "features_indptr.npy", "features_indices.npy",
			"features_values.npy")...),
		Labels: d.sumOf(append(d.typedNames("labels"), "labels.npy")...),
		Splits: d.sumOf(slices.Concat(d.typedNames("train"), d.typedNames("val"), d.typedNames("test"),
			[]string{"train.npy", "val.npy", "test.npy"})...),
		Schema: d.Meta.Schema.sum(),
		Times:  d.sumOf(edgeTimesFile, timesFile),
	}
}

// sum is a checksum over the names of types and relations, and the vertices of each type; empty: there is no schema.
func (s *Schema) sum() string {
	if s == nil {
		return ""
	}
	var list []byte
	for i := range s.Types {
		list = fmt.Appendf(list, "%q %d\n", s.Types[i].Name, s.Types[i].Count)
	}
	for r := range s.Relations {
		list = fmt.Appendf(list, "%d %q %d\n", s.Relations[r].Source, s.Relations[r].Name, s.Relations[r].Target)
	}
	return fmt.Sprintf("%08x", crc32.Checksum(list, castagnoli))
}

// typedNames are the names that an array has, by type.
func (d *Dataset) typedNames(array string) (names []string) {
	if d.Typed() {
		for k := range d.Meta.Schema.Types {
			names = append(names, typedName(array, k))
		}
	}
	return names
}

// sumOf is a checksum over the names and checksums of the files that the dataset has; empty: it
// has none of them.
func (d *Dataset) sumOf(names ...string) string {
	var list []byte
	for _, name := range names {
		if b := d.maps[name]; b != nil {
			sum := d.Meta.Arrays[name].CRC32C
			if sum == "" {
				sum = fmt.Sprintf("%08x", crc32.Checksum(b, castagnoli))
			}
			list = fmt.Appendln(list, name, sum)
		}
	}
	if list == nil {
		return ""
	}
	return fmt.Sprintf("%08x", crc32.Checksum(list, castagnoli))
}

// Differences name what is not the same in both.
func (c Contents) Differences(o Contents) (names []string) {
	for _, f := range []struct{ name, one, other string }{
		{"graph", c.Graph, o.Graph}, {"features", c.Features, o.Features},
		{"labels", c.Labels, o.Labels}, {"splits", c.Splits, o.Splits}, {"schema", c.Schema, o.Schema},
		{"times", c.Times, o.Times},
	} {
		if f.one != f.other {
			names = append(names, f.name)
		}
	}
	return names
}

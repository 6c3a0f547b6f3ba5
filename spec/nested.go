package spec

import (
	"fmt"
	"maps"
	"slices"

	"starling/graph"
	"starling/train"
)

// Settings may be written by group, as in
//
//	model: {name: sage, layers: 3}
//	optimizer:
//	  lr: 0.01
//
// or all at the top, as a spec writes itself.

// lift brings the settings of groups to the top. inside is what a value holds by name; nil: it is no group.
func lift[V any](top map[string]V, inside func(V) map[string]V) (lifted bool, err error) {
	groups := map[string]map[string]string{} // names inside each group, with those at the top
	for name, f := range new(Spec).ownFields() {
		if groups[f.group] == nil {
			groups[f.group] = map[string]string{}
		}
		groups[f.group][f.inGroup()] = name
	}
	delete(groups, "")
	for _, group := range slices.Sorted(maps.Keys(groups)) {
		in, names := inside(top[group]), groups[group]
		if in == nil {
			continue
		}
		delete(top, group)
		lifted = true
		for _, key := range slices.Sorted(maps.Keys(in)) {
			name, ok := names[key]
			if _, twice := top[name]; twice {
				return true, &graph.InputError{Field: name, Found: "it by itself and in " + group,
					Want: "each setting once", Fix: "leave out one of the two"}
			}
			if !ok {
				known := slices.Sorted(maps.Keys(names))
				return true, notSettings(fmt.Sprintf("unknown field %q in %s", key, group), train.Suggest(key, known))
			}
			top[name] = in[key]
		}
	}
	return lifted, nil
}

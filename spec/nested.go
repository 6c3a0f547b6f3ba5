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
		if f.group != "" {
			groups[f.group] = with(groups[f.group], f.inGroup(), name)
		}
	}
	for group, names := range groups {
		in := inside(top[group])
		if in == nil {
			continue
		}
		delete(top, group)
		lifted = true
		for key, value := range in {
			name, ok := names[key]
			if _, twice := top[name]; twice {
				return true, &graph.InputError{Field: name, Found: "it by itself and in " + group,
					Want: "each setting once", Fix: "leave out one of the two"}
			}
			if !ok {
				known := slices.Sorted(maps.Keys(names))
				return true, notSettings(fmt.Sprintf("unknown field %q in %s", key, group), train.Suggest(key, known))
			}
			top[name] = value
		}
	}
	return lifted, nil
}

func with(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

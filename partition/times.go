package partition

import (
	"fmt"

	"starling/graph"
)

// sameTimes compares the times of a part with those of the dataset.
func sameTimes(p *Part, d *graph.Dataset) error {
	seen := d.SeenFrom()
	switch {
	case (p.Times == nil) != (d.Times == nil):
		return badBook("times", fmt.Sprint(len(p.Times), " times of vertices"), "as many as the dataset has")
	case (p.SeenFrom == nil) != (seen == nil):
		return badBook("seen_from", fmt.Sprint(len(p.SeenFrom), " times of edges"), "as many as the dataset has")
	}
	for i, id := range p.IDs[:p.Core()] {
		if p.Times != nil && p.Times[i] != d.Times[id] {
			return badBook("times", fmt.Sprintf("another for vertex %d", id), "that of the dataset")
		}
		if seen == nil {
			continue
		}
		ours := edgesBySource(p.In, uint32(i), func(u uint32) uint32 { return p.IDs[u] })
		theirs := edgesBySource(d.Graph, id, func(u uint32) uint32 { return u })
		for k := range ours {
			if p.SeenFrom[ours[k]] != seen[theirs[k]] {
				return badBook("seen_from", fmt.Sprintf("another for an in-edge of vertex %d", id),
					"that of the dataset")
			}
		}
	}
	return nil
}

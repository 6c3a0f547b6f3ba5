package partition

import (
	"context"

	"starling/rng"
)

// Hash assigns a vertex by a hash of its number. Nothing needs to be stored
// to find its part; parts are even only on average.
func Hash(_ context.Context, p *Problem) ([]uint32, error) {
	parts := make([]uint32, p.Graph.Nodes())
	key := rng.New(p.Seed).Fold(hashStream)
	for v := range parts {
		parts[v] = uint32(key.IntN(uint64(v), p.Parts))
	}
	return parts, nil
}

package partition

import (
	"context"

	"starling/rng"
)

// Hash gives a vertex the part its number hashes to. Nothing needs to be stored
// to know where a vertex lives, and parts are even only as chance has it.
func Hash(_ context.Context, p *Problem) ([]uint32, error) {
	parts := make([]uint32, p.Graph.Nodes())
	key := rng.New(p.Seed).Fold(hashStream)
	for v := range parts {
		parts[v] = uint32(key.IntN(uint64(v), p.Parts))
	}
	return parts, nil
}

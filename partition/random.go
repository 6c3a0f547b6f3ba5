package partition

import (
	"context"

	"starling/rng"
)

// Keys of the separate streams of draws under one seed.
const (
	randomStream = iota + 0x70617274
	hashStream
	sampleStream
)

// Random assigns vertices in random order to the parts round-robin, so
// that sizes differ by at most one. It is the baseline every other method is
// compared with: it cuts (K-1)/K of all edges on average.
func Random(_ context.Context, p *Problem) ([]uint32, error) {
	parts := make([]uint32, p.Graph.Nodes())
	for i, v := range rng.New(p.Seed).Fold(randomStream).Perm(len(parts)) {
		parts[v] = uint32(i % p.Parts)
	}
	return parts, nil
}

package generate

import (
	"math/bits"

	"starling/rng"
)

// newErdosRenyi is G(n, m): both ends of every edge are uniform and independent.
//
// P. Erdős, A. Rényi: On random graphs I, 1959.
func newErdosRenyi(p Params) (*model, error) {
	n := uint64(p.Nodes)
	k := rng.New(p.Seed).Fold(edgeStream)
	source := func(lo int64, src, dst []uint32, _ []float32) {
		for i := range src {
			// The product's upper word is uniform below n. Its lower word is uniform
			// as well, and gives the other end.
			u, rest := bits.Mul64(k.Uint64(uint64(lo)+uint64(i)), n)
			v, _ := bits.Mul64(rest, n)
			src[i], dst[i] = uint32(u), uint32(v)
		}
	}
	ways := 1.0
	if !p.Directed {
		ways = 2 // a pair is drawn as (u,v) or as (v,u)
	}
	rates := make([]float64, 1<<10)
	for i := range rates {
		rates[i] = ways * float64(p.drawn()) / float64(n) / float64(n)
		if float64(i) < float64(len(rates))/float64(n) {
			rates[i] = selfLoop
		}
	}
	m, err := drawsFor(p.drawn(), rates)
	return &model{edges: m, source: source}, err
}

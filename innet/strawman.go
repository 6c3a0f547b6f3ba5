package innet

import "math/rand/v2"

// StrawmanCounts is what the paper's strawman (§2.3.2) moves for a graph.
type StrawmanCounts struct {
	Rows int // that leave hosts
	Sums int // that leave the switch, whole or partial
	Raw  int // rows that the switch passes on, one per host that needs it
	Most int // aggregators in use at once
}

// Strawman counts what a switch without blocks and order does: rows come in a random order, a
// destination takes an aggregator with its first row and releases it with its last, and a row
// that finds none goes to the destination's host as it is, once per host. A sum that misses such
// rows leaves when all others are there.
func Strawman(g *Graph, limit int) (c StrawmanCounts) {
	ptr, into := group(len(g.Host), g.Src, g.Dst)
	missing, held := make([]int32, len(g.Host)), make([]bool, len(g.Host))
	for _, v := range g.Dst {
		missing[v]++
	}
	order, used := distinct(g.Src), 0
	rand.New(rand.NewPCG(1, uint64(len(order)))).Shuffle(len(order), func(i, j int) {
		order[i], order[j] = order[j], order[i]
	})
	sentAsIs := make([]int, 1+int(maxHost(g.Host))) // the last row that each host was sent as it is
	for i, u := range order {
		c.Rows++
		for _, v := range into[ptr[u]:ptr[u+1]] {
			switch {
			case held[v]:
			case used < limit:
				held[v] = true
				used++
				c.Most = max(c.Most, used)
			case sentAsIs[g.Host[v]] != i+1:
				sentAsIs[g.Host[v]] = i + 1
				c.Raw++
			}
			if missing[v]--; missing[v] == 0 && held[v] {
				held[v] = false
				used--
				c.Sums++
			}
		}
	}
	return c
}

func maxHost(hosts []uint16) (most uint16) {
	for _, h := range hosts {
		most = max(most, h)
	}
	return most
}

package cost

import (
	"fmt"
	"slices"
)

// ServerLink is the link between two servers, as measured: the slowest of the pairs of workers that were tried.
type ServerLink struct {
	A    int `json:"a"` // servers, A below B
	B    int `json:"b"`
	Link `json:"link"`
	// Hosts are the names of the two workers of that pair's hosts.
	Hosts [2]string `json:"hosts"`
}

// mostLinks bounds the links of a file.
const mostLinks = 1 << 16

// LinkRounds are pairs of workers to be measured one round after the other. In a round every worker is in one pair
// at most, and between two servers there is one: their workers share a link. Within a server all pairs are measured,
// between two servers as many as one of them has workers, each of which is in one.
func LinkRounds(workers, servers int) (rounds [][][2]int) {
	servers = max(servers, 1)
	each := workers / servers
	for _, pairs := range tournament(each) {
		var round [][2]int
		for s := range servers {
			for _, p := range pairs {
				round = append(round, [2]int{s*each + p[0], s*each + p[1]})
			}
		}
		rounds = append(rounds, round)
	}
	for _, pairs := range tournament(servers) {
		for i := range each {
			var round [][2]int
			for _, p := range pairs {
				round = append(round, [2]int{p[0]*each + i, p[1]*each + i})
			}
			rounds = append(rounds, round)
		}
	}
	return rounds
}

// tournament is rounds in which each of n meets every other once (the circle method).
func tournament(n int) (rounds [][][2]int) {
	even := n + n%2
	for r := range even - 1 {
		var round [][2]int
		for i := range even / 2 {
			a, b := (r+i)%(even-1), (r+even-1-i)%(even-1)
			if i == 0 {
				b = even - 1
			}
			if max(a, b) < n {
				round = append(round, [2]int{min(a, b), max(a, b)})
			}
		}
		rounds = append(rounds, round)
	}
	return rounds
}

// SetLinks takes in measured links: Between is the slowest of them.
func (k *Known) SetLinks(list []ServerLink) {
	k.Links = list
	if len(list) == 0 {
		return
	}
	k.Between = list[0].Link
	for _, l := range list {
		k.Between.Rate, k.Between.Delay = min(k.Between.Rate, l.Rate), max(k.Between.Delay, l.Delay)
	}
}

// Slowest is the slowest link that was measured, if any was.
func (k *Known) Slowest() (ServerLink, bool) {
	if len(k.Links) == 0 {
		return ServerLink{}, false
	}
	return slices.MinFunc(k.Links, func(a, b ServerLink) int {
		if a.Rate < b.Rate {
			return -1
		}
		return 1
	}), true
}

// checkLinks names a link that cannot be.
func (k *Known) checkLinks() error {
	if len(k.Links) > mostLinks {
		return fmt.Errorf("found %d links, want at most %d", len(k.Links), mostLinks)
	}
	for _, l := range k.Links {
		if l.A < 0 || l.B <= l.A || !(l.Rate >= slowestRate && l.Rate <= 1e15) || !(l.Delay >= 0 && l.Delay <= 60) {
			return fmt.Errorf("found a link between servers %d and %d of %g bytes per second and %g s, want two "+
				"servers, a rate of 1 to 1e+15 and a delay up to 60 s", l.A, l.B, l.Rate, l.Delay)
		}
	}
	return nil
}

// linkSeconds is how long the links between servers are busy with what each of them sends. Where links were measured
// what a server sends goes to the others evenly: each share takes what its own link takes, and all together what
// the server's fastest does.
func (k *Known) linkSeconds(sent []float64) (most float64) {
	if len(k.Links) == 0 || len(sent) < 2 {
		return k.BusiestLink(sent)
	}
	fastest := make([]float64, len(sent))
	for _, l := range k.Links {
		if l.B < len(sent) {
			fastest[l.A], fastest[l.B] = max(fastest[l.A], l.Rate), max(fastest[l.B], l.Rate)
			share := max(sent[l.A], sent[l.B]) / float64(len(sent)-1)
			most = max(most, share*frame/l.Rate)
		}
	}
	for s, bytes := range sent {
		most = max(most, per(bytes*frame, fastest[s]))
	}
	return most
}

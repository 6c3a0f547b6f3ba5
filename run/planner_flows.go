package run

import "starling/netsim"

// manyServers is from how many servers on the time of links is that of a simulation of flows: among a few the busiest
// link decides, which prediction finds by itself.
const manyServers = 9

// simulateLinks is how many times as long an exchange of the halo's rows takes as the busiest link does by itself, if all
// servers send at once, each to those that need its rows: at flow level, where links are shared out fairly and some
// servers receive more than others. 0: there are few servers.
func (p *planner) simulateLinks() (float64, error) {
	if p.Cluster.Servers < manyServers || p.known.Between.Rate <= 0 {
		return 0, nil
	}
	top := netsim.DefaultTopology()
	top.Hosts, top.Rate, top.Delay = p.Cluster.Servers, netsim.Rate(8*p.known.Between.Rate), 0
	top.Payload, top.Header = 1448, 66
	net, err := netsim.NewFlows(top)
	if err != nil {
		return 0, err
	}
	sent := make([]float64, p.Cluster.Servers)
	for s, row := range p.haloRows() {
		for to, rows := range row {
			if s != to && rows > 0 {
				bytes := 4 * rows * int64(max(p.Model.Hidden, 1))
				sent[s] += float64(bytes)
				netsim.Send(net, &netsim.Transfer{From: s, To: to, Bytes: bytes})
			}
		}
	}
	netsim.Run(net, netsim.Never-1)
	if alone := p.known.BusiestLink(sent); alone > 0 {
		return max(1, net.Now().Seconds()/alone), nil
	}
	return 0, nil
}

// haloRows are how many rows the workers of each server send to those of each other, in a layer.
func (p *planner) haloRows() [][]int64 {
	list := make([][]int64, p.Cluster.Servers)
	for s := range list {
		list[s] = make([]int64, p.Cluster.Servers)
	}
	for r, part := range p.open {
		for q := range part.Book.Parts {
			if q != r {
				list[part.Book.Server(r)][part.Book.Server(q)] += int64(len(part.SendTo(q)))
			}
		}
	}
	return list
}

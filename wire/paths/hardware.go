package paths

import (
	"fmt"
	"slices"
	"strings"
)

// Model is how accelerator, NIC and CPU of a host are connected.
type Model string

// The models of the paper (figure 6.9), and any other.
const (
	Direct  Model = "direct"   // cpu, acc and nic at one PCIe switch
	OnPath  Model = "on-path"  // the accelerator between nic and cpu
	OffPath Model = "off-path" // the accelerator behind a router in the nic
	Custom  Model = "custom"   // whatever links the file has
)

// Models are those there are.
func Models() []string {
	return []string{string(Direct), string(OnPath), string(OffPath), string(Custom)}
}

// shapes are the links of the models whose links are known.
var shapes = map[Model][]string{
	Direct:  {"cpu-switch", "acc-switch", "nic-switch"},
	OnPath:  {"cpu-acc", "acc-nic"},
	OffPath: {"cpu-nic", "acc-nic"},
}

// Hardware describes a host's; requester and responder have the same.
type Hardware struct {
	Model   Model
	Nodes   []Node
	Links   []Link
	Network []Network
}

// Node computes, or forwards only.
type Node struct {
	Name     string
	Capacity int     // requests that it computes at a time
	Delay    float64 // seconds that a request takes longer than its compute time, without occupying the node
}

// Link is between two nodes of a host. Its directions do not disturb each other.
type Link struct {
	A, B      string
	Bandwidth float64 // bytes per second
	Latency   float64 // seconds
}

// Network joins a node of the requester with the node of that name at the responder. Its latency varies by up to
// Jitter, and is no part of a request's time inside hosts. Bandwidth 0: it is never the bottleneck.
type Network struct {
	Node                       string
	Bandwidth, Latency, Jitter float64
}

// The sides of a path, as in "requester.cpu".
const (
	Requester = "requester"
	Responder = "responder"
)

// node finds one by name.
func (h *Hardware) node(name string) *Node {
	for i := range h.Nodes {
		if h.Nodes[i].Name == name {
			return &h.Nodes[i]
		}
	}
	return nil
}

// shapeError says in what the links differ from those of the model; "": in nothing.
func (h *Hardware) shapeError() string {
	want, ok := shapes[h.Model]
	if !ok {
		return ""
	}
	var have []string
	for _, l := range h.Links {
		name := pairName(l.A, l.B)
		if !slices.Contains(want, name) {
			return fmt.Sprintf("the link %s-%s", l.A, l.B)
		}
		have = append(have, name)
	}
	for _, name := range want {
		if !slices.Contains(have, name) {
			return "no link " + name
		}
	}
	return ""
}

// pairName is the name of a link in shapes, whichever way it was written.
func pairName(a, b string) string {
	for _, names := range shapes {
		if slices.Contains(names, b+"-"+a) {
			return b + "-" + a
		}
	}
	return a + "-" + b
}

// hop is one link in one direction.
type hop struct {
	from, to string // with their sides
	link     *Link  // nil: network is meant
	network  *Network
}

// hops are all links of both sides in both directions.
func (h *Hardware) hops() (all []hop) {
	for _, side := range []string{Requester, Responder} {
		for i := range h.Links {
			l := &h.Links[i]
			a, b := side+"."+l.A, side+"."+l.B
			all = append(all, hop{a, b, l, nil}, hop{b, a, l, nil})
		}
	}
	for i := range h.Network {
		n := &h.Network[i]
		a, b := Requester+"."+n.Node, Responder+"."+n.Node
		all = append(all, hop{a, b, nil, n}, hop{b, a, nil, n})
	}
	return all
}

// route is the way with the fewest links between two stops. It is refused where two ways are equally short: which one
// is meant is for the file to say, by a stop between them.
func (h *Hardware) route(from, to string) (way []hop, found string) {
	if from == to {
		return nil, ""
	}
	hops := h.hops()
	reached, ways := map[string][]hop{from: nil}, map[string]int{from: 1}
	for frontier := []string{from}; len(frontier) > 0 && ways[to] == 0; {
		var next []string
		for _, at := range frontier {
			for _, x := range hops {
				if x.from != at {
					continue
				}
				if w, ok := reached[x.to]; ok {
					if len(w) == len(reached[at])+1 {
						ways[x.to] += ways[at]
					}
					continue
				}
				reached[x.to], ways[x.to] = append(slices.Clone(reached[at]), x), ways[at]
				next = append(next, x.to)
			}
		}
		frontier = next
	}
	switch {
	case ways[to] == 0:
		return nil, fmt.Sprintf("no way from %s to %s", from, to)
	case ways[to] > 1:
		return nil, fmt.Sprintf("%d ways of %d links from %s to %s", ways[to], len(reached[to]), from, to)
	}
	return reached[to], ""
}

// splitStop is the side and node of a stop.
func splitStop(stop string) (side, node string, ok bool) {
	side, node, ok = strings.Cut(stop, ".")
	return side, node, ok && (side == Requester || side == Responder)
}

package paths

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
)

// defaultRate is what a link counts with whose rate the system does not tell, in bytes per second. It is only where a
// run starts from: what a path takes is learnt.
const defaultRate = 125e6

// defaultLatency is a round trip's until it was measured.
const defaultLatency = 100e-6

// Auto describes the networks that this host is in, one path each. Hosts call a network by its prefix, so that they
// agree on its name.
func Auto() (*File, error) {
	nics, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var found []Attachment
	for _, nic := range nics {
		if nic.Flags&net.FlagUp == 0 || nic.Flags&net.FlagLoopback != 0 {
			continue
		}
		addrs, err := nic.Addrs()
		if err != nil {
			continue
		}
		for _, a := range addrs {
			if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && !p.IsSingleIP() {
				found = append(found, Attachment{p.Masked(), speedOf(nic.Name), defaultLatency})
			}
		}
	}
	if len(found) == 0 {
		return nil, errors.New("found no network interface with an address beyond 127.0.0.1, want one or more")
	}
	return Attached(found[:min(len(found), maxPaths)]), nil
}

// Attachment is a network that a host is in.
type Attachment struct {
	Prefix  netip.Prefix
	Rate    float64 // bytes per second
	Latency float64 // seconds there and back
}

// speedOf is the rate that the system has for an interface.
func speedOf(nic string) float64 {
	text, err := os.ReadFile("/sys/class/net/" + nic + "/speed")
	mbps, bad := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || bad != nil || mbps <= 0 {
		return defaultRate
	}
	return float64(mbps) * 1e6 / 8
}

// Attached is the description of a host in some networks: a link to each NIC, and segments that take any.
func Attached(all []Attachment) *File {
	f := &File{Hardware: Hardware{Model: Custom, Nodes: []Node{{Name: "cpu", Capacity: 1}}}}
	r := RequestType{Name: "segment", Share: 1}
	for i, a := range all {
		nic := fmt.Sprintf("nic%d", i)
		f.Hardware.Nodes = append(f.Hardware.Nodes, Node{Name: nic, Capacity: 1})
		f.Hardware.Links = append(f.Hardware.Links, Link{"cpu", nic, a.Rate, 0})
		f.Hardware.Network = append(f.Hardware.Network, Network{Node: nic, Latency: a.Latency})
		f.Paths = append(f.Paths, Path{Name: strings.ReplaceAll(a.Prefix.String(), ".", "-"), Address: a.Prefix.String(),
			Stops: []string{Requester + ".cpu", Responder + "." + nic}})
		r.Options = append(r.Options, Option{Path: i, Sizes: []float64{nominalSize}, Compute: []float64{0, 0}})
	}
	f.Requests = []RequestType{r}
	return f
}

// Exposed is a path whose address others can reach; "": there is none.
func (f *File) Exposed() string {
	for _, p := range f.Paths {
		if own, err := ownAddress(p.Address); err == nil && own.IsValid() && !own.IsLoopback() {
			return "path " + p.Name + " at " + own.String()
		}
	}
	return ""
}

// YAML writes a file of attachments as Parse reads it.
func (f *File) YAML() string {
	var b strings.Builder
	b.WriteString("hardware:\n  model: " + string(f.Hardware.Model) + "\n  nodes:\n")
	for _, n := range f.Hardware.Nodes {
		fmt.Fprintf(&b, "    - {name: %s, capacity: %d}\n", n.Name, n.Capacity)
	}
	b.WriteString("  links:\n")
	for _, l := range f.Hardware.Links {
		fmt.Fprintf(&b, "    - {between: [%s, %s], bandwidth: %s, latency: %s}\n", l.A, l.B,
			written(l.Bandwidth, rateUnits), written(l.Latency, timeUnits))
	}
	b.WriteString("  network:\n")
	for _, n := range f.Hardware.Network {
		fmt.Fprintf(&b, "    - {node: %s, latency: %s}\n", n.Node, written(n.Latency, timeUnits))
	}
	b.WriteString("paths:\n")
	for _, p := range f.Paths {
		fmt.Fprintf(&b, "  - {name: %s, address: %s, stops: [%s]}\n", p.Name, p.Address,
			strings.Join(p.Stops, ", "))
	}
	b.WriteString("requests:\n")
	for _, r := range f.Requests {
		fmt.Fprintf(&b, "  - type: %s\n    dependency: %s\n    paths:\n", r.Name, r.Dependency)
		for _, o := range r.Options {
			fmt.Fprintf(&b, "      - {path: %s, sizes: %s}\n", f.Paths[o.Path].Name,
				written(o.Sizes[0], sizeUnits))
		}
	}
	return b.String()
}

package cluster

import (
	"net"
	"slices"
	"strings"
)

// Reach is where others may reach a port of this host: its addresses with commas
// between them, the most likely first.
func Reach(port string) string {
	var all []string
	for _, ip := range addresses() {
		all = append(all, net.JoinHostPort(ip.String(), port))
	}
	return strings.Join(all, ",")
}

// addresses are this host's, at least one, the most likely to be reached first: that
// on the way out, by the table of routes.
func addresses() (all []net.IP) {
	add := func(ip net.IP) {
		if ip.IsGlobalUnicast() && !slices.ContainsFunc(all, ip.Equal) {
			all = append(all, ip)
		}
	}
	add(Toward("192.0.2.1")) // an address reserved for documentation
	list, _ := net.InterfaceAddrs()
	for _, a := range list {
		if n, ok := a.(*net.IPNet); ok {
			add(n.IP)
		}
	}
	if len(all) == 0 {
		return []net.IP{net.IPv4(127, 0, 0, 1)}
	}
	return all
}

// Toward is this host's address on the way to another; nil: there is no way. No packet
// is sent.
func Toward(host string) net.IP {
	conn, err := net.Dial("udp", net.JoinHostPort(host, "9"))
	if err != nil {
		return nil
	}
	defer conn.Close()
	return conn.LocalAddr().(*net.UDPAddr).IP
}

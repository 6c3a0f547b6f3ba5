package cluster

import (
	"net"
	"strconv"
	"strings"
)

// Reach is where others may reach a port of this host: its addresses with commas
// between them, the most likely first.
func Reach(port int) string {
	var all []string
	add := func(ip net.IP) {
		text := net.JoinHostPort(ip.String(), strconv.Itoa(port))
		for _, have := range all {
			if have == text {
				return
			}
		}
		all = append(all, text)
	}
	// The way out of the host, by its table of routes; nothing is sent.
	if ip := Toward("192.0.2.1"); ip != nil && !ip.IsLoopback() {
		add(ip)
	}
	addrs, _ := net.InterfaceAddrs()
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.IsGlobalUnicast() && !n.IP.IsLoopback() {
			add(n.IP)
		}
	}
	if len(all) == 0 {
		add(net.IPv4(127, 0, 0, 1))
	}
	return strings.Join(all, ",")
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

//go:build !linux || !(amd64 || arm64 || riscv64 || loong64)

package xdp

import (
	"fmt"
	"net/netip"
	"runtime"

	"starling/innet"
	"starling/innet/udp"
)

// Plane is not there on this system.
type Plane struct{}

// Open says so.
func Open([]string, uint16, udp.Send) (*Plane, error) {
	return nil, fmt.Errorf("%s on %s has no XDP programs here; Linux on amd64, arm64, riscv64 and loong64 has", runtime.GOOS,
		runtime.GOARCH)
}

// The rest of a plane, which is never used.

func (*Plane) Close() error                           { return nil }
func (*Plane) Install(*innet.Table, int) error        { return nil }
func (*Plane) Join(uint64, int, netip.AddrPort) error { return nil }
func (*Plane) Leave(netip.AddrPort)                   {}
func (*Plane) Remove(uint64) []uint32                 { return nil }
func (*Plane) Stats() udp.Stats                       { return udp.Stats{} }

package inspect

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"time"

	"starling/graph"
	"starling/spec"
	"starling/wire"
	"starling/wire/paths"
)

// probeTime is how long each link is measured.
const probeTime = 300 * time.Millisecond

// ProbePaths describes the networks of this host as a file for --paths. A link's rate is the one that the system tells
// for its interface, or less where TCP through the host itself is slower than that.
func ProbePaths(ctx context.Context) (string, error) {
	f, err := autoPaths()
	if err != nil {
		return "", err
	}
	var note strings.Builder
	for i, p := range f.Paths {
		own, err := p.Own()
		if err != nil {
			return "", err
		}
		rate, trip, err := measure(ctx, own)
		if err != nil {
			return "", err
		}
		given := f.Hardware.Links[i].Bandwidth
		fmt.Fprintf(&note, "# %s at %s: the interface has %.3g Gbit/s, TCP through this host %.3g Gbit/s, %v per round trip\n",
			p.Name, own, given*8/1e9, rate*8/1e9, trip.Round(time.Microsecond))
		f.Hardware.Links[i].Bandwidth = min(given, rate)
		f.Hardware.Network[i].Latency = trip.Seconds()
	}
	return note.String() + f.YAML(), nil
}

// measure sends to this host itself at an address: bytes per second, and the shortest round trip.
func measure(ctx context.Context, at netip.Addr) (rate float64, trip time.Duration, err error) {
	l, err := net.Listen("tcp", netip.AddrPortFrom(at, 0).String())
	if err != nil {
		return 0, 0, err
	}
	defer l.Close()
	go func() {
		c, err := wire.Accept(l, nil)
		if err != nil {
			return
		}
		defer c.Close()
		var b [1]byte
		for range 20 {
			if _, err := io.ReadFull(c, b[:]); err != nil {
				return
			}
			c.Write(b[:])
		}
		io.Copy(io.Discard, c)
	}()
	c, err := new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(10 * time.Second))
	var b [1]byte
	trip = time.Second
	for range 20 {
		begin := time.Now()
		c.Write(b[:])
		if _, err := io.ReadFull(c, b[:]); err != nil {
			return 0, 0, err
		}
		trip = min(trip, time.Since(begin))
	}
	begin, sent, block := time.Now(), 0, make([]byte, 256<<10)
	for time.Since(begin) < probeTime {
		n, err := c.Write(block)
		if err != nil {
			return 0, 0, err
		}
		sent += n
	}
	return float64(sent) / time.Since(begin).Seconds(), trip, nil
}

func autoPaths() (*paths.File, error) {
	f, err := paths.Auto()
	if err != nil {
		return nil, spec.Mistake("probe", graph.Sentence(err.Error()), "", "bring a network interface up")
	}
	return f, nil
}

package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"starling/cluster"
	"starling/event"
	"starling/exchange"
	"starling/graph"
	"starling/innet/udp"
	"starling/innet/xdp"
	"starling/spec"
	"starling/wire"
)

// SwitchOptions say what a switch listens on, and what it may take.
type SwitchOptions struct {
	Listen    string
	TokenFile string
	Insecure  bool
	Memory    string
	XDP       []string      // devices whose packets are switched in the kernel
	Every     time.Duration // between status lines; 0: none
}

// DefaultSwitch listens on loopback.
func DefaultSwitch() SwitchOptions {
	return SwitchOptions{Listen: "127.0.0.1:9900", Memory: "100MiB", Every: 10 * time.Second}
}

// Switch adds rows for hosts of any number of jobs until ctx ends. status gets the address
// once it listens, and then what the switch has done.
func Switch(ctx context.Context, o SwitchOptions, status func(line string)) error {
	opt, err := o.options()
	if err != nil {
		return err
	}
	opt.Log = status
	s, err := udp.Listen(opt)
	where := ""
	if len(o.XDP) > 0 {
		where = ", in the kernel on " + strings.Join(o.XDP, ", ")
	}
	if errors.Is(err, udp.ErrPlane) {
		status(fmt.Sprintf("%v; the process switches them", err))
		opt.Plane, where = nil, ""
		s, err = udp.Listen(opt)
	}
	if err != nil {
		return spec.Mistake("--listen", graph.Sentence(err.Error()), "a free port of an address of this host", "port 0 is any")
	}
	defer s.Close()
	status(fmt.Sprintf("switching on %s, %s of aggregators%s", s.Addr(), o.Memory, where))
	before := s.Stats()
	for o.Every > 0 && wire.Sleep(ctx, wire.Real, o.Every) == nil {
		now := s.Stats()
		status(switchLine(before, now, o.Every))
		before = now
	}
	<-ctx.Done()
	n := s.Stats()
	status(fmt.Sprintf("switched %s (%d in the kernel), sent %d; dropped %d, %d of impossible rounds",
		event.Counted(n.Packets, "packet"), n.Below, n.Sent, n.Dropped, n.Impossible))
	return nil
}

// options checks what was asked for.
func (o *SwitchOptions) options() (udp.ServerOptions, error) {
	opt := udp.DefaultServer
	memory := exchange.BudgetOption{MemoryBudget: o.Memory}
	if err := memory.Validate(); err != nil || o.Memory == "" {
		return opt, spec.Mistake("--memory", fmt.Sprintf("%q", o.Memory), "an amount of memory", "for example 100MiB")
	}
	if o.TokenFile != "" {
		var err error
		if opt.Token, err = spec.ReadToken(o.TokenFile); err != nil {
			return opt, err
		}
	}
	switch {
	case opt.Token != nil && o.Insecure:
		return opt, spec.Mistake("--insecure", "it with --token-file", "one of the two", "")
	case cluster.Exposed(o.Listen) && opt.Token == nil && !o.Insecure:
		return opt, spec.Mistake("--listen", o.Listen+", which others can reach",
			"--token-file, or an address of 127.0.0.1", "make a token with (umask 077; head -c 32 /dev/urandom | "+
				"base64 > token); --insecure switches for every host that connects")
	case o.Every < 0:
		return opt, spec.Mistake("--status", o.Every.String(), "0 or more", "")
	}
	opt.Listen, opt.Memory, opt.Insecure = o.Listen, memory.Bytes(), o.Insecure
	if len(o.XDP) > 0 {
		opt.Plane = func(port uint16, send udp.Send) (udp.Plane, error) { return xdp.Open(o.XDP, port, send) }
	}
	return opt, o.checkDevices(opt.Token != nil)
}

// checkDevices refuses devices that are not there, and a token: programs in the kernel do not
// check tags.
func (o *SwitchOptions) checkDevices(token bool) error {
	if token && len(o.XDP) > 0 {
		return spec.Mistake("--xdp", "it with --token-file", "one of the two",
			"programs in the kernel do not check tags: with --insecure, a packet counts as its address's")
	}
	for _, name := range o.XDP {
		if _, err := net.InterfaceByName(name); err != nil {
			return spec.Mistake("--xdp", fmt.Sprintf("%q, which is no device of this host", name), "a network device",
				"ip link shows them")
		}
	}
	return nil
}

// switchLine is what a switch did in an interval.
func switchLine(before, now udp.Stats, in time.Duration) string {
	rate := func(a, b int64) float64 { return float64(b-a) / in.Seconds() }
	return fmt.Sprintf("%s, %s, %.1f MB of aggregators; %.0f packets/s in (%.3f GB/s), %.0f out, "+
		"%.0f dropped (%d of impossible rounds), %.0f recirculations/s",
		event.Counted(now.Jobs, "job"), event.Counted(now.Hosts, "host"), float64(now.Registers)/1e6,
		rate(before.Packets, now.Packets), rate(before.Bytes, now.Bytes)/1e9, rate(before.Sent, now.Sent),
		rate(before.Dropped, now.Dropped), now.Impossible-before.Impossible, rate(before.Recirculated, now.Recirculated))
}

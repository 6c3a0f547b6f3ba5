package inspect

import (
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"time"

	"starling/cluster"
	"starling/coflow"
	"starling/graph"
	"starling/spec"
	"starling/wire"
	"starling/wire/paths"
	"starling/wire/tcp"
)

// ProbeOptions say between which hosts links are measured.
type ProbeOptions struct {
	Listen   string // answer a prober at this address
	Peer     string // measure the links to the host that answers there
	Token    []byte
	TLS      string
	Insecure bool
	Timeout  int // seconds of the whole
}

// The links between two hosts are measured by two ranks of package wire, so that its tokens, certificates and bounds
// hold here too: rank 0 answers, rank 1 measures. First they connect at the address that the user gave, and rank 0
// tells its addresses. Then rank 1 names one path after the other, for which they connect anew over that path alone.
const (
	probeJob = "starling paths probe"
	// probeBlock is a message of which a stream has ever more, until it takes probeTime.
	probeBlock, mostBlocks = 64 << 10, 1 << 14
	probeTrips             = 20
	probeHeld              = 8 << 20 // bytes that rank 0 holds before it waits for them
	probeText              = 4096    // bytes of a list of addresses, at most
	probeOver              = 255     // the number of no path
)

// prober is one side.
type prober struct {
	ProbeOptions
	file *paths.File
	id   *cluster.Identity
	rank int
}

// newProber checks who may connect.
func newProber(o ProbeOptions, f *paths.File) (p *prober, err error) {
	p = &prober{ProbeOptions: o, file: f}
	if o.Timeout < 1 || o.Timeout > 3600 {
		return nil, spec.Mistake("--timeout", fmt.Sprint(o.Timeout), "1 to 3600 seconds", "")
	}
	if p.id, err = spec.Load("--tls", o.TLS, cluster.LoadIdentity); err != nil {
		return nil, err
	}
	if exposed := f.Exposed(); len(o.Token) == 0 && p.id == nil && !o.Insecure && exposed != "" {
		return nil, spec.Mistake("probe", exposed+", which others can reach, without a token", "--tls or a --token-file",
			"")
	}
	return p, nil
}

// AnswerProbe lets one prober measure the links between its host and this one.
func AnswerProbe(ctx context.Context, o ProbeOptions) error {
	f, err := autoPaths()
	if err != nil {
		return err
	}
	p, err := newProber(o, f)
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", o.Listen)
	if err != nil {
		return spec.Mistake("--listen", graph.Sentence(err.Error()), "an address of this host", "")
	}
	return p.answer(ctx, l)
}

// answer owns the listener.
func (p *prober) answer(ctx context.Context, base net.Listener) error {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(p.Timeout)*time.Second)
	defer cancel()
	control, err := p.join(ctx, base, "", netip.Addr{})
	if err != nil {
		return err
	}
	defer control.Close()
	listeners, text, err := p.listen()
	defer func() {
		for _, l := range listeners {
			if l != nil {
				l.Close()
			}
		}
	}()
	if err != nil {
		return err
	}
	talk := dialogue{ctx: ctx, end: control, peer: 1}
	if err := talk.say([]byte(text)); err != nil {
		return err
	}
	for {
		which, err := talk.hear(make([]byte, 1))
		if err != nil || which[0] == probeOver {
			return err
		}
		if int(which[0]) >= len(listeners) || listeners[which[0]] == nil {
			return fmt.Errorf("found a prober that asks for path %d, want one of %d", which[0], len(listeners))
		}
		l := listeners[which[0]]
		listeners[which[0]] = nil
		if err := p.sink(ctx, l); err != nil {
			return err
		}
	}
}

// listen opens a socket on this host's address of each path, and lists them.
func (p *prober) listen() (listeners []net.Listener, text string, err error) {
	var b strings.Builder
	for _, path := range p.file.Paths {
		own, err := path.Own()
		if err != nil {
			return listeners, "", err
		}
		l, err := net.Listen("tcp", netip.AddrPortFrom(own, 0).String())
		if err != nil {
			return listeners, "", err
		}
		listeners = append(listeners, l)
		fmt.Fprintf(&b, "%s %s\n", path.Name, l.Addr())
	}
	return listeners, b.String(), nil
}

// join connects the two ranks. A listener makes it rank 0; else it dials addr, from an address of its own if that is
// valid.
func (p *prober) join(ctx context.Context, l net.Listener, addr string, own netip.Addr) (wire.Endpoint, error) {
	opt := wire.DefaultOptions()
	opt.Timeout, opt.UnexpectedLimit = time.Duration(p.Timeout)*time.Second, probeHeld
	cfg := wire.Config{Options: opt, Size: 2, Job: probeJob, Addrs: []string{addr, ""}, Token: p.Token,
		Insecure: p.Insecure || p.id != nil, Connections: 1, NoSharedMemory: true}
	if l != nil {
		cfg.Listener = p.id.Listen(l)
		return tcp.Join(ctx, cfg)
	}
	none, err := net.Listen("tcp", "127.0.0.1:0") // the lower rank does not dial
	if err != nil {
		return nil, err
	}
	cfg.Rank, cfg.Listener = 1, none
	cfg.Dial = func(ctx context.Context, addr string) (net.Conn, error) {
		var d net.Dialer
		if own.IsValid() {
			d.LocalAddr = net.TCPAddrFromAddrPort(netip.AddrPortFrom(own, 0))
		}
		conn, err := d.DialContext(ctx, "tcp", addr)
		if err != nil {
			return nil, err
		}
		return p.id.Client(ctx, conn)
	}
	return tcp.Join(ctx, cfg)
}

// dialogue is messages between the two ranks, one after the other.
type dialogue struct {
	ctx   context.Context
	end   wire.Endpoint
	peer  int
	spoke uint32 // messages so far, of either side
}

func (d *dialogue) key() wire.Key {
	d.spoke++
	return wire.Key{Coflow: coflow.ID{Type: coflow.Bulk}, Step: d.spoke}
}

func (d *dialogue) say(b []byte) error {
	return d.end.Send(d.peer, d.key(), wire.Control, b).Wait(d.ctx)
}

func (d *dialogue) hear(into []byte) ([]byte, error) {
	p := d.end.RecvAtMost(d.peer, d.key(), wire.Control, into)
	if err := p.Wait(d.ctx); err != nil {
		return nil, err
	}
	return into[:p.Bytes()], nil
}

// sink is rank 0's side of a measurement: it echoes, and then takes in streams, each announced with its length and
// confirmed, until one of length 0.
func (p *prober) sink(ctx context.Context, l net.Listener) error {
	end, err := p.join(ctx, l, "", netip.Addr{})
	if err != nil {
		return err
	}
	defer end.Close()
	d := dialogue{ctx: ctx, end: end, peer: 1}
	for range probeTrips {
		b, err := d.hear(make([]byte, 8))
		if err == nil {
			err = d.say(b)
		}
		if err != nil {
			return err
		}
	}
	block := make([]byte, probeBlock)
	for {
		b, err := d.hear(make([]byte, 8))
		if err != nil || len(b) != 8 {
			return err
		}
		n := binary.LittleEndian.Uint64(b)
		if n > mostBlocks {
			return fmt.Errorf("found a stream of %d blocks, want at most %d", n, mostBlocks)
		}
		for range n {
			if _, err := d.hear(block); err != nil {
				return err
			}
		}
		if err := d.say(b); err != nil || n == 0 {
			return err
		}
	}
}

// source is rank 1's side: the shortest round trip, and the bytes per second of the longest stream.
func (d *dialogue) source() (rate float64, trip time.Duration, err error) {
	b := make([]byte, 8)
	trip = time.Hour
	for range probeTrips {
		begin := time.Now()
		if err = d.say(b); err == nil {
			_, err = d.hear(b)
		}
		if err != nil {
			return 0, 0, err
		}
		trip = min(trip, time.Since(begin))
	}
	block := make([]byte, probeBlock)
	for n := uint64(4); ; n *= 2 {
		begin := time.Now()
		if err := d.stream(n, block); err != nil {
			return 0, 0, err
		}
		took := time.Since(begin)
		rate = float64(n) * probeBlock / took.Seconds()
		if took >= probeTime || 2*n > mostBlocks {
			return rate, trip, d.stream(0, block)
		}
	}
}

// stream sends a number of blocks, and waits until they have arrived.
func (d *dialogue) stream(n uint64, block []byte) error {
	b := binary.LittleEndian.AppendUint64(nil, n)
	if err := d.say(b); err != nil {
		return err
	}
	var last *wire.Pending
	for range n { // they leave in their order
		last = d.end.Send(d.peer, d.key(), wire.Control, block)
	}
	if last != nil {
		if err := last.Wait(d.ctx); err != nil {
			return err
		}
	}
	_, err := d.hear(b)
	return err
}

// ProbePeer measures the links to a host that answers, and describes them as a file for --paths.
func ProbePeer(ctx context.Context, o ProbeOptions) (string, error) {
	f, err := autoPaths()
	if err != nil {
		return "", err
	}
	p, err := newProber(o, f)
	if err != nil {
		return "", err
	}
	return p.measure(ctx)
}

func (p *prober) measure(ctx context.Context) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(p.Timeout)*time.Second)
	defer cancel()
	control, err := p.join(ctx, nil, p.Peer, netip.Addr{})
	if err != nil {
		return "", spec.Mistake("--peer", graph.Sentence(err.Error()), "a host that runs starling paths probe --listen", "")
	}
	defer control.Close()
	talk := dialogue{ctx: ctx, end: control, peer: 0}
	text, err := talk.hear(make([]byte, probeText))
	if err != nil {
		return "", err
	}
	theirs := strings.Fields(string(text))
	var found []paths.Attachment
	var note strings.Builder
	for i := 0; i+1 < len(theirs) && i/2 < probeOver; i += 2 {
		path := p.file.Find(theirs[i])
		if path == nil {
			continue // this host is not in that network
		}
		a, trip, err := p.link(ctx, &talk, byte(i/2), path, theirs[i+1])
		if err != nil {
			return "", fmt.Errorf("path %s to %s: %w", path.Name, theirs[i+1], err)
		}
		found = append(found, a)
		fmt.Fprintf(&note, "# %s to %s: %.3g Gbit/s, %v per round trip\n", path.Name, theirs[i+1], a.Rate*8/1e9,
			trip.Round(time.Microsecond))
	}
	if err := talk.say([]byte{probeOver}); err != nil {
		return "", err
	}
	if len(found) == 0 {
		return "", spec.Mistake("--peer", "no network that both hosts are in: the peer has "+
			strings.Join(strings.Fields(string(text)), " "), "one or more", "")
	}
	return note.String() + paths.Attached(found).YAML(), nil
}

// link measures one path.
func (p *prober) link(ctx context.Context, talk *dialogue, which byte, path *paths.Path, addr string) (
	a paths.Attachment, trip time.Duration, err error) {
	if a.Prefix, err = netip.ParsePrefix(path.Address); err != nil {
		return a, 0, err
	}
	own, err := path.Own()
	if err == nil {
		err = talk.say([]byte{which})
	}
	if err != nil {
		return a, 0, err
	}
	end, err := p.join(ctx, nil, addr, own)
	if err != nil {
		return a, 0, err
	}
	defer end.Close()
	d := dialogue{ctx: ctx, end: end, peer: 0}
	a.Rate, trip, err = d.source()
	a.Latency = trip.Seconds()
	return a, trip, err
}

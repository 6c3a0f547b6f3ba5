package udp

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"sync"
	"time"

	"starling/innet"
	"starling/wire"
)

// ClientOptions say which host of which job this is.
type ClientOptions struct {
	Addr        string // of the switch
	Token       []byte
	Job         uint64
	Rank, Hosts int
	Units       int
	Clock       wire.Clock
	// Timeout is how long an exchange may go without a packet from the switch, Progress how long without anything
	// that brings it nearer to its end, though packets come; 0: for ever.
	Timeout, Progress time.Duration
	Host              innet.HostOptions
}

// DefaultHost has the timers of hosts of a software switch, which takes a while for a block.
var DefaultHost = func() innet.HostOptions {
	o := innet.DefaultHost
	o.Timeout, o.MinTimeout, o.MaxTimeout = 100*time.Millisecond, 10*time.Millisecond, 2*time.Second
	return o
}()

// Client is one host of a switch.
type Client struct {
	opt    ClientOptions
	start  time.Time
	conn   *net.UDPConn
	server netip.AddrPort
	// Registers is the bytes of the switch's registers.
	Registers int64
	window    uint32

	table []byte // that host 0 sends
	wg    sync.WaitGroup

	mu struct {
		sync.Mutex
		control  net.Conn
		tags     *tagger
		host     *innet.Host
		out      *batch
		timer    wire.Timer
		received time.Duration // when a packet of the switch last came
		moved    time.Duration // when a credit last came
		moves    uint64        // of the host
		progress time.Duration // when those last grew
		sent     uint32        // packets
		credited uint32        // of those, acknowledged
		lost     uint32        // taken for lost: neither
		finished chan struct{} // closed when the exchange is
		failed   error
		closed   bool
	}
}

// Connect finds the switch and shows it the token. Install and Ready follow.
func Connect(ctx context.Context, opt ClientOptions) (*Client, error) {
	opt.Clock = wire.OrReal(opt.Clock)
	c := &Client{opt: opt, start: opt.Clock.Now()}
	addr, err := net.ResolveTCPAddr("tcp", opt.Addr)
	if err != nil {
		return nil, err
	}
	c.server = addr.AddrPort()
	c.server = netip.AddrPortFrom(c.server.Addr().Unmap(), c.server.Port())
	network := "udp4"
	if c.server.Addr().Is6() {
		network = "udp6"
	}
	if c.conn, err = net.ListenUDP(network, nil); err != nil {
		return nil, err
	}
	bufferBytes(c.conn, DefaultServer.Buffer)
	if c.mu.out, err = newBatch(c.conn); err == nil {
		err = c.connect(ctx)
	}
	if err != nil {
		c.conn.Close()
		return nil, fmt.Errorf("switch %s: %w", opt.Addr, err)
	}
	return c, nil
}

// connect makes the control connection.
func (c *Client) connect(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", c.opt.Addr)
	if err != nil {
		return err
	}
	if err := c.greet(conn); err != nil {
		conn.Close()
		return err
	}
	return nil
}

func (c *Client) greet(conn net.Conn) error {
	conn.SetDeadline(wire.SocketTime(c.opt.Timeout))
	var head struct {
		Magic     [4]byte
		Version   uint32
		Challenge [nonceBytes]byte
	}
	if err := binary.Read(conn, binary.LittleEndian, &head); err != nil {
		return err
	}
	if string(head.Magic[:]) != magic || head.Version != version {
		return fmt.Errorf("what listens there is no switch of version %d", version)
	}
	h := hello{Job: c.opt.Job, Host: uint16(c.opt.Rank), Hosts: uint16(c.opt.Hosts), Units: uint8(c.opt.Units),
		Port: uint16(c.conn.LocalAddr().(*net.UDPAddr).Port)}
	rand.Read(h.Challenge[:])
	h.Proof = proof(c.opt.Token, "host", head.Challenge, h.Challenge)
	if err := binary.Write(conn, binary.LittleEndian, &h); err != nil {
		return err
	}
	var w welcome
	if err := binary.Read(conn, binary.LittleEndian, &w); err != nil {
		return fmt.Errorf("%w (or it is ending)", ErrToken)
	}
	if want := proof(c.opt.Token, "switch", head.Challenge, h.Challenge); !hmac.Equal(w.Proof[:], want[:]) {
		return ErrToken
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.Registers, c.window = int64(w.Registers), max(w.Window, 1)
	c.mu.control, c.mu.tags = conn, newTagger(c.opt.Token, head.Challenge, h.Challenge)
	c.mu.sent, c.mu.credited, c.mu.lost = 0, 0, 0
	conn.SetDeadline(time.Time{})
	return nil
}

// Install begins a plan, the same on all hosts: host 0 sends the switch its table. It
// returns when all hosts have.
func (c *Client) Install(ctx context.Context, p *innet.Plan) error {
	opt := c.opt.Host
	opt.Gate = c.gate
	c.mu.host = innet.NewHost(p, c.opt.Rank, c.opt.Units, c.opt.Job, opt)
	if c.opt.Rank == 0 {
		c.table = encodeTable(p.Table(c.opt.Job, c.opt.Units))
	}
	if err := c.ready(ctx); err != nil {
		return fmt.Errorf("switch %s: %w", c.opt.Addr, err)
	}
	c.wg.Go(c.receive)
	c.wg.Go(c.keep)
	return nil
}

// ready sends the table, where this host does, and waits until all hosts are there.
func (c *Client) ready(ctx context.Context) error {
	conn := c.control()
	stop := context.AfterFunc(ctx, func() { conn.SetDeadline(wire.SocketPast) })
	defer stop()
	conn.SetDeadline(wire.SocketTime(c.opt.Timeout))
	if c.table != nil {
		if _, err := conn.Write(append(binary.LittleEndian.AppendUint64(nil, uint64(len(c.table))), c.table...)); err != nil {
			return err
		}
	}
	if err := answer(conn); err != nil {
		return err
	}
	conn.SetDeadline(time.Time{})
	return nil
}

// answer reads whether all is ready.
func answer(conn net.Conn) error {
	var yes [1]byte
	if _, err := io.ReadFull(conn, yes[:]); err != nil {
		return fmt.Errorf("waiting for all hosts: %w", err)
	}
	if yes[0] == 1 {
		return nil
	}
	var size [2]byte
	if _, err := io.ReadFull(conn, size[:]); err != nil {
		return err
	}
	text := make([]byte, binary.LittleEndian.Uint16(size[:]))
	if _, err := io.ReadFull(conn, text); err != nil {
		return err
	}
	return errors.New(string(text))
}

// keep watches the control connection and makes another when the switch has been restarted.
func (c *Client) keep() {
	for {
		err := answer(c.control()) // an answer comes only if something is wrong
		if c.isClosed() {
			return
		}
		ctx, cancel := wire.WithTimeout(context.Background(), c.opt.Clock, c.opt.Timeout)
		for err != nil && ctx.Err() == nil && !c.isClosed() {
			c.control().Close()
			if err = c.connect(ctx); err == nil {
				err = c.ready(ctx)
			}
			if err != nil {
				wire.Sleep(ctx, c.opt.Clock, 50*time.Millisecond)
			}
		}
		cancel()
		if err != nil {
			c.fail(fmt.Errorf("switch %s: %w", c.opt.Addr, err))
			return
		}
	}
}

func (c *Client) control() net.Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.control
}

func (c *Client) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.closed
}

func (c *Client) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.failed == nil && !c.mu.closed {
		c.mu.failed = err
		c.end()
	}
}

// end wakes the goroutine that waits for the exchange.
// REQUIRES: mu held.
func (c *Client) end() {
	if c.mu.finished != nil {
		close(c.mu.finished)
		c.mu.finished = nil
	}
}

// Start begins an exchange. Wait returns when it is over.
func (c *Client) Start(x *innet.Exchange) (wait func(ctx context.Context) error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	finished := make(chan struct{})
	c.mu.finished, c.mu.received, c.mu.progress = finished, c.now(), c.now()
	if c.mu.failed != nil {
		c.end()
	} else {
		c.mu.host.Begin(x)
		c.poll()
	}
	return func(ctx context.Context) error { return c.wait(ctx, finished) }
}

func (c *Client) wait(ctx context.Context, finished chan struct{}) error {
	select {
	case <-finished:
	case <-ctx.Done():
		return ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.failed != nil {
		return c.mu.failed
	}
	return c.mu.host.Err()
}

// Counts is what the host has sent and received.
func (c *Client) Counts() innet.HostCounts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.host.Count
}

// Shift is the fractional bits of the last exchange.
func (c *Client) Shift() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.mu.host.Shift()
}

// Close leaves the switch.
func (c *Client) Close() error {
	c.mu.Lock()
	c.mu.closed = true
	if c.mu.timer != nil {
		c.mu.timer.Stop()
	}
	c.mu.control.Close()
	c.mu.Unlock()
	err := c.conn.Close()
	c.wg.Wait()
	return err
}

func (c *Client) now() time.Duration { return wire.Since(c.opt.Clock, c.start) }

// gate reports whether another row may leave: rows on their way are within the window.
// REQUIRES: mu held.
func (c *Client) gate() bool {
	underWay := int32(c.mu.sent - c.mu.lost - c.mu.credited)
	if underWay < 0 { // some were late, or came twice
		c.mu.lost, underWay = c.mu.sent-c.mu.credited, 0
	}
	if underWay < int32(c.window) {
		return true
	}
	if c.now()-c.mu.moved < creditTimeout {
		return false
	}
	c.mu.lost, c.mu.moved = c.mu.sent-c.mu.credited, c.now()
	return true
}

// creditTimeout is how long a host with a full window waits for a credit.
// A process that shares its cores with others may be away for tens of milliseconds.
const creditTimeout = 200 * time.Millisecond

// longestWait is how long a host waits at most until it is polled again.
const longestWait = 10 * time.Millisecond

// receive takes packets until the socket is closed.
func (c *Client) receive() {
	in, err := newArrivals(c.conn)
	if err != nil {
		c.fail(err)
		return
	}
	for {
		if err := in.read(); err != nil {
			c.fail(err)
			return
		}
		c.mu.Lock()
		for _, p := range in.packets {
			if p.from == c.server {
				c.packet(p.bytes)
			}
		}
		c.poll()
		c.mu.Unlock()
	}
}

// packet handles a packet.
// REQUIRES: mu held.
func (c *Client) packet(b []byte) {
	b, ok := c.mu.tags.open(b)
	var p innet.Packet
	if !ok || p.Parse(b) != nil {
		return
	}
	now := c.now()
	c.mu.received = now
	if p.Flags&^innet.ECN == creditFlag {
		if p.Job == c.opt.Job && int32(p.Sequence-c.mu.credited) > 0 {
			c.mu.credited, c.mu.moved = p.Sequence, now
		}
		p.Flags &= innet.ECN
	}
	c.mu.host.Receive(now, &p)
}

// poll sends what is due and sets the timer.
// REQUIRES: mu held.
func (c *Client) poll() {
	now := c.now()
	if err := c.stalled(now); err != nil && c.mu.finished != nil && c.mu.failed == nil {
		c.mu.failed = err
		c.end()
	}
	if c.mu.failed != nil || c.mu.closed {
		return
	}
	next := c.mu.host.Poll(now, c.emit)
	c.flush()
	if c.mu.host.Finished() {
		c.end()
		return
	}
	wait := min(max(next-now, 20*time.Microsecond), longestWait)
	if c.mu.timer == nil {
		c.mu.timer = c.opt.Clock.AfterFunc(wait, c.tick)
	} else {
		c.mu.timer.Reset(wait)
	}
}

// ErrStall: the switch answers nothing, or nothing that matters.
var ErrStall = errors.New("the switch stalls")

// stalled says for how long an exchange has not moved, if that is too long.
// REQUIRES: mu held.
func (c *Client) stalled(now time.Duration) error {
	host := c.mu.host
	if moves := host.Moves(); moves != c.mu.moves {
		c.mu.moves, c.mu.progress = moves, now
	}
	most := c.opt.Timeout
	if now-c.mu.received <= most {
		if most = c.opt.Progress; most == 0 || now-c.mu.progress <= most {
			return nil
		}
	}
	return fmt.Errorf("%w: no answer for round %d from %s in %v; host %d waits for %s", ErrStall, host.Round(), c.opt.Addr,
		most, c.opt.Rank, host.Waiting())
}

func (c *Client) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mu.host != nil {
		c.poll()
	}
}

// emit writes a packet for the switch.
func (c *Client) emit(p *innet.Packet) {
	out := c.mu.out
	b := c.mu.tags.close(p.Append(out.to(c.server)))
	out.sizes[out.n] = len(b)
	c.mu.sent++
	if out.n++; out.n == batchSize {
		c.flush()
	}
}

func (c *Client) flush() {
	if err := c.mu.out.write(); err != nil && c.mu.failed == nil && !c.mu.closed {
		c.mu.failed = err
		c.end()
	}
}

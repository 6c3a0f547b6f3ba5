package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"starling/event"
	"starling/wire"
)

// JoinRequest is what a worker needs to know to join a job.
type JoinRequest struct {
	// Coordinator is its address, host:port, or several, with commas between them.
	Coordinator string
	// Rank to ask for; -1: any.
	Rank int
	// Job, if known, and Version of this build.
	Job, Version string
	// Listen is where other workers will dial, host:port. Empty: any port of the
	// address that reaches the coordinator.
	Listen string
	// Token is the job's secret. Without one, and without an Identity, the listener
	// must be on loopback, or Insecure set.
	Token    []byte
	Insecure bool
	// Identity, if set, is shown to the coordinator, which must have one of the same
	// authority.
	Identity *Identity
	// Timeout bounds how long the coordinator is tried, Silence how long it may send
	// nothing before it is taken for dead.
	Timeout, Silence time.Duration
	// Trying, if set, is called every few seconds while no coordinator answers, with where this worker tries to connect.
	Trying func(text string)
	// Clock is the run's; nil: the host's.
	Clock wire.Clock
	// dial and listen, if set, are another network than the host's.
	dial   func(ctx context.Context, addr string) (net.Conn, error)
	listen func(addr string) (net.Listener, error)
}

// Member is this worker's place in the job.
type Member struct {
	Rank  int
	Job   string
	Peers []Peer
	Task  json.RawMessage
	Blob  []byte
	Own   []byte // for this rank only
	// Listener is where other workers dial.
	Listener net.Listener

	control     *control
	events      chan event.Event
	flushed     chan struct{} // closed when all events have been sent
	stop        chan struct{}
	ended       chan struct{}
	unconnected chan struct{} // closed when nothing more can be received
	once        struct{ stop, end sync.Once }
	again       atomic.Bool
	why         error // of ended
}

// ErrLost is why a worker ends whose coordinator has gone.
var ErrLost = errors.New("the coordinator was lost")

// lost is ErrLost with what it was noticed by.
func lost(err error) error { return fmt.Errorf("%w: %w", ErrLost, err) }

// ErrAgain is why Join fails when another was lost before all had come, and the job
// starts again.
var ErrAgain = errors.New(restartsSoon)

// Refused is the error of a worker that does not belong to the job.
type Refused struct{ By, Reason string }

func (r *Refused) Error() string { return fmt.Sprintf("%s refused this worker: %s", r.By, r.Reason) }

// Taken reports whether the worker's place was: perhaps by one whose end was not
// noticed yet.
func (r *Refused) Taken() bool {
	return r.Joined() || r.Reason == restartsSoon
}

// Joined reports whether another worker has the place now.
func (r *Refused) Joined() bool { return strings.HasSuffix(r.Reason, alreadyJoined) }

// Over reports whether the job has ended, or is about to start again.
func (r *Refused) Over() bool {
	return strings.HasPrefix(r.Reason, errEnded.Error()) || r.Reason == restartsSoon
}

// Join finds the coordinator, which may not be there yet, and waits with the others
// until all have come.
func Join(ctx context.Context, in JoinRequest) (*Member, error) {
	if in.Timeout <= 0 {
		in.Timeout = time.Minute
	}
	in.Clock = wire.OrReal(in.Clock)
	conn, err := dial(ctx, in)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	m, err := join1(newControl(conn, in.Silence, in.Clock), in)
	if !stop() && err != nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	go m.receive()
	go m.sendEvents()
	return m, nil
}

// dial tries until a coordinator answers.
func dial(ctx context.Context, in JoinRequest) (net.Conn, error) {
	ctx, cancel := wire.WithTimeout(ctx, in.Clock, in.Timeout)
	defer cancel()
	t := newTrying(in)
	defer t.stop()
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		conn, err := dialAny(ctx, in)
		if err == nil {
			return conn, nil
		}
		t.failed(err)
		if wire.Sleep(ctx, in.Clock, wait) != nil {
			return nil, fmt.Errorf("no coordinator at %s after %v: %w", in.Coordinator, in.Timeout, err)
		}
	}
}

// dialAny tries every address once. Packets to a wrong one may vanish, so none but the
// last is waited for long.
func dialAny(ctx context.Context, in JoinRequest) (conn net.Conn, err error) {
	addrs := strings.Split(in.Coordinator, ",")
	for i, addr := range addrs {
		try, cancel := context.WithCancel(ctx)
		if i < len(addrs)-1 {
			try, cancel = wire.WithTimeout(ctx, in.Clock, 2*time.Second)
		}
		conn, err = in.open(try, addr)
		cancel()
		if err == nil {
			return conn, nil
		}
	}
	return nil, err
}

func (in *JoinRequest) open(ctx context.Context, addr string) (net.Conn, error) {
	if in.dial != nil {
		return in.dial(ctx, addr)
	}
	return in.Identity.Dial(ctx, addr)
}

// join1 is the worker's side of the handshake, up to the roster.
func join1(c *control, in JoinRequest) (m *Member, err error) {
	listener, addr, err := listenNear(c.conn, in)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			listener.Close()
		}
	}()
	name, _ := os.Hostname()
	hello := Hello{Version: in.Version, Job: in.Job, Rank: in.Rank, Name: name, Host: hostID(), PID: os.Getpid(),
		Addr: addr}
	if err := c.introduce(hello, "worker", in); err != nil {
		return nil, err
	}
	// Others may take long to come; the coordinator wants to hear that we are still here.
	ended := make(chan struct{})
	go c.keepAlive(ended)
	defer func() {
		if err != nil {
			close(ended)
		}
	}()
	sent, err := c.expect("roster", maxLine, maxBlob, time.Time{})
	if errors.Is(err, errUnheard) { // it was the job's coordinator, and may come back
		return nil, lost(err)
	}
	if err != nil {
		return nil, err
	}
	if m, err = memberOf(sent); err != nil {
		return nil, err
	}
	m.Listener, m.control, m.ended = listener, c, ended
	return m, nil
}

// memberOf is a worker's place in a roster.
func memberOf(sent message) (*Member, error) {
	var r roster
	if err := json.Unmarshal(sent.Body, &r); err != nil || r.Rank < 0 || r.Rank >= len(r.Peers) {
		return nil, fmt.Errorf("an invalid roster: rank %d of %d (%v)", r.Rank, len(r.Peers), err)
	}
	for i, p := range r.Peers {
		if p.Rank != i || p.Server < 0 || p.Server >= len(r.Peers) {
			return nil, fmt.Errorf("an invalid roster: place %d has rank %d on server %d", i, p.Rank, p.Server)
		}
	}
	all := int64(len(sent.blob))
	if r.Own < 0 || r.Own > all {
		return nil, fmt.Errorf("an invalid roster: %d of %d bytes for this rank", r.Own, all)
	}
	return &Member{Rank: r.Rank, Job: r.Job, Peers: r.Peers, Task: r.Task, Blob: sent.blob[:all-r.Own],
		Own:    sent.blob[all-r.Own:],
		events: make(chan event.Event, 1024), flushed: make(chan struct{}),
		stop: make(chan struct{}), unconnected: make(chan struct{})}, nil
}

// introduce sends a hello in a role; both sides prove that they know the token.
func (c *control) introduce(h Hello, role string, in JoinRequest) error {
	h.Protocol, h.Random = protocol, NewSecret()
	h.Cookie = cookie(in.Token, role, h.Random)
	hello := newMessage("hello", h)
	greeting, _ := json.Marshal(hello)
	if err := c.write(hello); err != nil {
		return err
	}
	// Between two starts of a job the coordinator may take a while to answer. What
	// answers there may also be no coordinator, and send something for ever.
	by := c.clock.Now().Add(in.Timeout)
	challenge, err := c.expect("challenge", maxGreeting, 0, by)
	if err != nil {
		return err
	}
	var random, given string
	json.Unmarshal(challenge.Body, &random) // nothing is as good as a random number to be wrong with
	if err := c.write(newMessage("proof", proof(in.Token, role, greeting, random))); err != nil {
		return err
	}
	welcome, err := c.expect("welcome", maxGreeting, 0, by)
	if err != nil {
		return err
	}
	if json.Unmarshal(welcome.Body, &given) != nil || !proves(given, proof(in.Token, "coordinator", greeting, random)) {
		return fmt.Errorf("the process at %v does not know the job's token", c.conn.RemoteAddr())
	}
	c.grow()
	return nil
}

// listenNear opens the worker's own listener, by default on the address that reaches
// the coordinator. It returns the address to send to the others.
func listenNear(conn net.Conn, in JoinRequest) (net.Listener, string, error) {
	ip := conn.LocalAddr().(*net.TCPAddr).IP
	if ip.IsLoopback() && !Loopback(in.Coordinator) { // its name stands for loopback on its own host only
		ip = addresses()[0]
	}
	near := ip.String()
	at := in.Listen
	if at == "" {
		at = net.JoinHostPort(near, "0")
	}
	if in.listen == nil {
		in.listen = func(addr string) (net.Listener, error) { return net.Listen("tcp", addr) }
	}
	l, err := in.listen(at)
	if err != nil {
		return nil, "", err
	}
	a := l.Addr().(*net.TCPAddr)
	if !a.IP.IsLoopback() && len(in.Token) == 0 && in.Identity == nil && !in.Insecure {
		l.Close()
		return nil, "", fmt.Errorf("cluster: %v can be reached by others and there is no token", a)
	}
	if a.IP.IsUnspecified() {
		return l, net.JoinHostPort(near, fmt.Sprint(a.Port)), nil
	}
	return l, a.String(), nil
}

// errUnheard is a connection that ended where a message was expected.
var errUnheard = errors.New("nothing can be received from it")

// expect reads until a message of a type comes, by a time; the zero time: as long as
// something comes.
func (c *control) expect(kind string, line int, blob int64, by time.Time) (message, error) {
	for {
		within := c.silence
		if !by.IsZero() {
			within = by.Sub(c.clock.Now())
		}
		m, _, err := c.read(line, blob, within)
		switch {
		case err != nil:
			return m, fmt.Errorf("the coordinator at %v: %w: %w", c.conn.RemoteAddr(), errUnheard, err)
		case m.Type == kind:
			return m, nil
		case m.Type == "refused":
			var reason string
			json.Unmarshal(m.Body, &reason) // an empty reason is none
			return m, &Refused{By: c.conn.RemoteAddr().String(), Reason: reason}
		case m.Type == "abort":
			a := abortedBy(m)
			if a.Again {
				return m, ErrAgain
			}
			return m, a
		case m.Type != "ping" && m.Type != "stop":
			return m, fmt.Errorf("the coordinator at %v sent %.20q, want %s", c.conn.RemoteAddr(), m.Type, kind)
		}
	}
}

// receive takes in the coordinator's messages.
func (m *Member) receive() {
	defer close(m.unconnected)
	for {
		got, _, err := m.control.read(maxLine, 0, m.control.silence)
		switch {
		case err != nil:
			m.end(lost(err))
			return
		case got.Type == "stop":
			m.once.stop.Do(func() { close(m.stop) })
		case got.Type == "abort":
			a := abortedBy(got)
			m.again.Store(a.Again)
			m.end(a)
		case got.Type == "bye":
			m.end(nil)
		}
	}
}

func (m *Member) end(why error) {
	m.once.end.Do(func() {
		m.why = why
		close(m.ended)
	})
}

// Here counts the workers on this host.
func (m *Member) Here() (n int) {
	for _, p := range m.Peers {
		if p.Host == m.Peers[m.Rank].Host {
			n++
		}
	}
	return n
}

// Stopped is closed when all are to stop after the same epoch.
func (m *Member) Stopped() <-chan struct{} { return m.stop }

// Ended is closed when there is nothing left to do: another worker has failed, or
// the coordinator is lost, or all are done. Err is which.
func (m *Member) Ended() <-chan struct{} { return m.ended }

// Again reports whether the job goes on without this attempt: the worker is to join
// again.
func (m *Member) Again() bool { return m.again.Load() }

// Keep asks the coordinator to keep a state of the run.
func (m *Member) Keep(body json.RawMessage, state *Stream) error {
	if err := m.control.write(message{Type: "state", Body: body, from: state}); err != nil {
		return lost(err)
	}
	return nil
}

// Err is nil after a run that ended well.
func (m *Member) Err() error { return m.why }

// On sends an event to the coordinator. It waits only where very many are queued.
func (m *Member) On(e event.Event) {
	select {
	case m.events <- e:
	case <-m.ended:
	}
}

func (m *Member) sendEvents() {
	defer close(m.flushed)
	for e := range m.events {
		if b, err := event.Encode(e, m.control.clock.Now()); err == nil {
			if err := m.control.write(message{Type: "event", Body: b}); err != nil {
				m.end(lost(err))
			}
		}
	}
}

// Done sends what this worker ended with, and returns when all others have ended
// too. No event may follow.
func (m *Member) Done(body json.RawMessage, blob []byte) error {
	return m.last(message{Type: "result", Body: body, blob: blob})
}

// Fail sends why this worker cannot go on; input marks a user's mistake. No event
// may follow.
func (m *Member) Fail(err error, input bool) {
	_, late := errors.AsType[*wire.Timeout](err)
	late = late || errors.Is(err, ErrLost) // the coordinator, if it still hears this
	f := failed{Text: err.Error(), Input: input, Echo: m.echo(err), Late: late}
	m.last(newMessage("failure", f)) // if it cannot be sent, the coordinator notices the silence
}

// echo reports whether an error only follows from another worker's.
func (m *Member) echo(err error) bool {
	if f, ok := errors.AsType[*wire.Failure](err); ok {
		return f.Rank != m.Rank
	}
	_, gone := errors.AsType[*wire.PeerLost](err)
	return gone || errors.Is(err, errAborted)
}

// last sends the last message and waits until it was received.
func (m *Member) last(msg message) error {
	close(m.events)
	<-m.flushed
	if err := m.control.write(msg); err != nil {
		m.end(lost(err))
	}
	if msg.Type == "result" {
		<-m.ended
	}
	// Closing with bytes unread would destroy the last message on its way.
	if half, ok := m.control.conn.(interface{ CloseWrite() error }); ok {
		half.CloseWrite()
	}
	late, timer := wire.Alarm(m.control.clock, m.control.silence)
	defer timer.Stop()
	select {
	case <-m.unconnected:
	case <-late: // a busy coordinator may still send that the job goes on
	}
	m.end(nil)
	m.control.conn.Close()
	return m.why
}

package cluster

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"starling/event"
	"starling/wire"
	"starling/wire/tcp"
)

// Config is what a coordinator needs to know.
type Config struct {
	// Addr to listen on, host:port. Empty: any port of 127.0.0.1.
	Addr string
	// Workers to wait for, and how many Servers they are grouped into, in order of
	// rank; 0: every host is one.
	Workers, Servers int
	// Job distinguishes this job from others; Version is the build that all must have.
	Job, Version string
	// Token is the secret that workers must know. Without one, and without an
	// Identity, the address must be loopback, or Insecure set.
	Token    []byte
	Insecure bool
	// Identity, if set, is presented to workers, which must have one of the same authority.
	Identity *Identity
	// Timeout bounds the wait for all to join; Grace is the grace period in which workers
	// leave when the job has ended, before their processes are killed.
	Timeout, Grace time.Duration
	// Remote: the processes that are ours start workers on other hosts.
	Remote bool
	// Silence is how long a worker may send nothing before it is taken for dead.
	Silence time.Duration
	// Task and Blob go to every worker with the roster, and Own to each its own.
	Task json.RawMessage
	Blob []byte
	Own  [][]byte
	// Again: when a worker is lost, the others are asked to rejoin, for another
	// Run that Next prepares.
	Again bool
	// State is given the states that workers send, on one goroutine.
	State func(rank int, body json.RawMessage, blob []byte)
	// Status is given the status reports of workers, on the same goroutine.
	Status func(Status)
	// Watch is what watchers see; they must know the WatchToken. Nil: the job cannot be watched.
	Watch      func() any
	WatchToken []byte
	// Events is given the events of all ranks, on one goroutine. Refused is called for
	// every peer that was refused.
	Events  func(rank int, e event.Event)
	Refused func(from, reason string)
	// Clock is the run's; nil: the host's.
	Clock wire.Clock
	// listen, if set, is another network than the host's.
	listen func(addr string) (listener, error)
}

// listener is one that can be interrupted, and listen on.
type listener interface {
	net.Listener
	SetDeadline(time.Time) error
}

func listenTCP(addr string) (listener, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	return l.(*net.TCPListener), nil
}

// Coordinator is the process that the workers of a job join.
type Coordinator struct {
	cfg      Config
	listener listener
	session  *session
	tasks    chan func() // to be done on the loop
	done     chan struct{}
	conns    map[int]*caller // the loop's
	next     int
	late     int // workers that were refused after a job had ended
	preAuth  *tcp.PreAuthPool
	wg       sync.WaitGroup
}

// caller is a connection as the loop sees it.
type caller struct {
	*control
	id  int
	out chan message
	// early: it joined when the job, or this start of it, had ended already.
	early bool
}

// Listen opens the listener; Run admits workers.
func Listen(cfg Config) (*Coordinator, error) {
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	if cfg.Grace <= 0 {
		cfg.Grace = 5 * time.Second
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = time.Minute
	}
	if cfg.Silence <= 0 {
		cfg.Silence = Silence
	}
	cfg.Clock = wire.OrReal(cfg.Clock)
	if !Loopback(cfg.Addr) && len(cfg.Token) == 0 && cfg.Identity == nil && !cfg.Insecure {
		return nil, fmt.Errorf("cluster: %s can be reached by others and there is no token", cfg.Addr)
	}
	if cfg.listen == nil {
		cfg.listen = listenTCP
	}
	l, err := cfg.listen(cfg.Addr)
	if err != nil {
		return nil, err
	}
	c := &Coordinator{cfg: cfg, listener: l, preAuth: tcp.NewPreAuthPool(cfg.Workers + tcp.PreAuthPlaces)}
	c.Next(cfg.Task, cfg.Blob, cfg.Own, nil)
	return c, nil
}

// Next prepares for another Run, after one that lost a worker. Of procs those that
// do not run any more are not waited for.
func (c *Coordinator) Next(task json.RawMessage, blob []byte, own [][]byte, procs *Processes) {
	cfg := &c.cfg
	c.session = &session{size: cfg.Workers, servers: cfg.Servers, job: cfg.Job, version: cfg.Version, task: task,
		blob: blob, own: own, again: cfg.Again, exits: make([]*exit, cfg.Workers)}
	for r := range c.session.exits {
		if procs != nil && !procs.Running(r) {
			c.session.exits[r] = &exit{}
		}
	}
	c.tasks, c.done = make(chan func()), make(chan struct{})
	c.conns = map[int]*caller{}
}

// Lost lists the ranks that the last Run has lost: those that do not rejoin by themselves.
func (c *Coordinator) Lost() []int { return c.session.lost() }

// Addr is where workers on this host may join: a listener on all interfaces is
// reached over loopback.
func (c *Coordinator) Addr() string {
	a := c.listener.Addr().(*net.TCPAddr)
	if a.IP.IsUnspecified() {
		return net.JoinHostPort("127.0.0.1", fmt.Sprint(a.Port))
	}
	return a.String()
}

// Close closes the listener.
func (c *Coordinator) Close() error { return c.listener.Close() }

// RefuseLate refuses, for a while, workers that rejoin a job that has ended, and tells
// them why it has, so that they need not wait for it. It returns before when that many have come; 0: any number may.
func (c *Coordinator) RefuseLate(why error, while time.Duration, workers int) {
	c.Next(nil, nil, nil, nil)
	c.late = 0
	c.session.cause, c.session.ended, c.session.again = errAborted, why, false
	c.listener.SetDeadline(time.Time{})
	c.wg.Go(c.accept)
	over, timer := wire.Alarm(c.cfg.Clock, while)
	defer timer.Stop()
	for passed := false; !passed && (workers == 0 || c.late < workers); {
		select {
		case f := <-c.tasks:
			f()
			c.session.out = nil
		case <-over:
			passed = true
		}
	}
	close(c.done)
	c.listener.SetDeadline(wire.SocketPast)
	c.wg.Wait()
}

// Run runs the job: it waits for all workers, sends them the roster, passes
// events on, and returns what every rank ended with, or the root cause of a
// failure. When ctx ends all are asked to stop after the same epoch. When Run
// returns, every connection is closed and every process in procs (nil: they are
// not ours) has ended; or, where the job may go on, those of lost workers have.
func (c *Coordinator) Run(ctx context.Context, procs *Processes) ([]Result, error) {
	s := c.session
	s.launched = procs != nil
	c.listener.SetDeadline(time.Time{}) // before accept, which would see that of the Run before
	c.wg.Go(c.accept)
	defer c.wg.Wait()
	defer close(c.done)
	defer c.listener.SetDeadline(wire.SocketPast) // ends accept; connections made meanwhile wait for the next Run
	patience := c.patience()
	gather, timer := wire.Alarm(c.cfg.Clock, patience)
	defer timer.Stop()
	interrupt := ctx.Done()
	var leave, gone <-chan struct{}
	for over := false; !over && !s.over(); {
		if s.ending() && leave == nil {
			var soon, last wire.Timer
			leave, soon = wire.Alarm(c.cfg.Clock, c.cfg.Grace)
			gone, last = wire.Alarm(c.cfg.Clock, 3*c.cfg.Grace)
			defer soon.Stop()
			defer last.Stop()
		}
		select {
		case f := <-c.tasks:
			f()
		case e := <-procs.ends():
			s.exited(e.Rank, e.PID, procs.host, e.Err, e.Last)
		case <-gather:
			gather = nil
			s.late(patience.String())
		case <-interrupt:
			interrupt = nil
			s.interrupt()
		case <-leave:
			leave = make(chan struct{}) // never again
			c.endRemaining(procs)
		case <-gone: // what still runs is not waited for
			over = true
		}
		c.act(procs)
	}
	for _, p := range c.conns {
		p.conn.Close()
	}
	return s.outcome()
}

// patience is how long all may take to join. Our own processes are fast, except where
// they have to log in to other hosts first.
func (c *Coordinator) patience() time.Duration {
	if c.session.launched && c.session.again && !c.cfg.Remote {
		return min(c.cfg.Timeout, 3*c.cfg.Silence)
	}
	return c.cfg.Timeout
}

// endRemaining ends what did not end within the grace period.
func (c *Coordinator) endRemaining(procs *Processes) {
	switch {
	case procs != nil && c.session.again && c.session.cause == errAborted:
		for _, r := range c.session.lost() {
			procs.Kill(r)
		}
	case procs != nil:
		c.session.killed = true
		procs.Stop(c.cfg.Grace / 2)
	}
	for _, p := range c.conns {
		p.conn.Close()
	}
}

// act does what the session wants done.
func (c *Coordinator) act(procs *Processes) {
	for _, a := range c.session.out {
		switch p := c.conns[a.conn]; {
		case a.kill:
			procs.Kill(a.rank)
		case a.state != nil && c.cfg.State != nil:
			c.cfg.State(a.rank, a.state.Body, a.state.Blob)
		case a.status != nil && c.cfg.Status != nil:
			c.cfg.Status(*a.status)
		case a.event != nil && c.cfg.Events != nil:
			c.cfg.Events(a.rank, a.event)
		case p != nil:
			p.put(a.message)
		}
	}
	c.session.out = nil
}

// onLoop has the loop do f. It is false when there is no loop any more.
func (c *Coordinator) onLoop(f func()) bool {
	select {
	case c.tasks <- f:
		return true
	case <-c.done:
		return false
	}
}

func (c *Coordinator) accept() {
	for {
		conn, err := wire.Accept(c.listener, func(err error) { c.tellRefused("a connection", err) })
		if err != nil { // it was closed, or interrupted
			return
		}
		v := c.preAuth.Add(conn)
		c.wg.Go(func() { c.serve(v) })
	}
}

func (c *Coordinator) tellRefused(from string, reason error) {
	if c.cfg.Refused != nil {
		c.onLoop(func() { c.cfg.Refused(from, reason.Error()) })
	}
}

// serve authenticates one dialer and, if it is admitted, reads its messages until it leaves.
func (c *Coordinator) serve(v *tcp.PreAuthConn) {
	conn := c.cfg.Identity.Server(v.Conn)
	defer conn.Close()
	stop := c.closeWith(conn)
	defer stop()
	p := &caller{control: newControl(conn, c.cfg.Silence, c.cfg.Clock), out: make(chan message, 16)}
	hello, welcome, err := c.authenticate(p.control, v.Promising)
	err = v.Authenticated(err)
	v.Remove()
	if err == nil {
		p.grow()
	}
	if err == nil && hello.Watch {
		if err = c.show(p.control, welcome); err == nil {
			return
		}
	} else if err == nil {
		err = c.admit(p, hello, welcome)
	}
	if err != nil {
		if !p.early { // else it rejoins
			c.tellRefused(conn.RemoteAddr().String(), err)
		}
		p.write(newMessage("refused", err.Error())) // whether or not it reads it
		if p.early {
			c.onLoop(func() { c.late++ })
		}
		return
	}
	gone, written := make(chan struct{}), make(chan struct{})
	c.wg.Go(func() {
		defer close(written)
		p.writeAll(gone)
	})
	c.wg.Go(func() { p.keepAlive(gone) })
	err = c.listen(p)
	c.onLoop(func() {}) // returns when its last message was answered: whether to rejoin
	close(gone)
	<-written // it may have sent its last message and still read
	c.onLoop(func() {
		delete(c.conns, p.id)
		c.session.disconnected(p.id, err)
	})
}

// closeWith ends a connection when the job ends.
func (c *Coordinator) closeWith(conn net.Conn) (stop func()) {
	left := make(chan struct{})
	c.wg.Go(func() {
		select {
		case <-c.done:
			conn.Close()
		case <-left:
		}
	})
	return func() { close(left) }
}

// authenticate makes the dialer prove that it knows the token. It returns its hello and
// the coordinator's proof. It calls promising as soon as the dialer has shown a cookie or a certificate.
func (c *Coordinator) authenticate(p *control, promising func(cookie string)) (h Hello, welcome message, err error) {
	end := c.cfg.Clock.Now().Add(greetingTime)
	if secure, ok := p.conn.(interface{ Handshake() error }); ok {
		p.conn.SetDeadline(wire.SocketTime(greetingTime))
		err := secure.Handshake()
		if plain := (tls.RecordHeaderError{}); errors.As(err, &plain) && plain.Conn != nil {
			p.conn = plain.Conn // so that it can read why
			err = fmt.Errorf("this job speaks TLS; give every worker certificates with --tls (%w)", err)
		}
		if err != nil {
			return h, welcome, err // it has not authenticated
		}
		promising("")
	}
	h, greeting, err := p.readHello(end.Sub(c.cfg.Clock.Now()))
	if err != nil {
		return h, welcome, err
	}
	token, role := c.cfg.Token, "worker"
	if h.Watch {
		token, role = c.cfg.WatchToken, "watcher"
	}
	if len(token) > 0 { // without one, everybody can make a cookie
		if !proves(h.Cookie, cookie(token, role, h.Random)) {
			return h, welcome, errWrongToken
		}
		promising(h.Cookie)
	}
	challenge := NewSecret()
	if err := p.write(newMessage("challenge", challenge)); err != nil {
		return h, welcome, err
	}
	m, _, err := p.read(maxGreeting, 0, end.Sub(c.cfg.Clock.Now()))
	var given string
	if err != nil {
		return h, m, fmt.Errorf("it gave no proof that it knows the token: %w", err)
	}
	if m.Type != "proof" || json.Unmarshal(m.Body, &given) != nil ||
		!proves(given, proof(token, role, greeting, challenge)) {
		return h, m, errWrongToken
	}
	return h, newMessage("welcome", proof(token, "coordinator", greeting, challenge)), nil
}

var errWrongToken = errors.New("wrong token; give every worker the same one")

// readHello reads the first message, and the same as it was sent.
func (c *control) readHello(within time.Duration) (h Hello, greeting []byte, err error) {
	m, greeting, err := c.read(maxGreeting, 0, within)
	if err != nil {
		return h, nil, fmt.Errorf("it sent no hello: %w", err)
	}
	if m.Type != "hello" || json.Unmarshal(m.Body, &h) != nil {
		return h, nil, fmt.Errorf("it starts with %.40q, not with a hello", greeting)
	}
	if h.Protocol != protocol {
		return h, nil, fmt.Errorf("it speaks version %d of the protocol, this job speaks %d; run the same build on "+
			"every host", h.Protocol, protocol)
	}
	return h, greeting, nil
}

// admit asks the session whether the worker may join; if so, the welcome is the
// first message it is sent.
func (c *Coordinator) admit(p *caller, h Hello, welcome message) error {
	reason := make(chan string, 1)
	asked := c.onLoop(func() {
		c.next++
		p.id = c.next
		p.early = c.session.cause != nil
		why := c.session.arrive(p.id, h)
		if why == "" {
			c.conns[p.id] = p
			p.put(welcome)
			c.session.begin()
		}
		reason <- why
	})
	if !asked {
		if p.early = c.cfg.Again; p.early {
			return errors.New(restartsSoon)
		}
		return errEnded
	}
	if why := <-reason; why != "" {
		return errors.New(why)
	}
	return nil
}

var errEnded = errors.New("the job has ended")

// listen passes on a worker's messages, until it is silent.
func (c *Coordinator) listen(p *caller) error {
	for {
		m, _, err := p.read(maxLine, maxBlob, p.silence)
		switch {
		case errors.Is(err, io.EOF):
			return errors.New("its connection ended")
		case errors.Is(err, os.ErrDeadlineExceeded):
			return fmt.Errorf("%w for %v: it is stopped, cut off, or its host is down", errSilent, p.silence)
		case err != nil:
			return err
		}
		if (m.Type != "ping" || m.Body != nil) && !c.onLoop(func() { c.session.received(p.id, m) }) {
			return errEnded
		}
	}
}

// put queues a message. There are few, so a full queue is a worker that has long
// stopped reading.
func (p *caller) put(m message) {
	select {
	case p.out <- m:
	default:
		p.conn.Close()
	}
}

// writeAll sends what is queued until the worker has gone.
func (p *caller) writeAll(gone <-chan struct{}) {
	for {
		select {
		case <-gone:
			p.writeRest()
			return
		case m := <-p.out:
			if p.write(m) != nil {
				p.conn.Close()
				return
			}
		}
	}
}

// writeRest sends what was queued before the worker left: whether it is to come
// again, for example.
func (p *caller) writeRest() {
	for {
		select {
		case m := <-p.out:
			if p.write(m) != nil {
				return
			}
		default:
			return
		}
	}
}

package tcp

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"starling/internal/testdeadline"
	"starling/wire"
	"starling/wire/wiretest"
)

// refusals collects what a listener has refused.
type refusals struct {
	sync.Mutex
	reasons []string
}

func (v *refusals) refused(_ net.Addr, reason error) {
	v.Lock()
	defer v.Unlock()
	v.reasons = append(v.reasons, reason.Error())
}

func (v *refusals) said(want string) bool {
	v.Lock()
	defer v.Unlock()
	return strings.Contains(strings.Join(v.reasons, "\n"), want)
}

// Unauthenticated peers are refused with a reason, before, during and after the run comes
// together, and the run goes on.
func TestUnauthenticatedPeersAreRefused(t *testing.T) {
	wiretest.NoLeaks(t)
	var v refusals
	var addr, job string
	eps := joinAll(t, 2, func(c *wire.Config) {
		c.NoSharedMemory, c.Refused = true, v.refused
		addr, job = c.Addrs[0], c.Job
	})
	defer wiretest.CloseAll(eps)
	good := identity{rank: 1, size: 2, connections: 2, token: []byte("secret"), job: sha256.Sum256([]byte(job))}
	dial := func(change func(*identity)) error {
		id := good
		change(&id)
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(time.Minute))
		_, err = id.authenticate(conn, 0, 0, false)
		return err
	}
	for _, c := range []struct {
		want   string
		change func(*identity)
	}{
		{"wrong token", func(id *identity) { id.token = []byte("guess") }},
		{"wrong token", func(id *identity) { id.token = nil }},
		{"another job's worker", func(id *identity) { id.job[0]++ }},
		{"its job has 3 workers, this one has 2", func(id *identity) { id.size = 3 }},
		{"rank 0 does not dial rank 0 of 2", func(id *identity) { id.rank = 0 }},
		{"rank 2 does not dial rank 0 of 2", func(id *identity) { id.rank = 2 }},
		{"connection 0 of 5, this worker uses 2", func(id *identity) { id.connections = 5 }},
		{"rank 1 is connected already", func(id *identity) {}},
	} {
		var r *Refusal
		if err := dial(c.change); !errors.As(err, &r) || !strings.Contains(r.Reason, c.want) {
			t.Errorf("%v, expected %q", err, c.want)
		}
	}
	for _, bytes := range []string{"GET / HTTP/1.1\r\n\r\n", "SWH\x09", "SWF\x02", "", "SWH\x03short"} {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, bytes)
		conn.(*net.TCPConn).CloseWrite()
		io.Copy(io.Discard, conn)
		conn.Close()
	}
	into := make([]byte, 1<<20)
	eps[0].Send(1, wiretest.Key(0), wire.Feature, wiretest.Payload(0, 1, 0, 1<<20))
	if err := eps[1].Recv(0, wiretest.Key(0), wire.Feature, into).Wait(wiretest.Soon(t)); err != nil {
		t.Error("unauthenticated peers disturbed the run:", err)
	}
	for _, want := range []string{"wrong token", "another job", `it starts with "GET `, "version 9 of the protocol",
		"it sent no hello", "its hello is incomplete"} {
		for end := time.Now().Add(time.Minute); !v.said(want); time.Sleep(time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("nothing in the log says %q: %q", want, v.reasons)
			}
		}
	}
}

// pipeListener accepts what is given to it.
type pipeListener struct {
	conns chan net.Conn
	once  sync.Once
	done  chan struct{}
}

func (l *pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

func (l *pipeListener) Close() error   { l.once.Do(func() { close(l.done) }); return nil }
func (l *pipeListener) Addr() net.Addr { return &net.UnixAddr{} }

// A connection that sends nothing, or sends slowly, is closed in time and delays no other;
// when too many come, the oldest is closed.
func TestSlowUnauthenticatedPeers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v refusals
		l := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
		id := &identity{size: 2, connections: 1}
		d := listenAs(id, l, func(g *candidate) error { return g.Accept("memory") }, v.refused)
		connect := func() net.Conn {
			a, b := net.Pipe()
			l.conns <- b
			return a
		}
		var waiting []net.Conn
		for range d.pool.limit {
			waiting = append(waiting, connect())
		}
		go func() {
			for i := range 10 { // one byte per second is not fast enough
				time.Sleep(time.Second)
				waiting[1].Write([]byte("SWH\x03567890")[i : i+1])
			}
		}()
		synctest.Wait()
		mate := identity{rank: 1, size: 2, connections: 1}
		if text, err := mate.authenticate(connect(), 0, 0, false); err != nil || text != "memory" {
			t.Error("a worker could not join while the pool was full:", err)
		}
		synctest.Wait()
		if len(v.reasons) != 1 || !v.said("too many unauthenticated") {
			t.Error(v.reasons)
		}
		time.Sleep(handshakeTime + time.Second)
		synctest.Wait()
		if len(v.reasons) != d.pool.limit || !v.said("incomplete") || !v.said("sent no hello") {
			t.Errorf("%d of %d were closed: %q", len(v.reasons), d.pool.limit, v.reasons)
		}
		if text, err := mate.authenticate(connect(), 0, 0, false); err != nil || text != "memory" {
			t.Error("a worker could not join beside unauthenticated peers:", err)
		}
		d.Close()
		time.Sleep(10 * time.Second)
	})
}

// A recorded handshake cannot be replayed.
func TestReplay(t *testing.T) {
	acceptor := &identity{rank: 0, size: 2, connections: 1, token: []byte("secret")}
	dialer := &identity{rank: 1, size: 2, connections: 1, token: []byte("secret")}
	record := handshake(t, acceptor, func(conn net.Conn) ([]byte, error) {
		tape := &recorder{Conn: conn}
		_, err := dialer.authenticate(tape, 0, 0, false)
		return tape.said, err
	}, true)
	handshake(t, acceptor, func(conn net.Conn) ([]byte, error) {
		conn.Write(record[:helloSize])
		io.ReadFull(conn, make([]byte, replySize))
		conn.Write(record[helloSize:])
		_, _, err := readReply(conn)
		return nil, err
	}, false)
}

type recorder struct {
	net.Conn
	said []byte
}

func (r *recorder) Write(b []byte) (int, error) {
	r.said = append(r.said, b...)
	return r.Conn.Write(b)
}

// handshake connects a dialer and an acceptor, and checks how it ends.
func handshake(t *testing.T, acceptor *identity, dial func(net.Conn) ([]byte, error), good bool) []byte {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	var wg sync.WaitGroup
	wg.Go(func() {
		defer b.Close()
		g, err := acceptor.handshake().challenge(b, acceptor.checkClaim, func(string) {})
		if (err == nil) != good {
			t.Errorf("the acceptor says %v", err)
		}
		if err == nil {
			g.Accept("")
		}
	})
	said, err := dial(a)
	if (err == nil) != good {
		t.Errorf("the dialer hears %v", err)
	}
	testdeadline.Wait(t, &wg, "the acceptor")
	return said
}

// An impostor that listens at a peer's address learns nothing and is noticed.
func TestImpostor(t *testing.T) {
	impostor := &identity{rank: 0, size: 2, connections: 1, token: []byte("guess")}
	dialer := &identity{rank: 1, size: 2, connections: 1, token: []byte("secret")}
	a, b := net.Pipe()
	go func() {
		said := make([]byte, helloSize)
		io.ReadFull(b, said)
		writeReply(b, verdictGo, make([]byte, 32), "")
		io.ReadFull(b, make([]byte, proofSize)) // whatever it is
		writeReply(b, verdictGo, impostor.handshake().proof("acceptor", said, make([]byte, 32)), "")
	}()
	if _, err := dialer.authenticate(a, 0, 0, false); err == nil || err.Error() != "it does not know the job's token" {
		t.Error(err)
	}
}

// The error of a Join that fails says who is missing, or who refused and why.
func TestJoinFails(t *testing.T) {
	wiretest.NoLeaks(t)
	cfgs := configs(t, 3)
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	cfgs[1].Listener.Close() // rank 1 never comes
	errs := make([]error, 3)
	var wg sync.WaitGroup
	for _, r := range []int{0, 2} {
		wg.Go(func() { _, errs[r] = Join(ctx, cfgs[r]) })
	}
	wg.Wait()
	for _, r := range []int{0, 2} {
		// The other may notice first, and tell.
		if errs[r] == nil || !strings.Contains(errs[r].Error(), "rank 1 ("+cfgs[1].Addrs[1]+")") {
			t.Errorf("rank %d: %v", r, errs[r])
		}
	}
	cfgs = configs(t, 2)
	cfgs[1].Token = []byte("another")
	ctx, cancel = context.WithCancel(context.Background())
	wg.Go(func() { _, errs[0] = Join(ctx, cfgs[0]) })
	_, errs[1] = Join(wiretest.Soon(t), cfgs[1])
	cancel() // the other would wait on
	wg.Wait()
	if errs[1] == nil || !strings.Contains(errs[1].Error(), "it refused: wrong token") {
		t.Error(errs[1])
	}
}

func TestConfigMistakes(t *testing.T) {
	wide := func() net.Listener {
		l, err := net.Listen("tcp", ":0")
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	for want, change := range map[string]func(*wire.Config){
		"Size is 0":                      func(c *wire.Config) { c.Size = 0 },
		"Rank is 2, expected 0 to 1":     func(c *wire.Config) { c.Rank = 2 },
		"Addrs has 1 address for 2":      func(c *wire.Config) { c.Addrs = c.Addrs[:1] },
		"HostIDs has 1 entry for 2":      func(c *wire.Config) { c.HostIDs = c.HostIDs[:1] },
		"ServerOf has 1 entry for 2":     func(c *wire.Config) { c.ServerOf = []int{0} },
		"Connections is 65":              func(c *wire.Config) { c.Connections = 65 },
		"without a token; give all work": func(c *wire.Config) { c.Listener.Close(); c.Listener, c.Token = wide(), nil },
	} {
		c := configs(t, 2)
		c[1].Listener.Close()
		change(&c[0])
		if _, err := Join(context.Background(), c[0]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
}

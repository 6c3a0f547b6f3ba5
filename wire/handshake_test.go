package wire

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
)

// visitors collects what a door has refused.
type visitors struct {
	sync.Mutex
	reasons []string
}

func (v *visitors) refused(_ net.Addr, reason error) {
	v.Lock()
	defer v.Unlock()
	v.reasons = append(v.reasons, reason.Error())
}

func (v *visitors) said(want string) bool {
	v.Lock()
	defer v.Unlock()
	return strings.Contains(strings.Join(v.reasons, "\n"), want)
}

// Strangers are refused with a reason, before, during and after the run comes
// together, and the run goes on.
func TestStrangersAreRefused(t *testing.T) {
	noLeaks(t)
	var v visitors
	var addr, job string
	eps := joinAll(t, 2, func(c *Config) {
		c.NoSharedMemory, c.Refused = true, v.refused
		addr, job = c.Addrs[0], c.Job
	})
	defer closeAll(eps)
	good := identity{rank: 1, size: 2, connections: 2, token: []byte("secret"), job: sha256.Sum256([]byte(job))}
	knock := func(change func(*identity)) error {
		id := good
		change(&id)
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(time.Minute))
		_, err = id.greet(conn, 0, 0, false)
		return err
	}
	for _, c := range []struct {
		want   string
		change func(*identity)
	}{
		{"wrong token", func(id *identity) { id.token = []byte("guess") }},
		{"wrong token", func(id *identity) { id.token = nil }},
		{"another job's worker", func(id *identity) { id.job[0]++ }},
		{"it counts 3 workers, there are 2", func(id *identity) { id.size = 3 }},
		{"rank 0 does not dial rank 0 of 2", func(id *identity) { id.rank = 0 }},
		{"rank 2 does not dial rank 0 of 2", func(id *identity) { id.rank = 2 }},
		{"connection 0 of 5, this worker uses 2", func(id *identity) { id.connections = 5 }},
		{"rank 1 is connected already", func(id *identity) {}},
	} {
		var r *Refusal
		if err := knock(c.change); !errors.As(err, &r) || !strings.Contains(r.Reason, c.want) {
			t.Errorf("%v, expected %q", err, c.want)
		}
	}
	for _, bytes := range []string{"GET / HTTP/1.1\r\n\r\n", "SWH\x09", "SWF\x01", "", "SWH\x01short"} {
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
	eps[0].Send(1, key(0), Feature, payload(0, 1, 0, 1<<20))
	if err := eps[1].Recv(0, key(0), Feature, into).Wait(soon(t)); err != nil {
		t.Error("strangers disturbed the run:", err)
	}
	for _, want := range []string{"wrong token", "another job", `it starts with "GET `, "version 9 of the protocol", "it said nothing", "its hello is cut off"} {
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

// Who says nothing, or says it slowly, is sent away in time, and holds nobody up;
// when too many come, who came first is sent away.
func TestSlowStrangers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var v visitors
		l := &pipeListener{conns: make(chan net.Conn), done: make(chan struct{})}
		id := &identity{size: 2, connections: 1}
		d := newDoor(l, id, func(g *guest) error { return g.letIn("come in") }, v.refused)
		visit := func() net.Conn {
			a, b := net.Pipe()
			l.conns <- b
			return a
		}
		var waiting []net.Conn
		for range d.doorway.places {
			waiting = append(waiting, visit())
		}
		go func() {
			for i := range 10 { // a byte a second is not fast enough
				time.Sleep(time.Second)
				waiting[1].Write([]byte("SWH\x01567890")[i : i+1])
			}
		}()
		synctest.Wait()
		mate := identity{rank: 1, size: 2, connections: 1}
		if text, err := mate.greet(visit(), 0, 0, false); err != nil || text != "come in" {
			t.Error("a worker could not get through the crowd:", err)
		}
		synctest.Wait()
		if len(v.reasons) != 1 || !v.said("crowded") {
			t.Error(v.reasons)
		}
		time.Sleep(handshakeTime + time.Second)
		synctest.Wait()
		if len(v.reasons) != d.doorway.places || !v.said("cut off") || !v.said("said nothing") {
			t.Errorf("%d of %d were sent away: %q", len(v.reasons), d.doorway.places, v.reasons)
		}
		if text, err := mate.greet(visit(), 0, 0, false); err != nil || text != "come in" {
			t.Error("a worker could not get past the strangers:", err)
		}
		d.close()
		time.Sleep(10 * time.Second)
	})
}

// What was said in one handshake opens no other door.
func TestReplay(t *testing.T) {
	acceptor := &identity{rank: 0, size: 2, connections: 1, token: []byte("secret")}
	dialer := &identity{rank: 1, size: 2, connections: 1, token: []byte("secret")}
	record := handshake(t, acceptor, func(conn net.Conn) ([]byte, error) {
		tape := &recorder{Conn: conn}
		_, err := dialer.greet(tape, 0, 0, false)
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

// handshake lets a dialer meet an acceptor, and checks how it ends.
func handshake(t *testing.T, acceptor *identity, dial func(net.Conn) ([]byte, error), good bool) []byte {
	t.Helper()
	a, b := net.Pipe()
	defer a.Close()
	var wg sync.WaitGroup
	wg.Go(func() {
		defer b.Close()
		g, err := acceptor.challenge(b)
		if (err == nil) != good {
			t.Errorf("the acceptor says %v", err)
		}
		if err == nil {
			g.letIn("")
		}
	})
	said, err := dial(a)
	if (err == nil) != good {
		t.Errorf("the dialer hears %v", err)
	}
	wg.Wait()
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
		writeReply(b, verdictGo, impostor.proof("acceptor", said, make([]byte, 32)), "")
	}()
	if _, err := dialer.greet(a, 0, 0, false); err == nil || err.Error() != "it does not know the job's token" {
		t.Error(err)
	}
}

// The error of a Join that fails says who is missing, or who refused and why.
func TestJoinFails(t *testing.T) {
	noLeaks(t)
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
	_, errs[1] = Join(soon(t), cfgs[1])
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
	for want, change := range map[string]func(*Config){
		"Size is 0":                      func(c *Config) { c.Size = 0 },
		"Rank is 2, expected 0 to 1":     func(c *Config) { c.Rank = 2 },
		"Addrs has 1 addresses for 2":    func(c *Config) { c.Addrs = c.Addrs[:1] },
		"HostIDs has 1 entries for 2":    func(c *Config) { c.HostIDs = c.HostIDs[:1] },
		"ServerOf has 1 entries for 2":   func(c *Config) { c.ServerOf = []int{0} },
		"Connections is 65":              func(c *Config) { c.Connections = 65 },
		"without a token; give all work": func(c *Config) { c.Listener.Close(); c.Listener, c.Token = wide(), nil },
	} {
		c := configs(t, 2)
		c[1].Listener.Close()
		change(&c[0])
		if _, err := Join(context.Background(), c[0]); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
}

func TestLinks(t *testing.T) {
	c := Config{Rank: 1, Size: 4, HostIDs: []string{"a", "a", "b", ""}}
	check := func(want ...Link) {
		t.Helper()
		for p, l := range c.links() {
			if l != want[p] {
				t.Errorf("rank %d is %v, expected %v", p, l, want[p])
			}
		}
	}
	check(SameHost, SameProcess, BetweenServers, BetweenServers)
	c.ServerOf = []int{0, 1, 1, 0}
	check(BetweenServers, SameProcess, SameHost, BetweenServers)
}

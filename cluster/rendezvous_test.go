package cluster

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"starling/event"
	"starling/internal/testdeadline"
	"starling/wire"
)

var t0 = time.Unix(0, 0)

// gathering is a coordinator under way.
type gathering struct {
	*Coordinator
	results []Result
	err     error
	over    chan struct{}
	mu      sync.Mutex
	events  []event.Event
	refused []string
}

func gather(t *testing.T, ctx context.Context, cfg Config) *gathering {
	t.Helper()
	g := &gathering{over: make(chan struct{})}
	cfg.Job, cfg.Version, cfg.Task = "job", "v1", json.RawMessage(`{"x":1}`)
	cfg.Events = func(_ int, e event.Event) { g.mu.Lock(); g.events = append(g.events, e); g.mu.Unlock() }
	cfg.Refused = func(_, reason string) { g.mu.Lock(); g.refused = append(g.refused, reason); g.mu.Unlock() }
	if cfg.Grace == 0 {
		cfg.Grace = 200 * time.Millisecond
	}
	c, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	g.Coordinator = c
	go func() {
		g.results, g.err = c.Run(ctx, nil)
		close(g.over)
	}()
	t.Cleanup(func() {
		testdeadline.Receive(t, g.over, "the end of the run")
		c.Close()
	})
	return g
}

// turned is how many were turned away so far.
func (g *gathering) refusals() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.refused)
}

func (g *gathering) join(t *testing.T, rank int, token string) (*Member, error) {
	t.Helper()
	m, err := Join(context.Background(), JoinRequest{Coordinator: g.Addr(), Rank: rank, Version: "v1",
		Token: []byte(token)})
	if m != nil {
		m.Listener.Close()
	}
	return m, err
}

// all joins every rank at once.
func (g *gathering) all(t *testing.T, n int, token string) []*Member {
	t.Helper()
	members := make([]*Member, n)
	var wg sync.WaitGroup
	for r := range n {
		wg.Go(func() {
			m, err := g.join(t, r, token)
			if err != nil {
				t.Error(err)
				return
			}
			members[r] = m
		})
	}
	wg.Wait()
	return members
}

func TestMeetAndPart(t *testing.T) {
	blob := bytes.Repeat([]byte("weights"), 1<<20) // several pieces
	own := [][]byte{[]byte("rows"), nil, bytes.Repeat([]byte("many"), 1<<19)}
	g := gather(t, context.Background(), Config{Workers: 3, Token: []byte("secret"), Blob: blob, Own: own})
	members := g.all(t, 3, "secret")
	var wg sync.WaitGroup
	for r, m := range members {
		if m.Rank != r || len(m.Peers) != 3 || string(m.Task) != `{"x":1}` || !bytes.Equal(m.Blob, blob) ||
			!bytes.Equal(m.Own, own[r]) || m.Here() != 3 {
			t.Fatalf("%+v", m.Peers)
		}
		m.On(event.Note{Text: fmt.Sprint(r)})
		wg.Go(func() {
			if err := m.Done(json.RawMessage(fmt.Sprint(r)), []byte{byte(r)}); err != nil {
				t.Error(err)
			}
		})
	}
	testdeadline.Wait(t, &wg, "workers")
	testdeadline.Receive(t, g.over, "the end of the run")
	if g.err != nil || len(g.results) != 3 || string(g.results[2].Body) != "2" || g.results[1].Blob[0] != 1 ||
		len(g.events) != 3 {
		t.Errorf("%v, %v, %d events", g.results, g.err, len(g.events))
	}
}

// TestFailureReachesAll: the others hear of it at once, and the cause is the first.
func TestFailureReachesAll(t *testing.T) {
	g := gather(t, context.Background(), Config{Workers: 3})
	members := g.all(t, 3, "")
	members[2].Fail(errors.New("out of luck"), true)
	for _, m := range members[:2] {
		testdeadline.Receive(t, m.Ended(), "the failure of another worker")
		m.Fail(fmt.Errorf("while computing: %w", m.Err()), false)
	}
	testdeadline.Receive(t, g.over, "the end of the run")
	var d *Died
	if !errors.As(g.err, &d) || d.Rank != 2 || d.Text != "out of luck" || !d.Input {
		t.Error(g.err)
	}
}

func TestStopReachesAll(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	g := gather(t, ctx, Config{Workers: 2})
	members := g.all(t, 2, "")
	cancel()
	var wg sync.WaitGroup
	for _, m := range members {
		testdeadline.Receive(t, m.Stopped(), "the request to stop")
		wg.Go(func() { m.Done(json.RawMessage(`"stopped"`), nil) })
	}
	testdeadline.Wait(t, &wg, "workers")
	if testdeadline.Receive(t, g.over, "the end of the run"); g.err != nil || len(g.results) != 2 {
		t.Error(g.err)
	}
}

// TestLostCoordinator: workers do not outlive it.
func TestLostCoordinator(t *testing.T) {
	g := gather(t, context.Background(), Config{Workers: 2})
	members := g.all(t, 2, "")
	members[0].control.conn.Close()
	testdeadline.Receive(t, members[1].Ended(), "the loss of the coordinator")
	members[1].Fail(members[1].Err(), false)
	if testdeadline.Receive(t, g.over, "the end of the run"); g.err == nil ||
		!strings.Contains(g.err.Error(), "rank 0") {
		t.Error(g.err)
	}
	testdeadline.Receive(t, members[0].Ended(), "the loss of the coordinator")
	if members[0].Err() == nil {
		t.Error("rank 0 did not notice that its connection is gone")
	}
}

// TestUnauthenticatedPeers: all are refused, and the rendezvous goes on.
func TestUnauthenticatedPeers(t *testing.T) {
	g := gather(t, context.Background(), Config{Workers: 1, Token: []byte("secret")})
	if _, err := g.join(t, 0, "guess"); err == nil || !strings.Contains(err.Error(), "wrong token") {
		t.Error(err)
	}
	if _, err := Join(context.Background(), JoinRequest{Coordinator: g.Addr(), Version: "v2",
		Token: []byte("secret")}); err == nil || !strings.Contains(err.Error(), "build is v2") {
		t.Error(err)
	}
	if _, err := Join(context.Background(), JoinRequest{Coordinator: g.Addr(), Version: "v1", Job: "other",
		Token: []byte("secret")}); err == nil || !strings.Contains(err.Error(), "job other") {
		t.Error(err)
	}
	for what, text := range map[string]string{
		"another protocol": `{"type":"hello","body":{"protocol":99}}` + "\n",
		"no hello":         `{"type":"result"}` + "\n",
		"no JSON":          "GET / HTTP/1.1\r\n",
		"a long line":      strings.Repeat("x", maxGreeting+1),
		"bytes after it":   `{"type":"hello","bytes":9999999999}` + "\n",
		"nothing":          "",
	} {
		conn, err := net.Dial("tcp", g.Addr())
		if err != nil {
			t.Fatal(err)
		}
		io.WriteString(conn, text)
		conn.(*net.TCPConn).CloseWrite()
		answer, _ := io.ReadAll(conn)
		if conn.Close(); !bytes.Contains(answer, []byte("refused")) && len(answer) > 0 {
			t.Errorf("%s was answered %q", what, answer)
		}
	}
	for g.refusals() < 9 { // they hear of it before the coordinator is told
		time.Sleep(time.Millisecond)
	}
	m, err := g.join(t, 0, "secret")
	if err != nil {
		t.Fatal(err)
	}
	m.Done(json.RawMessage(`1`), nil)
	if testdeadline.Receive(t, g.over, "the end of the run"); g.err != nil || len(g.refused) != 9 {
		t.Errorf("%v; refused %q", g.err, g.refused)
	}
}

// TestReplay: a handshake that was overheard opens nothing.
func TestReplay(t *testing.T) {
	g := gather(t, context.Background(), Config{Workers: 1, Token: []byte("secret")})
	hello := newMessage("hello", Hello{Protocol: protocol, Version: "v1", Cookie: cookie([]byte("secret"), "worker", "")})
	said, _ := json.Marshal(hello)
	attempt := func(answer func(challenge string) string) string {
		conn, err := net.Dial("tcp", g.Addr())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		c := newControl(conn, 0, wire.Real)
		c.write(hello)
		m, err := c.expect("challenge", maxGreeting, 0, time.Now().Add(time.Minute))
		if err != nil {
			t.Fatal(err)
		}
		var challenge string
		json.Unmarshal(m.Body, &challenge)
		c.write(newMessage("proof", answer(challenge)))
		m, _, err = c.read(maxGreeting, 0, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return m.Type
	}
	var heard string
	if got := attempt(func(c string) string {
		heard = proof([]byte("other"), "worker", said,
			c)
		return heard
	}); got != "refused" {
		t.Errorf("another token: %s", got)
	}
	// What the coordinator itself says is no answer either.
	if got := attempt(func(c string) string {
		return proof([]byte("secret"), "coordinator", said,
			c)
	}); got != "refused" {
		t.Errorf("the other side's proof: %s", got)
	}
	if got := attempt(func(c string) string {
		heard = proof([]byte("secret"), "worker", said,
			c)
		return heard[:10]
	}); got != "refused" {
		t.Errorf("part of a proof: %s", got)
	}
	if got := attempt(func(string) string { return heard }); got != "refused" {
		t.Errorf("an old proof: %s", got)
	}
	m, err := g.join(t, 0, "secret")
	if err != nil {
		t.Fatal(err)
	}
	m.Done(json.RawMessage(`1`), nil)
}

func TestBeyondLoopbackNeedsAToken(t *testing.T) {
	if c, err := Listen(Config{Addr: "0.0.0.0:0", Workers: 1}); err == nil {
		c.Close()
		t.Error("listening to everybody without a token")
	}
	for addr, want := range map[string]bool{"127.0.0.1:0": true, "[::1]:7": true, "localhost:7": true,
		"0.0.0.0:7": false, ":7": false, "10.0.0.1:7": false, "x": false} {
		if Loopback(addr) != want {
			t.Errorf("%s: loopback is %v", addr, !want)
		}
	}
}

// TestLaunch: lines are whole, ends are told, nothing is left running.
func TestLaunch(t *testing.T) {
	var mu sync.Mutex
	lines, deaf := map[int][]string{}, make(chan struct{})
	cmds := []*exec.Cmd{exec.Command("sh", "-c", "printf 'one\\ntwo'"),
		exec.Command("sh", "-c", "echo last words >&2; exit 3"), exec.Command("sleep", "600"), exec.Command("sh", "-c",
			"trap '' TERM; echo deaf; while :; do sleep 0.05; done")}
	p, err := Launch(cmds, nil, func(rank int, line string) {
		mu.Lock()
		lines[rank] = append(lines[rank], line)
		mu.Unlock()
		if line == "deaf" {
			close(deaf)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	exits := map[int]Exit{}
	for range 2 {
		e := testdeadline.Receive(t, p.ends(), "an exit")
		exits[e.Rank] = e
	}
	testdeadline.Receive(t, deaf, "a line of the worker that ignores signals")
	p.Stop(time.Hour)
	exits[2] = testdeadline.Receive(t, p.ends(), "an exit") // for the grace is long, and the other is deaf
	p.Stop(0)
	exits[3] = testdeadline.Receive(t, p.ends(), "an exit")
	p.Wait()
	for rank, want := range map[int]string{0: "<nil>", 1: "ended with exit status 3",
		2: "was killed (signal 15, terminated)", 3: "was killed (signal 9, killed)"} {
		if got := fmt.Sprint(exits[rank].Err); got != want {
			t.Errorf("rank %d: %s, want %s", rank, got, want)
		}
	}
	if fmt.Sprint(lines[0]) != "[one two]" || exits[1].Last != "last words" {
		t.Error(lines, exits)
	}
	if _, err := Launch([]*exec.Cmd{exec.Command("sleep", "600"), exec.Command("/no/such/program")}, nil,
		func(int, string) {}); err == nil || !strings.Contains(err.Error(), "rank 1") {
		t.Error(err)
	}
}

// pipe is a connection whose other end has said all at once.
type pipe struct {
	net.Conn
	io.Reader
}

func (p pipe) Read(b []byte) (int, error)      { return p.Reader.Read(b) }
func (p pipe) SetReadDeadline(time.Time) error { return nil }

// FuzzControl: whatever comes over a control connection, little memory is taken
// and nothing panics.
func FuzzControl(f *testing.F) {
	for _, s := range []string{"{}\n", "x", "\n\n", `{"bytes":-1}` + "\t00000000\n"} {
		f.Add([]byte(s))
	}
	for _, m := range []message{{Type: "roster", blob: []byte("abc")}, newMessage("hello", Hello{Rank: -1}), {Type: "ping"}} {
		f.Add(written(f, m))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		c := &control{conn: pipe{Reader: bytes.NewReader(b)}}
		c.in = bufio.NewReader(c.conn)
		for {
			m, _, err := c.read(maxGreeting, 1<<30, time.Second)
			if err != nil {
				return
			}
			if int64(len(m.blob)) != m.Size {
				t.Fatalf("%d bytes of %d", len(m.blob), m.Size)
			}
		}
	})
}

// TestLostSaysWhy: a coordinator that goes while an event is on its way to it is lost as
// one that goes while it is listened to, with what the system says.
func TestLostSaysWhy(t *testing.T) {
	here, there := net.Pipe()
	there.Close()
	m := &Member{control: newControl(here, time.Minute, wire.Real), events: make(chan event.Event, 1),
		flushed: make(chan struct{}), ended: make(chan struct{})}
	go m.sendEvents()
	m.On(event.Note{Text: "here"})
	testdeadline.Receive(t, m.Ended(), "the loss of the coordinator")
	if err := m.Err(); !errors.Is(err, ErrLost) || !errors.Is(err, io.ErrClosedPipe) {
		t.Error(err)
	}
	close(m.events)
	testdeadline.Receive(t, m.flushed, "the end of sending events")
}

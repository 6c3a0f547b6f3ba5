package tcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"starling/coflow"
	"starling/internal/testdeadline"
	"starling/wire"
	"starling/wire/wiretest"
)

// part is what a worker process plays in a test: the test binary, started again.
type part struct {
	Rank, Size int
	Job        string
	Addrs      []string
	TCP        bool
	Role       string
	N, Bytes   int
	Early      int64 // the limit; 0: the default
}

const partVar = "STARLING_WIRE_PART"

func TestMain(m *testing.M) {
	if os.Getenv(partVar) != "" {
		if err := playPart(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// playPart is a worker process: it says where it listens, is told its part, plays it.
func playPart() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	var p part
	if err := json.NewDecoder(os.Stdin).Decode(&p); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	e, err := Join(ctx, p.config(l))
	if err != nil {
		return err
	}
	roles[p.Role](e, p)
	return e.Close()
}

func (p *part) config(l net.Listener) wire.Config {
	hosts := make([]string, p.Size)
	for r := range hosts {
		hosts[r] = "this host"
	}
	return wire.Config{Options: wire.Options{UnexpectedLimit: p.Early}, Rank: p.Rank, Size: p.Size, Job: p.Job, Addrs: p.Addrs,
		HostIDs: hosts, Listener: l, NoSharedMemory: p.TCP}
}

// readyKey is of the message that says that all is prepared.
var readyKey = wire.Key{Coflow: coflow.ID{Type: coflow.Bulk}}

var roles = map[string]func(e wire.Endpoint, p part){
	"stream": func(e wire.Endpoint, p part) {
		into := buffers(p.Bytes)
		e.Send(0, readyKey, wire.Control, nil)
		streamIn(e, p.N, into)
	},
	"pingpong": func(e wire.Endpoint, p part) { pingPong(e, 0, p.N, false) },
	// serve answers calls until rank 0 says that it has no more.
	"serve": func(e wire.Endpoint, p part) {
		e.Serve(wire.Service{Name: "rows", MaxResponse: 64 << 20}, func(_ context.Context, r *wire.Request) (wire.Response, error) {
			n := binary.LittleEndian.Uint32(r.Body)
			return wire.Response{Kind: wire.Feature, Body: wiretest.Payload(e.Rank(), r.From, 0, int(n))}, nil
		})
		ended := make(chan struct{}, 1)
		e.Serve(wire.Service{Name: "slow"}, func(ctx context.Context, r *wire.Request) (wire.Response, error) {
			e.Send(0, wiretest.Key(0), wire.Control, []byte("inside"))
			<-ctx.Done()
			ended <- struct{}{}
			return wire.Response{}, nil
		})
		if e.Recv(0, wiretest.Key(1), wire.Control, nil).Wait(context.Background()) == nil {
			<-ended
		}
	},
	// idle waits to be killed, with a message on its way.
	"idle": func(e wire.Endpoint, p part) {
		e.Send(0, wiretest.Key(0), wire.Control, []byte("ready"))
		e.Recv(0, wiretest.Key(1), wire.Feature, make([]byte, p.Bytes)).Wait(context.Background())
	},
	"fails": func(e wire.Endpoint, p part) {
		if e.Rank() == e.Size()-1 {
			e.Fail(errors.New("loss is not a number in epoch 3"))
			return
		}
		<-e.Done()
	},
}

// cast is a rank 0 in this process, and the processes of the others.
type cast struct {
	wire.Endpoint
	kids []*exec.Cmd
}

// start plays p in as many processes as there are ranks beyond 0.
func start(t testing.TB, p part) *cast {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p.Addrs, p.Job = []string{l.Addr().String()}, t.Name()
	c := &cast{}
	var ins []*json.Encoder
	for range p.Size - 1 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), partVar+"=1")
		cmd.Stderr = os.Stderr
		in, err1 := cmd.StdinPipe()
		out, err2 := cmd.StdoutPipe()
		if err := errors.Join(err1, err2, cmd.Start()); err != nil {
			t.Fatal(err)
		}
		c.kids = append(c.kids, cmd)
		ins = append(ins, json.NewEncoder(in))
		addr, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		p.Addrs = append(p.Addrs, strings.TrimSpace(addr))
	}
	for i, in := range ins {
		p.Rank = i + 1
		if err := in.Encode(p); err != nil {
			t.Fatal(err)
		}
	}
	p.Rank = 0
	if c.Endpoint, err = Join(wiretest.Soon(t), p.config(l)); err != nil {
		t.Fatal(err)
	}
	return c
}

// end closes rank 0 and waits for the others.
func (c *cast) end(t testing.TB) {
	t.Helper()
	c.Close()
	for r, kid := range c.kids {
		if err := kid.Wait(); err != nil {
			t.Errorf("rank %d: %v", r+1, err)
		}
	}
}

// forEachProcess is forEach for workers that are processes.
func forEachProcess(t *testing.T, test func(t *testing.T, p part)) {
	for _, tcp := range []bool{false, true} {
		t.Run(fmt.Sprintf("tcp=%v", tcp), func(t *testing.T) {
			wiretest.NoLeaks(t)
			test(t, part{TCP: tcp})
		})
	}
}

// A process that is killed is named by the others, and leaves nothing behind.
func TestKilled(t *testing.T) {
	forEachProcess(t, func(t *testing.T, p part) {
		p.Size, p.Role, p.Bytes = 3, "idle", 128<<20
		c := start(t, p)
		for r := 1; r < p.Size; r++ {
			if err := c.Recv(r, wiretest.Key(0), wire.Control, make([]byte, 5)).Wait(wiretest.Soon(t)); err != nil {
				t.Fatal(err)
			}
		}
		half := c.Send(2, wiretest.Key(1), wire.Feature, make([]byte, p.Bytes)) // it dies with this half-way, or before
		c.kids[1].Process.Kill()
		err := half.Wait(wiretest.Soon(t))
		<-c.Done()
		var lost *wire.PeerLost
		var told *wire.Failure
		switch {
		case errors.As(c.Err(), &told) && told.Rank == 2: // rank 1 noticed first
		case errors.As(c.Err(), &lost) && lost.Peer == 2 && !errors.Is(err, context.DeadlineExceeded):
		default:
			t.Errorf("%v\n%v", err, c.Err())
		}
		t.Log(c.Err())
		c.Close()
		c.kids[0].Process.Kill()
		for _, kid := range c.kids {
			kid.Wait()
		}
	})
}

// A server process is called, by many and for much; a call to a slow handler is cancelled;
// and one ends when the server is killed, with its name.
func TestServerProcess(t *testing.T) {
	forEachProcess(t, func(t *testing.T, p part) {
		p.Size, p.Role = 3, "serve"
		c := start(t, p)
		rows := func(to, n int) []byte {
			t.Helper()
			into := make([]byte, n)
			_, err := c.Call(to, wire.Call{Service: "rows", Request: binary.LittleEndian.AppendUint32(nil, uint32(n)),
				Into: func(n int) []byte { return into[:n] }}).Wait(wiretest.Soon(t))
			if err != nil {
				t.Error(err)
			}
			return into
		}
		for i, n := range []int{0, 1, 1000, 16 << 10, 1 << 20, 16 << 20} {
			if to := 1 + i%2; !bytes.Equal(rows(to, n), wiretest.Payload(to, 0, 0, n)) {
				t.Errorf("%d bytes are not what rank %d has", n, to)
			}
		}
		slow := []*wire.Reply{c.Call(1, wire.Call{Service: "slow"}), c.Call(2, wire.Call{Service: "slow"})}
		for r := range slow {
			if err := c.Recv(r+1, wiretest.Key(0), wire.Control, make([]byte, 6)).Wait(wiretest.Soon(t)); err != nil {
				t.Fatal(err)
			}
		}
		slow[0].Cancel()
		if err := c.Send(1, wiretest.Key(1), wire.Control, nil).Wait(wiretest.Soon(t)); err != nil {
			t.Fatal(err)
		}
		if err := c.kids[0].Wait(); err != nil { // when the handler's context has ended
			t.Error(err)
		}
		c.kids[1].Process.Kill()
		_, err := slow[1].Wait(wiretest.Soon(t))
		if lost, ok := errors.AsType[*wire.PeerLost](err); !ok || lost.Peer != 2 {
			t.Errorf("the server was killed: %v", err)
		}
		t.Log(err)
		c.Close()
		c.kids[1].Wait()
	})
}

// Close ends when the process dies that did not take what was sent to it.
func TestKilledWhileClosing(t *testing.T) {
	forEachProcess(t, func(t *testing.T, p part) {
		p.Size, p.Role, p.Early = 2, "idle", 1
		c := start(t, p)
		if err := c.Recv(1, wiretest.Key(0), wire.Control, make([]byte, 5)).Wait(wiretest.Soon(t)); err != nil {
			t.Fatal(err)
		}
		for step := 2; step < 8; step++ {
			c.Send(1, wiretest.Key(step), wire.Feature, make([]byte, 4<<20))
		}
		closed := make(chan error, 1)
		go func() { closed <- c.Close() }()
		c.kids[0].Process.Kill()
		c.kids[0].Wait()
		select {
		case err := <-closed:
			if err != nil {
				if _, ok := errors.AsType[*wire.PeerLost](err); !ok { // it may have died before
					t.Error(err)
				}
			}
		case <-wiretest.Soon(t).Done():
			t.Error("Close still waits for a process that is dead")
		}
	})
}

// A failure in one process is the last word of all.
func TestFailureAcrossProcesses(t *testing.T) {
	forEachProcess(t, func(t *testing.T, p part) {
		p.Size, p.Role = 4, "fails"
		c := start(t, p)
		testdeadline.Receive(t, c.Done(), "the failure of rank 3")
		if got, want := c.Err().Error(), "rank 3 failed: loss is not a number in epoch 3"; got != want {
			t.Errorf("%q, expected %q", got, want)
		}
		c.Close()
		for _, kid := range c.kids {
			kid.Wait()
		}
	})
}

// BenchmarkProcesses is BenchmarkWire and BenchmarkRoundTrip between two processes.
func BenchmarkProcesses(b *testing.B) {
	for _, transport := range []string{"shm", "tcp"} {
		for _, size := range []int{64 << 10, 1 << 20, 16 << 20} {
			b.Run(fmt.Sprintf("transport=%s/size=%d", transport, size), func(b *testing.B) {
				out := wiretest.Payload(0, 1, 0, size)
				c := start(b, part{Size: 2, TCP: transport == "tcp", Role: "stream", N: b.N, Bytes: size})
				must(c.Recv(1, readyKey, wire.Control, nil))
				b.SetBytes(int64(size))
				b.ResetTimer()
				streamOut(c, b.N, out)
				b.StopTimer()
				c.end(b)
			})
		}
		b.Run(fmt.Sprintf("transport=%s/roundtrip", transport), func(b *testing.B) {
			c := start(b, part{Size: 2, TCP: transport == "tcp", Role: "pingpong", N: b.N})
			b.ResetTimer()
			pingPong(c, 1, b.N, true)
			b.StopTimer()
			c.end(b)
		})
	}
	b.Run("transport=socket/size=1048576", func(b *testing.B) { benchSocket(b, 1<<20) })
}

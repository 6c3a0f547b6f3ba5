package run

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"
	"time"

	"starling/cluster"
	"starling/innet/udp"
	"starling/internal/testflood"
	"starling/serve"
	"starling/watch"
	"starling/wire"
	"starling/wire/paths"
	"starling/wire/tcp"
)

// listeners are all that a process of Starling opens a port with: each starts one for peers with a token, and returns
// its address. mebibytes is what docs/security.md promises.
var listeners = []struct {
	name      string
	mebibytes int64
	first     string // what a slow connection begins with
	open      func(t *testing.T, ctx context.Context) string
}{
	{"worker", 64, "SWH\x03", openWorker},
	// A record that announces as much of a ClientHello as there may be.
	{"worker with --tls", 128, "\x16\x03\x01\x40\x00\x01\x00\xff\xff", openTLS},
	{"worker with --paths", 64, "SPH\x02", openPaths},
	{"coordinator", 128, `{"type":"hello","body":"`, openCoordinator},
	{"switch", 64, "", openSwitch},
	{"serve, a long header", 256, "POST /predict HTTP/1.1\r\nX: ", openServe},
	{"serve, a long body", 256, "POST /predict HTTP/1.1\r\nHost: a\r\nContent-Length: 1048576\r\n\r\n", openServe},
	{"metrics", 16, "GET /metrics HTTP/1.1\r\nX: ", openMetrics},
}

func loopback(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

var listenersToken = []byte("a secret of this test")

func openWorker(t *testing.T, ctx context.Context) string { return join(t, ctx, nil) }

func openTLS(t *testing.T, ctx context.Context) string {
	folder := t.TempDir()
	if _, err := cluster.MakeCerts(folder, []string{"host"}, time.Hour, false); err != nil {
		t.Fatal(err)
	}
	id, err := cluster.LoadIdentity(filepath.Join(folder, "host"))
	if err != nil {
		t.Fatal(err)
	}
	return join(t, ctx, id)
}

// join is a worker that waits for another.
func join(t *testing.T, ctx context.Context, id *cluster.Identity) string {
	l := loopback(t)
	cfg := wire.Config{Options: wire.DefaultOptions(), Size: 2, Job: "job", Addrs: []string{"", ""}, Token: listenersToken,
		Listener: id.Listen(l)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		tcp.Join(ctx, cfg) // rank 1 does not come
	}()
	t.Cleanup(func() { <-done })
	return l.Addr().String()
}

func openPaths(t *testing.T, _ context.Context) string {
	f := paths.Attached([]paths.Attachment{{Prefix: netip.MustParsePrefix("127.0.0.1/32"), Rate: 125e6, Latency: 1e-4}})
	h, err := paths.NewHost(paths.NewPlan(f), loopback(t), paths.Access{Token: listenersToken}, wire.Real)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h.Addr().String()
}

func openCoordinator(t *testing.T, ctx context.Context) string {
	c, err := cluster.Listen(cluster.Config{Workers: 2, Job: "j", Version: "v", Token: listenersToken, Timeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.Run(ctx, nil)
	}()
	t.Cleanup(func() { <-done; c.Close() })
	return c.Addr()
}

func openSwitch(t *testing.T, _ context.Context) string {
	o := udp.DefaultServer
	o.Token = listenersToken
	s, err := udp.Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.Addr()
}

func openServe(t *testing.T, ctx context.Context) string {
	l, err := serve.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done, ready := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		serve.NewServer(nil, serve.DefaultLimits(), listenersToken).Run(ctx, l, func() { close(ready) })
	}()
	<-ready
	t.Cleanup(func() { <-done })
	return l.Addr().String()
}

func openMetrics(t *testing.T, _ context.Context) string {
	s, err := watch.ServeRun("127.0.0.1:0", nil, false, func() *watch.Snapshot { return &watch.Snapshot{} })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s.Addr
}

// slowSenderEnv has the address that this process sends to, in a child of TestMemoryOfListeners: so that what it takes
// itself, in memory and descriptors, is not the listener's. slowFirstEnv is what each connection begins with, in
// hexadecimal digits.
const slowSenderEnv, slowFirstEnv = "STARLING_SLOW_SENDER", "STARLING_SLOW_FIRST"

// slowConnections is how many come, and in how many steps they send: few and quickly, unless STARLING_CONNECTIONS says
// how many.
func slowConnections() *testflood.Slow {
	n, err := strconv.Atoi(os.Getenv("STARLING_CONNECTIONS"))
	if err != nil {
		return &testflood.Slow{Connections: 50, Bytes: 1 << 20, Steps: 8, Pause: 5 * time.Millisecond}
	}
	return &testflood.Slow{Connections: n, Bytes: 1 << 20, Steps: 16, Pause: 100 * time.Millisecond}
}

// TestSlowSender is the child.
func TestSlowSender(t *testing.T) {
	addr := os.Getenv(slowSenderEnv)
	if addr == "" {
		t.Skip("TestMemoryOfListeners starts it")
	}
	slow := slowConnections()
	slow.First, _ = hex.DecodeString(os.Getenv(slowFirstEnv))
	opened, sent, closed := slow.Send(addr, func() {})
	fmt.Printf("%d connections sent %.1f MiB, %d were closed\n", opened, float64(sent)/(1<<20), closed)
	if opened < slow.Connections {
		t.Errorf("%d of %d connections: see ulimit -n", opened, slow.Connections)
	}
}

// held is the memory that the process uses for its own: heap and stacks.
func held() int64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapInuse + m.StackInuse)
}

// TestMemoryOfListeners: unauthenticated connections that each send 1 MiB slowly take a bounded amount of memory of every
// listener. STARLING_CONNECTIONS=10000 makes the figures of docs/security.md.
func TestMemoryOfListeners(t *testing.T) {
	for _, l := range listeners {
		t.Run(l.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			addr := l.open(t, ctx)
			t.Cleanup(cancel) // the listener's own, which waits, is after it
			peak := peakWhile(t, func() {
				child := exec.Command(os.Args[0], "-test.run", "^TestSlowSender$")
				child.Env = append(os.Environ(), slowSenderEnv+"="+addr, slowFirstEnv+"="+hex.EncodeToString([]byte(l.first)))
				out, err := child.CombinedOutput()
				t.Logf("%s", out)
				if err != nil {
					t.Error(err)
				}
			})
			t.Logf("at most %.1f MiB held", float64(peak)/(1<<20))
			if peak > l.mebibytes<<20 {
				t.Errorf("%d bytes held, docs/security.md says at most %d MiB", peak, l.mebibytes)
			}
		})
	}
}

// peakWhile is the most memory that was held while f ran, beyond what was before.
func peakWhile(t *testing.T, f func()) (peak int64) {
	t.Helper()
	runtime.GC()
	before := held()
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
	}()
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		select {
		case <-done:
			tick.Stop()
			return peak
		case <-tick.C:
			peak = max(peak, held()-before)
		}
	}
}

package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"starling/internal/testflood"
)

// TestFlood: 5,000 silent connections per second to the coordinator, and 1,000 to a worker, while four
// workers join by hand through 20 ms of delay in each direction, and one that is killed comes back.
func TestFlood(t *testing.T) {
	t.Parallel()
	flooded(t, newScenario(t), "")
}

// TestFloodWithPaths: the same where workers connect over several paths. wire/paths tests this in a process; here it is
// for figures.
func TestFloodWithPaths(t *testing.T) {
	if os.Getenv("STARLING_FLOOD") == "" {
		t.Skip("STARLING_FLOOD=1 makes it run")
	}
	t.Parallel()
	s := newScenario(t)
	file := filepath.Join(s.dir, "paths.yaml")
	if err := os.WriteFile(file, []byte(loopbackPaths), 0o600); err != nil {
		t.Fatal(err)
	}
	flooded(t, s, " --transport tcp --paths "+file)
}

// loopbackPaths are two paths of this host.
const loopbackPaths = `hardware:
  model: custom
  nodes: [{name: cpu, capacity: 1}, {name: nic0, capacity: 1}, {name: nic1, capacity: 1}]
  links:
    - {between: [cpu, nic0], bandwidth: 1Gbps, latency: 0ns}
    - {between: [cpu, nic1], bandwidth: 1Gbps, latency: 0ns}
  network: [{node: nic0, latency: 100us}, {node: nic1, latency: 100us}]
paths:
  - {name: one, address: 127.0.0.1/32, stops: [requester.cpu, responder.nic0]}
  - {name: two, address: 127.0.0.2/32, stops: [requester.cpu, responder.nic1]}
requests:
  - {type: segment, dependency: none, paths: [{path: one, sizes: 64KiB}, {path: two, sizes: 64KiB}]}
`

func flooded(t *testing.T, s *scenario, how string) {
	s.do("starling partition graph --parts 4 --out four --quiet")
	s.do("write token " + rightToken)
	control, data := "127.0.0.1:"+s.port, "127.0.0.1:"+freePort()
	s.do("start run starling train four --epochs 1000000 --eval-every 0 --checkpoint-every 1 --no-launch --listen " +
		control + " --token-file token " + attackedModel + how)
	s.do("await run ^waiting")
	far := farAway(t, control, 20*time.Millisecond)
	floods := []*testflood.Flood{testflood.Start(control, 5000), testflood.Start(data, 1000)}
	join := func(name string, rank int, more string) {
		s.do(fmt.Sprintf("start %s starling worker --join %s --rank %d --token-file token %s", name, far, rank, more))
	}
	began := time.Now()
	for rank, more := range []string{"--listen " + data, "", "", ""} {
		join(fmt.Sprint("rank", rank), rank, more)
	}
	s.do("await run ^epoch")
	joined := time.Since(began)
	began = time.Now()
	s.run("rank3").Process.Signal(syscall.SIGKILL)
	join("again", 3, "")
	s.do("await run ^training goes on")
	n, perSecond := floods[0].Stop()
	floods[1].Stop()
	t.Logf("%d connections, %.0f per second; four workers trained after %.1f s, and again %.1f s after one was killed",
		n, perSecond, joined.Seconds(), time.Since(began).Seconds())
	s.run("run").Process.Signal(syscall.SIGINT)
	for _, name := range []string{"rank0", "rank1", "rank2", "again"} {
		if text := s.do("end " + name); !strings.HasSuffix(text, "exit 0\n") {
			t.Errorf("%s: %s", name, text)
		}
	}
	if text := s.do("end run"); !strings.HasSuffix(text, "exit 130\n") {
		t.Error(text)
	}
}

// farAway is an address that leads to another one through a delay in each direction, until the test ends:
// first opening a connection takes it, then each message.
func farAway(t testing.TB, addr string, delay time.Duration) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go connectFar(near, addr, delay)
		}
	}()
	return l.Addr().String()
}

func connectFar(near net.Conn, addr string, delay time.Duration) {
	time.Sleep(delay)
	far, err := net.Dial("tcp", addr)
	if err != nil {
		near.Close()
		return
	}
	go testflood.Forward(near, far, delay)
	testflood.Forward(far, near, delay)
}

package wire

import (
	"crypto/rand"
	"encoding/hex"
	"net"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// transport is one to be measured.
type transport struct {
	name string
	open func(t testing.TB, n int, opt Options) []Endpoint
}

var transports = []transport{
	{"inprocess", func(t testing.TB, n int, opt Options) []Endpoint { return NewGroup(n, opt) }},
	{"tcp", openTCP},
	{"classes", openClasses},
	{"shm", openMemory},
	{"rings", openRings},
	{"mpi", openFakeMPI},
}

func openTCP(t testing.TB, n int, opt Options) []Endpoint {
	return joinAll(t, n, func(c *Config) { c.Options, c.NoSharedMemory = opt, true })
}

// openClasses is TCP with a connection for each class of coflows.
func openClasses(t testing.TB, n int, opt Options) []Endpoint {
	return joinAll(t, n, func(c *Config) { c.Options, c.NoSharedMemory, c.DSCP = opt, true, true })
}

// openRings is shared memory where the kernel does not let ranks read each other's.
func openRings(t testing.TB, n int, opt Options) []Endpoint {
	return joinAll(t, n, func(c *Config) { c.Options, c.ringsOnly = opt, true })
}

// configs of n ranks on this host, each with a listener.
func configs(t testing.TB, n int) []Config {
	t.Helper()
	cfgs := make([]Config, n)
	addrs, hosts := make([]string, n), make([]string, n)
	job := make([]byte, 8)
	rand.Read(job)
	for r := range cfgs {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addrs[r], hosts[r] = l.Addr().String(), "this host"
		cfgs[r] = Config{Rank: r, Size: n, Job: hex.EncodeToString(job), Addrs: addrs, HostIDs: hosts, Listener: l,
			Token: []byte("secret")}
	}
	return cfgs
}

// joinAll joins n ranks of this process, as if they were on their own.
func joinAll(t testing.TB, n int, change func(*Config)) []Endpoint {
	t.Helper()
	cfgs := configs(t, n)
	out, errs := make([]Endpoint, n), make([]error, n)
	var wg sync.WaitGroup
	for r := range cfgs {
		change(&cfgs[r])
		wg.Go(func() { out[r], errs[r] = Join(soon(t), cfgs[r]) })
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func closeAll(eps []Endpoint) {
	var wg sync.WaitGroup
	for _, e := range eps {
		wg.Go(func() { e.Close() })
	}
	wg.Wait()
}

// noLeaks fails the test if, in the end, it has more goroutines of ours, more
// descriptors or more shared memory than before.
func noLeaks(t *testing.T) {
	t.Helper()
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		l.Close() // the runtime opens descriptors of its own the first time
	}
	before := held()
	t.Cleanup(func() {
		// A goroutine that has told everybody that it ends may still be ending.
		for end := time.Now().Add(time.Minute); ; runtime.Gosched() {
			after := held()
			if after.goroutines <= before.goroutines && after.descriptors <= before.descriptors &&
				after.mapped <= before.mapped {
				return
			}
			if time.Now().After(end) {
				t.Errorf("left behind: %+v, before: %+v\n%s", after, before, stacks())
				return
			}
		}
	})
}

type holding struct{ goroutines, descriptors, mapped int }

func held() (h holding) {
	for _, g := range strings.Split(stacks(), "\n\n") {
		if strings.Contains(g, "starling/wire.(") {
			h.goroutines++
		}
	}
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		h.descriptors = len(fds)
	}
	if maps, err := os.ReadFile("/proc/self/maps"); err == nil {
		h.mapped = strings.Count(string(maps), "memfd:") + strings.Count(string(maps), "/dev/shm/")
	}
	return h
}

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

func openMemory(t testing.TB, n int, opt Options) []Endpoint {
	return joinAll(t, n, func(c *Config) { c.Options = opt })
}

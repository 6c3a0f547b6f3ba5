package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"starling/internal/testseed"
)

// Four hosts train through a switch on a fifth, in the process and in the kernel. Between it
// and them the test itself forwards all frames, and loses, repeats and reorders the switch's
// packets: this is one of the kernels without netem. Sums are of integers, each row once, so
// that whatever is lost the result has the bits of a run with a switch of its own; that this
// is halo's, within the bound of fixed point, is what train/full/switchgnn tests sum by sum.
func TestSwitchOnHosts(t *testing.T) {
	newCluster(t, "--hosts", "4", "--switch")
	dir, seed := small(t), testseed.New(t)
	works(t, dir, "partition", "graph", "--servers", "4", "--workers", "1", "--method", "random", "--out", "parts",
		"--quiet")
	args := []string{"--layers", "2", "--hidden", "16", "--epochs", "2", "--eval-every", "0"}
	want := onOneHost(t, dir, append(args, "--strategy", "switchgnn"))
	halo := onOneHost(t, dir, append(args, "--strategy", "halo"))
	sameLosses(t, "halo", want, halo)
	r := newRelay(t)
	for _, plane := range planes {
		for i, rate := range []float64{0, 0.01, 0.1} {
			t.Run(fmt.Sprintf("%s/faults=%g", plane.name, rate), func(t *testing.T) {
				s := startSwitch(t, dir, plane.args)
				r.faults(rate, seed+uint64(i))
				got := onHosts(t, dir, append(args, "--strategy", "switchgnn", "--switch", switchAt))
				did := r.faults(0, 0)
				equalBits(t, got, want)
				if plane.ended(t, s) == 0 {
					t.Errorf("no packet was switched in the %s", plane.name)
				}
				if rate == 0 && did.lost > 0 || rate == 0.1 && (did.lost == 0 || did.repeated == 0 || did.reordered == 0) {
					t.Errorf("the relay did %+v", did)
				}
				t.Logf("%+v", did)
			})
		}
		t.Run(plane.name+"/restart", func(t *testing.T) { testSwitchRestart(t, dir, plane) })
	}
}

const switchAt = "10.77.0.254:9900"

// plane is where packets are switched.
type plane struct {
	name string
	args []string
}

var planes = []plane{{"process", nil}, {"kernel", []string{"--xdp", "eth0"}}}

// ended ends a switch, and is how many packets it has switched where it should.
func (p plane) ended(t *testing.T, s *started) int {
	t.Helper()
	s.Process.Signal(syscall.SIGTERM)
	m := s.until(t, `switched ([\d,]+) packets? \((\d+) in the kernel\)`)
	if status := s.end(); status != 0 || strings.Contains(s.stdout.String(), "by the process") {
		t.Errorf("the switch ends with %d\n%s%s", status, s.stdout.String(), s.stderr.String())
	}
	all, _ := strconv.Atoi(strings.ReplaceAll(m[1], ",", ""))
	below, _ := strconv.Atoi(m[2])
	if p.name == "kernel" {
		return below
	}
	return all - below
}

// startSwitch starts one on its host. Where the kernel takes no programs the test ends here.
func startSwitch(t *testing.T, dir string, args []string) *started {
	t.Helper()
	c := netcluster("exec", append([]string{"switch", binary, "switch", "--listen", switchAt, "--insecure", "--status", "0"},
		args...)...)
	c.Dir = dir
	s := startCommand(t, c)
	if m := s.until(t, `switching on|(cannot be switched below the socket.*)`); m[1] != "" {
		if lacking.MatchString(m[1]) {
			t.Skip(m[1])
		}
		t.Fatal(m[1])
	}
	return s
}

// onOneHost is the losses of a run on this host, onHosts those of one on the cluster.
func onOneHost(t *testing.T, dir string, args []string) []float64 {
	t.Helper()
	return losses(t, result(t, works(t, dir, append([]string{"train", "parts", "--json", "-", "--quiet"}, args...)...).stdout))
}

func onHosts(t *testing.T, dir string, args []string) []float64 {
	t.Helper()
	c := netcluster("run", append([]string{"parts", "--json", "r.json", "--quiet"}, args...)...)
	c.Dir = dir
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return losses(t, result(t, readFile(t, dir, "r.json")))
}

// equalBits: losses are the same to the last bit.
func equalBits(t *testing.T, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("losses %v, want %v", got, want)
	}
	for e := range want {
		if got[e] != want[e] {
			t.Fatalf("losses %v, want %v", got, want)
		}
	}
}

// testSwitchRestart kills the switch while a run trains, and starts another.
func testSwitchRestart(t *testing.T, dir string, p plane) {
	for epochs := 40; ; epochs *= 4 {
		args := []string{"--layers", "2", "--hidden", "16", "--epochs", fmt.Sprint(epochs), "--strategy", "switchgnn"}
		s := startSwitch(t, dir, p.args)
		events := filepath.Join(dir, "events")
		os.Remove(events)
		ended, next, another := make(chan struct{}), make(chan *started, 1), false
		go func() {
			defer close(next)
			if trains(events, ended) {
				s.Process.Kill()
				s.Wait()
				next <- startSwitch(t, dir, p.args)
			}
		}()
		got := onHosts(t, dir, append(args, "--switch", switchAt, "--events", "events"))
		close(ended)
		if after := <-next; after != nil {
			another = p.ended(t, after) > 0
		}
		if another {
			equalBits(t, got, onOneHost(t, dir, args))
			return
		}
		if epochs > 1000 { // else the run may have ended before the switch was killed
			t.Fatal("no run was long enough for its switch to be killed")
		}
	}
}

// relay forwards frames between the hosts and the switch.
type relay struct {
	devices [2]int // sockets
	mu      struct {
		sync.Mutex
		rate float64
		r    *rand.Rand
		counts
	}
}

// counts is what a relay has done to the switch's packets.
type counts struct{ packets, lost, repeated, reordered int }

// newRelay takes the switch's link out of the middle, and puts itself in between.
func newRelay(t *testing.T) *relay {
	t.Helper()
	r := &relay{}
	space := fmt.Sprintf("stt%d-switch", os.Getpid())
	for _, step := range []string{"ip link set switch0 nomaster", "ip link add relay0 type veth peer name relay1",
		"ip link set relay0 master middle", "ip link set relay0 up", "ip link set relay1 up"} {
		if out, err := exec.Command("ip", append([]string{"netns", "exec", space}, strings.Fields(step)...)...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v: %s", step, err, out)
		}
	}
	within(t, space, func() error {
		for i, name := range []string{"relay1", "switch0"} {
			fd, err := packetSocket(name)
			if err != nil {
				return err
			}
			r.devices[i] = fd
		}
		return nil
	})
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	for i := range r.devices {
		wg.Go(func() { r.forward(ctx, r.devices[i], r.devices[1-i]) })
	}
	t.Cleanup(func() {
		cancel()
		wg.Wait()
		for _, fd := range r.devices {
			unix.Close(fd)
		}
	})
	return r
}

// within does something in another network namespace. What it opens stays there.
func within(t *testing.T, space string, do func() error) {
	t.Helper()
	err := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		ns, e := os.Open("/run/netns/" + space)
		if e == nil {
			defer ns.Close()
			if e = unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); e == nil {
				e = do()
			}
		}
		err <- e
	}()
	if err := <-err; err != nil {
		t.Fatal(err)
	}
}

// packetSocket is all frames of a device, with what offloading has left to be done.
func packetSocket(name string) (fd int, err error) {
	fd, err = unix.Socket(unix.AF_PACKET, unix.SOCK_RAW, 0)
	if err != nil {
		return 0, err
	}
	ifr, err := unix.NewIfreq(name)
	if err == nil {
		err = unix.IoctlIfreq(fd, unix.SIOCGIFINDEX, ifr)
	}
	all := uint16(unix.ETH_P_ALL<<8 | unix.ETH_P_ALL>>8)
	wait := unix.NsecToTimeval((2 * time.Millisecond).Nanoseconds())
	return fd, errors.Join(err, unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_VNET_HDR, 1),
		unix.SetsockoptInt(fd, unix.SOL_PACKET, unix.PACKET_IGNORE_OUTGOING, 1),
		unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_RCVBUFFORCE, 16<<20),
		unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait),
		unix.Bind(fd, &unix.SockaddrLinklayer{Protocol: all, Ifindex: int(ifr.Uint32())}))
}

// faults is how many packets are lost, as many repeated, and as many held back, from now on;
// and what was done before.
func (r *relay) faults(rate float64, seed uint64) counts {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.mu.counts
	r.mu.rate, r.mu.r, r.mu.counts = rate, rand.New(rand.NewPCG(seed, 1)), counts{}
	return before
}

// forward copies frames one way. One that is held back follows when others have passed it,
// or nothing comes.
func (r *relay) forward(ctx context.Context, from, to int) {
	b := make([]byte, 1<<17)
	var held [][]byte
	for ctx.Err() == nil {
		n, err := unix.Read(from, b)
		if err == nil {
			for range r.times(b[:n], &held) {
				unix.Write(to, b[:n])
			}
		}
		if err != nil || len(held) > 4 {
			for _, f := range held {
				unix.Write(to, f)
			}
			held = nil
		}
	}
}

// times is how often a frame is sent on now.
func (r *relay) times(frame []byte, held *[][]byte) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !ofSwitch(frame) {
		return 1
	}
	r.mu.packets++
	switch x := r.mu.r.Float64(); {
	case x < r.mu.rate:
		r.mu.lost++
		return 0
	case x < 2*r.mu.rate:
		r.mu.repeated++
		return 2
	case x < 3*r.mu.rate:
		r.mu.reordered++
		*held = append(*held, append([]byte(nil), frame...))
		return 0
	}
	return 1
}

// ofSwitch reports whether a frame, after its ten bytes of offloading, is UDP from or to the
// switch's port.
func ofSwitch(b []byte) bool {
	const ip = 10 + 14
	if len(b) < ip+28 || number16(b[ip-2:]) != 0x0800 || b[ip] != 0x45 || b[ip+9] != unix.IPPROTO_UDP {
		return false
	}
	return number16(b[ip+20:]) == 9900 || number16(b[ip+22:]) == 9900
}

func number16(b []byte) uint16 { return uint16(b[0])<<8 | uint16(b[1]) }

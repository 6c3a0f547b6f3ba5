package cluster

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"starling/internal/testdeadline"
)

func place(t *testing.T, text, job string) Rendezvous {
	t.Helper()
	r, err := ParseRendezvous(text, job)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func publish(t *testing.T, r Rendezvous, e Entry) func() {
	t.Helper()
	withdraw, err := r.Publish(t.Context(), e, func(err error) { t.Error(err) })
	if err != nil {
		t.Error(err)
		return func() {}
	}
	withdraw = sync.OnceFunc(withdraw)
	t.Cleanup(withdraw) // nothing is renewed after the test
	return withdraw
}

// finds waits for an entry, at most so long.
func finds(t *testing.T, r Rendezvous, old Entry, within time.Duration) (Entry, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), within)
	defer cancel()
	return r.Find(ctx, old)
}

// checkPlace tests what every place must do: it keeps jobs apart, replaces what is old, and
// forgets what was withdrawn.
func checkPlace(t *testing.T, text string) {
	mine, other := place(t, text, "slurm-7.0"), place(t, text, "slurm-6.0")
	first, second := Entry{Addr: "10.0.0.1:7000", Job: "a"}, Entry{Addr: "10.0.0.2:7000", Job: "b"}
	publish(t, other, Entry{Addr: "10.0.0.9:1", Job: "old"})
	if e, err := finds(t, mine, Entry{}, 300*time.Millisecond); err == nil {
		t.Errorf("found %+v of another job", e)
	}
	late := make(chan func(), 1)
	go func() { late <- publish(t, mine, first) }()
	if e, err := finds(t, mine, Entry{}, time.Minute); err != nil || e != first {
		t.Fatalf("found %+v, %v", e, err)
	}
	if e, err := finds(t, mine, first, 300*time.Millisecond); err == nil { // a busy server may not even have answered
		t.Errorf("found %+v", e)
	}
	again := publish(t, mine, second) // a coordinator that was started again
	if e, err := finds(t, mine, first, time.Minute); err != nil || e != second {
		t.Errorf("found %+v, %v", e, err)
	}
	testdeadline.Receive(t, late, "the first publisher")() // the old one takes nothing of the new one's with it
	if e, err := finds(t, mine, Entry{}, time.Minute); err != nil || e != second {
		t.Errorf("found %+v, %v", e, err)
	}
	again()
	if e, err := finds(t, mine, Entry{}, 300*time.Millisecond); err == nil {
		t.Errorf("found %+v, which was withdrawn", e)
	}
}

func TestRendezvousInFolder(t *testing.T) {
	dir := t.TempDir()
	checkPlace(t, "file:"+dir)
	r := place(t, "file:"+dir, "")
	secret := Entry{Addr: "127.0.0.1:1", Token: "correct horse"}
	defer publish(t, r, secret)()
	files, _ := filepath.Glob(filepath.Join(dir, ".starling-default*"))
	info, err := os.Stat(files[0])
	if err != nil || len(files) != 1 || info.Mode().Perm() != 0o600 {
		t.Errorf("%v has mode %v, %v", files, info.Mode(), err)
	}
	if e, err := finds(t, r, Entry{}, time.Minute); e != secret || err != nil {
		t.Errorf("%+v, %v", e, err)
	}
	os.WriteFile(files[0], []byte("half"), 0o600)
	if e, err := finds(t, r, Entry{}, 300*time.Millisecond); err == nil ||
		!strings.Contains(err.Error(), "names no run") {
		t.Errorf("%+v, %v", e, err)
	}
	if os.Getuid() == 0 { // else files cannot be given away
		if err := os.Chown(files[0], 12345, -1); err != nil {
			t.Fatal(err)
		}
		if e, err := finds(t, r, Entry{}, 300*time.Millisecond); err == nil ||
			!strings.Contains(err.Error(), "another user") {
			t.Errorf("%+v, %v", e, err)
		}
	}
	if _, err := place(t, "file:"+filepath.Join(dir, "none"), "").Publish(t.Context(), secret, nil); err == nil {
		t.Error("published in a folder that is not there")
	}
}

// TestRendezvousOfTheDead: what a coordinator that was killed has left goes with the
// next of any job; one that lives keeps its file, and has it again if it was removed.
func TestRendezvousOfTheDead(t *testing.T) {
	dir := t.TempDir()
	left := func(name string, age time.Duration) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(`{"addr":"127.0.0.1:1"}`), 0o600); err != nil {
			t.Fatal(err)
		}
		when := time.Now().Add(-age)
		if err := os.Chtimes(path, when, when); err != nil {
			t.Fatal(err)
		}
		return path
	}
	killed, alive, other := left(".starling-17.json", time.Hour), left(".starling-18.json",
		time.Minute), left("results.json", time.Hour)
	r := place(t, "file:"+dir, "19").(sharedFile)
	mine := Entry{Addr: "127.0.0.1:2"}
	withdraw := publish(t, r, mine)
	for path, want := range map[string]bool{killed: false, alive: true, other: true, r.path: true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s: %v", path, err)
		}
	}
	withdraw()
	synctest.Test(t, func(t *testing.T) {
		withdraw := publish(t, r, mine)
		os.Remove(r.path)
		time.Sleep(touched + time.Second)
		if e, err := r.read(); e != mine || err != nil {
			t.Errorf("it was not written again: %+v, %v", e, err)
		}
		theirs := Entry{Addr: "127.0.0.1:3"}
		r.write(theirs)
		time.Sleep(touched + time.Second)
		withdraw()
		if e, err := r.read(); e != theirs || err != nil {
			t.Errorf("that of another was touched: %+v, %v", e, err)
		}
	})
}

func TestRendezvousAtAddress(t *testing.T) {
	r := place(t, "tcp:alpha:7000", "job")
	if e, err := finds(t, r, Entry{}, time.Minute); err != nil || e.Addr != "alpha:7000" {
		t.Errorf("%+v, %v", e, err)
	}
	if _, err := finds(t, r, Entry{Addr: "alpha:7000"}, 10*time.Millisecond); err == nil {
		t.Error("there is another")
	}
	for _, bad := range []string{"", "alpha:7000", "tcp:alpha", "tcp:alpha:0", "file:", "etcd:", "etcd:alpha:2379",
		"etcd:ftp://a", "etcd:http://", "etcd:http://a?x=1", "zk:a"} {
		if r, err := ParseRendezvous(bad, ""); err == nil {
			t.Errorf("%q is %v", bad, r)
		}
	}
}

// ports counts the ports that were given to tests, from a start that differs between processes.
var ports atomic.Uint32

func init() { ports.Store(uint32(os.Getpid()) * 89) }

// freePort is a port without a listener. It is below the range from which the system
// assigns ports, so that no other process is given it.
func freePort() int {
	for {
		port := 10000 + int(ports.Add(1)%20000)
		if l, err := net.Listen("tcp", fmt.Sprint("127.0.0.1:", port)); err == nil {
			l.Close()
			return port
		}
	}
}

// startEtcd runs a real server, where one is installed.
func startEtcd(t *testing.T) (url string) {
	t.Helper()
	path, err := exec.LookPath("etcd")
	if err != nil {
		t.Skip("etcd is not installed: no rendezvous through it was tested (Debian's package is etcd-server)")
	}
	url, peer := fmt.Sprintf("http://127.0.0.1:%d", freePort()), fmt.Sprintf("http://127.0.0.1:%d", freePort())
	dir, err := os.MkdirTemp("/dev/shm", "etcd-") // a server that waits for a busy disk does not answer meanwhile
	if err != nil {
		dir = t.TempDir()
	}
	cmd := exec.Command(path, "--data-dir", dir, "--listen-client-urls", url, "--advertise-client-urls", url,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
		"--initial-cluster", "default="+peer, "--log-level", "error")
	p, err := Launch([]*exec.Cmd{cmd}, nil, func(_ int, line string) { t.Log(line) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Stop(0)
		p.Wait() // it writes, and its last lines are logged, until then
		os.RemoveAll(dir)
	})
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get(url + "/health")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return url
			}
		}
		if time.Now().After(end) {
			t.Fatal("etcd did not start: ", err)
		}
	}
}

func TestRendezvousInEtcd(t *testing.T) {
	url := startEtcd(t)
	checkPlace(t, "etcd:"+url+"/here")
	checkPlace(t, "etcd:http://127.0.0.1:1,"+url+"/there") // the first server is down
	r := place(t, "etcd:"+url, "").(*etcd)
	r.lease = 2
	// A coordinator that dies does not renew its lease.
	lease, err := r.put(t.Context(), Entry{Addr: "10.0.0.1:1", Token: "anybody's"})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := finds(t, r, Entry{}, time.Minute); err != nil || e != (Entry{Addr: "10.0.0.1:1"}) {
		t.Errorf("%+v, %v", e, err)
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(200 * time.Millisecond) {
		if _, err := finds(t, r, Entry{}, time.Second); err != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the entry of a dead coordinator is still there")
		}
	}
	// One that lives writes its entry again when it was lost, and takes it away in the end.
	alive, end := context.WithCancel(t.Context())
	over := make(chan struct{})
	go func() {
		// a busy server may be late once
		r.renew(alive, Entry{Addr: "10.0.0.1:2"}, lease, func(err error) { t.Log(err) })
		close(over)
	}()
	if e, err := finds(t, r, Entry{}, time.Minute); err != nil || e.Addr != "10.0.0.1:2" {
		t.Errorf("%+v, %v", e, err)
	}
	end()
	testdeadline.Receive(t, over, "the end of renewing")
	if e, err := finds(t, r, Entry{}, 300*time.Millisecond); err == nil {
		t.Errorf("found %+v, which was withdrawn", e)
	}
	if _, err := finds(t, place(t, "etcd:http://127.0.0.1:1", ""), Entry{}, 50*time.Millisecond); err == nil {
		t.Error("an etcd that is not there")
	}
}

func FuzzParseRendezvous(f *testing.F) {
	for _, text := range []string{"tcp:a:1", "file:x", "etcd:http://u:p@a:1,https://b/c", "etcd:http://[::1]:2379"} {
		f.Add(text, "slurm-1.0")
	}
	f.Fuzz(func(t *testing.T, text, job string) {
		r, err := ParseRendezvous(text, job)
		if err == nil && r.String() == "" {
			t.Errorf("%q is nowhere", text)
		}
		// Whatever the job is called, its file stays in the folder.
		if file, ok := r.(sharedFile); ok && err == nil {
			if want, _ := filepath.Abs(strings.TrimPrefix(text, "file:")); filepath.Dir(file.path) != want {
				t.Errorf("%q, %q: %s", text, job, file.path)
			}
		}
	})
}

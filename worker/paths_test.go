package worker

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"starling/cluster"
	"starling/spec"
	"starling/wire"
	"starling/wire/paths"
	"starling/wire/tcp"
)

// twoLoopbacks describes two paths of this host.
func twoLoopbacks() *paths.File {
	return paths.Attached([]paths.Attachment{{Prefix: netip.MustParsePrefix("127.0.0.1/32"), Rate: 125e6, Latency: 1e-4},
		{Prefix: netip.MustParsePrefix("127.0.0.2/32"), Rate: 125e6, Latency: 1e-4}})
}

// exchanged is how many bytes of segments a rank has sent by its paths, when 4 MiB were exchanged with the other.
func exchanged(t *testing.T, id *cluster.Identity, sameHost bool) (sum [2]int) {
	t.Helper()
	folder := t.TempDir()
	var ends [2]wire.Endpoint
	var listeners [2]net.Listener
	var addrs, hosts []string
	for i := range listeners {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		listeners[i], addrs = l, append(addrs, l.Addr().String())
		hosts = append(hosts, fmt.Sprint("host", i))
		if sameHost {
			hosts[i] = "host"
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	joined := make(chan error)
	for i := range ends {
		file := filepath.Join(folder, fmt.Sprint(i, ".yaml"))
		text := "record: " + filepath.Join(folder, fmt.Sprint("record", i)) + "\n" + twoLoopbacks().YAML()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		w := &Spec{id: id}
		cfg := wire.Config{Options: wire.DefaultOptions(), Rank: i, Size: 2, Job: t.Name(), Addrs: addrs, HostIDs: hosts}
		if err := w.severalPaths(&cfg, listeners[i], file, nil); err != nil {
			t.Skip("no second loopback address:", err)
		}
		go func() {
			var err error
			ends[i], err = tcp.Join(ctx, cfg)
			joined <- err
		}()
	}
	for range ends {
		if err := <-joined; err != nil {
			t.Fatal(err)
		}
	}
	body := bytes.Repeat([]byte("starling"), 1<<19)
	var waits []*wire.Pending
	var got [2][]byte
	for i, e := range ends {
		got[i] = make([]byte, len(body))
		waits = append(waits, e.Recv(1-i, wire.Key{}, wire.Feature, got[i]), e.Send(1-i, wire.Key{}, wire.Feature, body))
	}
	for _, w := range waits {
		if err := w.Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	var closed sync.WaitGroup
	for _, e := range ends {
		closed.Go(func() { e.Close() })
	}
	closed.Wait()
	for i := range sum {
		if !bytes.Equal(got[i], body) {
			t.Errorf("rank %d received something else", i)
		}
		sum[i] = recordedBytes(t, filepath.Join(folder, fmt.Sprintf("record%d.%d", i, os.Getpid())))
	}
	return sum
}

// recordedBytes adds up the segments of a record.
func recordedBytes(t *testing.T, file string) (sum int) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	trace, err := paths.ReadTrace(bufio.NewReader(f), paths.Segments(paths.NewPlan(twoLoopbacks())))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range trace {
		sum += a.Bytes
	}
	return sum
}

// TestPathsWithTLS: segments of several paths carry TLS, and are recorded.
func TestPathsWithTLS(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	if _, err := cluster.MakeCerts(folder, []string{"host"}, time.Hour, false); err != nil {
		t.Fatal(err)
	}
	id, err := spec.Load("--tls", filepath.Join(folder, "host"), cluster.LoadIdentity)
	if err != nil {
		t.Fatal(err)
	}
	for rank, n := range exchanged(t, id, false) {
		if n < 4<<20 {
			t.Errorf("rank %d has sent %d bytes by its paths, want more than the message of 4 MiB", rank, n)
		}
	}
}

// TestPathsInsideOneHost: workers of one host take shared memory, of all paths the quickest.
func TestPathsInsideOneHost(t *testing.T) {
	t.Parallel()
	for rank, n := range exchanged(t, nil, true) {
		if n > 1<<20 {
			t.Errorf("rank %d has sent %d bytes by its sockets, want none of the 4 MiB", rank, n)
		}
	}
}

// TestPathsRefuseMPI: MPI carries a whole run.
func TestPathsRefuseMPI(t *testing.T) {
	t.Parallel()
	s := spec.Default()
	s.Cluster.Transport, s.Cluster.Paths = "mpi", "auto"
	err := s.Validate()
	if err == nil || !strings.Contains(err.Error(), "--paths") || !strings.Contains(err.Error(), "mpi") {
		t.Errorf("%v", err)
	}
}

package udp

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"starling/innet"
	"starling/internal/testdeadline"
	"starling/internal/testseed"
)

// job is hosts of a random graph, over sockets.
type testJob struct {
	graph   *innet.Graph
	plan    *innet.Plan
	clients []*Client
	rows    [][]float64
	sums    [][]float64
	width   int
	host    innet.HostOptions
}

func listen(t testing.TB, change func(o *ServerOptions)) *Server {
	t.Helper()
	o := DefaultServer
	if change != nil {
		change(&o)
	}
	s, err := Listen(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func newJob(t testing.TB, r *rand.Rand, hosts, vertices, edges, width, limit int) *testJob {
	t.Helper()
	j := &testJob{graph: &innet.Graph{}, width: width, host: DefaultHost}
	for v := range vertices {
		j.graph.Host = append(j.graph.Host, uint16(v%hosts))
		row := make([]float64, width)
		for c := range row {
			row[c] = r.NormFloat64()
		}
		j.rows = append(j.rows, row)
	}
	for range edges {
		if u, v := uint32(r.IntN(vertices)), uint32(r.IntN(vertices)); j.graph.Host[u] != j.graph.Host[v] {
			j.graph.Src, j.graph.Dst = append(j.graph.Src, u), append(j.graph.Dst, v)
		}
	}
	blocks, err := innet.Blocks(j.graph, innet.Slots(limit), nil)
	if err != nil {
		t.Fatal(err)
	}
	j.plan = &innet.Plan{Blocks: blocks, Hosts: hosts}
	return j
}

// jobs numbers the jobs of this process.
var jobs atomic.Uint64

// connect joins all hosts to a switch.
func (j *testJob) connect(t testing.TB, addr string, units int, token []byte) {
	t.Helper()
	ctx := context.Background()
	job := jobs.Add(1)
	for k := range j.plan.Hosts {
		o := ClientOptions{Addr: addr, Token: token, Job: job, Rank: k, Hosts: j.plan.Hosts, Units: units,
			Timeout: 20 * time.Second, Host: j.host}
		c, err := Connect(ctx, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		j.clients = append(j.clients, c)
	}
	j.each(t, func(k int) error { return j.clients[k].Install(ctx, j.plan) })
}

// each runs f for all hosts at a time.
func (j *testJob) each(t testing.TB, f func(k int) error) {
	t.Helper()
	errs := make([]error, j.plan.Hosts)
	var wg sync.WaitGroup
	for k := range errs {
		wg.Go(func() { errs[k] = f(k) })
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// exchange is one, on all hosts.
func (j *testJob) exchange(t testing.TB) {
	t.Helper()
	j.sums = nil
	for range j.rows {
		j.sums = append(j.sums, make([]float64, j.width))
	}
	most := 0.0
	for _, row := range j.rows {
		for _, x := range row {
			most = max(most, math.Abs(x))
		}
	}
	j.each(t, func(k int) error {
		return j.clients[k].Start(&innet.Exchange{Hi: len(j.plan.Blocks), Width: j.width, Most: most,
			Row: func(v uint32, lo, hi int) []float64 { return j.rows[v][lo:hi] },
			Add: func(v uint32, lo int, sum []float64) {
				for c, x := range sum {
					j.sums[v][lo+c] += x
				}
			}})(context.Background())
	})
}

func (j *testJob) check(t testing.TB) {
	t.Helper()
	want, counts := make([][]float64, len(j.rows)), make([]int, len(j.rows))
	for v := range want {
		want[v] = make([]float64, j.width)
	}
	for i, u := range j.graph.Src {
		counts[j.graph.Dst[i]]++
		for c, x := range j.rows[u] {
			want[j.graph.Dst[i]][c] += x
		}
	}
	for v := range want {
		for c, x := range want[v] {
			if bound := innet.Bound(counts[v], j.clients[0].Shift()) + 1e-12; math.Abs(j.sums[v][c]-x) > bound {
				t.Fatalf("vertex %d, column %d: %g, want %g within %g", v, c, j.sums[v][c], x, bound)
			}
		}
	}
}

// TestExchange: sums are right through a real switch, with several blocks, with a token, and
// whatever is lost or repeated; without faults every row leaves once.
func TestExchange(t *testing.T) {
	t.Parallel()
	testdeadline.Do(t, time.Minute, "exchanges", func() { testExchange(t) })
}

func testExchange(t *testing.T) {
	r := testseed.Rand(t)
	for _, c := range []struct {
		loss   float64
		blocks int
		token  []byte
	}{{0, 1, nil}, {0, 3, []byte("secret")}, {0.01, 1, nil}, {0.1, 2, []byte("secret")}} {
		t.Run(fmt.Sprintf("loss=%g/blocks=%d", c.loss, c.blocks), func(t *testing.T) {
			faults, mu := rand.New(rand.NewPCG(r.Uint64(), 2)), sync.Mutex{}
			s := listen(t, func(o *ServerOptions) {
				o.Token = c.token
				if c.loss > 0 {
					o.Fault = func() int {
						mu.Lock()
						defer mu.Unlock()
						switch x := faults.Float64(); {
						case x < c.loss:
							return 0
						case x < 2*c.loss:
							return 2
						}
						return 1
					}
				}
			})
			const vertices = 200
			j := newJob(t, r, 4, vertices, 600, 70, (vertices+c.blocks-1)/c.blocks)
			if c.loss > 0 {
				j.host.Timeout = innet.DefaultHost.Timeout // so that lost sums are pulled soon
			}
			j.connect(t, s.Addr(), 1, c.token)
			for range 3 {
				j.exchange(t)
				j.check(t)
			}
			for k, client := range j.clients {
				n, want := client.Counts(), int64(j.plan.RowsFrom(k, 0, len(j.plan.Blocks)))
				if n.Rows != 3*3*want || n.RowBytes != 3*want*int64(4*j.width) {
					t.Errorf("host %d sent %d rows of %d bytes, has %d", k, n.Rows, n.RowBytes, want)
				}
			}
			t.Logf("%+v", j.clients[0].Counts())
		})
	}
}

// TestRestart: a switch that is ended and started again costs nothing but time.
func TestRestart(t *testing.T) {
	testdeadline.Do(t, time.Minute, "exchanges", func() { testRestart(t) })
}

func testRestart(t *testing.T) {
	r := testseed.Rand(t)
	s := listen(t, nil)
	addr := s.Addr()
	j := newJob(t, r, 3, 1200, 6000, 96, 400)
	j.connect(t, addr, 1, nil)
	j.exchange(t)
	before := s.Stats().Packets
	done := make(chan struct{})
	go func() {
		defer close(done)
		for s.Stats().Packets < before+before/4 {
			time.Sleep(time.Millisecond) // until the exchange is under way
		}
		s.Close()
		listen(t, func(o *ServerOptions) { o.Listen = addr })
	}()
	for range 2 {
		j.exchange(t)
		j.check(t)
	}
	<-done
}

// TestRefusals: without the token, with too large a table, at an address without a switch.
func TestRefusals(t *testing.T) {
	r := testseed.Rand(t)
	j := newJob(t, r, 2, 50, 100, 4, 50)
	s := listen(t, func(o *ServerOptions) { o.Token, o.Memory = []byte("right"), 1000 })
	o := ClientOptions{Addr: s.Addr(), Token: []byte("wrong"), Job: 1, Hosts: 2, Units: 1, Timeout: time.Second}
	if _, err := Connect(context.Background(), o); !errors.Is(err, ErrToken) {
		t.Errorf("another token: %v", err)
	}
	o.Token = []byte("right")
	c, err := Connect(context.Background(), o)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Install(context.Background(), j.plan); err == nil || !strings.Contains(err.Error(), "bytes of registers") {
		t.Errorf("too large a table: %v", err)
	}
	c.conn.Close()
	s.Close()
	if n := s.Stats(); n.Hosts+n.Jobs != 0 || n.Registers != 0 {
		t.Errorf("left behind: %+v", n)
	}
	if _, err := Connect(context.Background(), o); err == nil {
		t.Error("connected to nothing")
	}
}

func FuzzTable(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	f.Add(encodeTable(newJob(f, r, 2, 10, 30, 4, 10).plan.Table(1, 1)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if table, err := decodeTable(b, 1, 1, 2); err == nil && table.Check(1<<20) == nil {
			innet.NewSwitch(table)
		}
	})
}

// BenchmarkExchange is hosts and a switch in one process: rows of 1 KiB, each for 4
// aggregators, over loopback.
func BenchmarkExchange(b *testing.B) {
	for _, c := range []struct{ hosts, units int }{{2, 1}, {2, 8}, {4, 8}} {
		b.Run(fmt.Sprintf("hosts=%d/bytes=%d", c.hosts, c.units*innet.UnitBytes), func(b *testing.B) {
			const vertices = 8192
			s := listen(b, nil)
			j := newJob(b, rand.New(rand.NewPCG(1, 1)), c.hosts, vertices, 4*vertices, c.units*innet.UnitLanes, vertices)
			j.connect(b, s.Addr(), c.units, nil)
			j.exchange(b)
			before := s.Stats()
			b.ResetTimer()
			for range b.N {
				j.exchange(b)
			}
			b.StopTimer()
			now := s.Stats()
			b.ReportMetric(float64(now.Packets-before.Packets+now.Sent-before.Sent)/b.Elapsed().Seconds(), "packets/s")
			b.ReportMetric(float64(now.Bytes-before.Bytes)/b.Elapsed().Seconds()/1e9, "GB/s-in")
			n := j.clients[0].Counts()
			b.ReportMetric(float64(n.Pulls)/float64(b.N+1), "pulls/op")
		})
	}
}

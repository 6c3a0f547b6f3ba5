package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"starling/event"
)

// testSession is a session without sockets, and a record of what it wants done.
type testSession struct {
	*session
	log []string
}

func newTestSession(size int, launched bool) *testSession {
	return &testSession{session: &session{size: size, job: "j", version: "v", launched: launched,
		task: []byte(`{}`), exits: make([]*exit, size)}}
}

// drain takes note of what is to be done.
func (m *testSession) drain() {
	for _, a := range m.out {
		if a.event != nil {
			m.log = append(m.log, fmt.Sprintf("event of %d", a.rank))
			continue
		}
		m.log = append(m.log, fmt.Sprintf("%s to %d", a.message.Type, a.conn))
	}
	m.out = nil
}

// come brings ranks, each over the connection of ten times its rank plus one.
func (m *testSession) join(ranks ...int) {
	for i, r := range ranks {
		conn := 10*r + 1
		if r < 0 {
			conn = 1000 + i
		}
		if why := m.arrive(conn, Hello{Version: "v", Job: "j", Rank: r, Name: "h", Host: fmt.Sprint("host", r),
			PID: 100 + r}); why != "" {
			m.log = append(m.log, "refused: "+why)
		}
		m.begin()
	}
	m.drain()
}

func (m *testSession) count(line string) (n int) {
	for _, l := range m.log {
		if l == line {
			n++
		}
	}
	return n
}

// TestRanksAreAssigned: a worker that takes any rank gets one that no other asked for.
func TestRanksAreAssigned(t *testing.T) {
	m := newTestSession(4, false)
	m.join(-1, 2, -1, 0)
	if len(m.ranks) != 4 || m.ranks[1].conn != 1000 || m.ranks[3].conn != 1002 || m.ranks[2].conn != 21 {
		t.Fatalf("%v", m.log)
	}
	for _, p := range m.peers() {
		if p.Server != p.Rank && p.Rank != 3 { // ranks 1 and 3 are on one host
			t.Errorf("rank %d is on server %d", p.Rank, p.Server)
		}
	}
	m.servers = 2
	if p := m.peers(); p[0].Server != 0 || p[1].Server != 0 || p[2].Server != 1 || p[3].Server != 1 {
		t.Errorf("two servers: %v", p)
	}
}

// TestWhoDoesNotBelongHere: every reason, and none of them disturbs the others.
func TestWhoDoesNotBelongHere(t *testing.T) {
	m := newTestSession(2, false)
	m.join(1)
	for want, h := range map[string]Hello{
		"build":                {Version: "w", Rank: 0},
		"job":                  {Version: "v", Job: "k", Rank: 0},
		"ranks 0 to 1":         {Version: "v", Rank: 2},
		"rank 1 has joined":    {Version: "v", Rank: 1},
		"it wants rank -2":     {Version: "v", Rank: -2},
		"its build is , this ": {Rank: 0},
	} {
		if why := m.arrive(99, h); !strings.Contains(why, want) {
			t.Errorf("%+v: refused with %q, want %q", h, why, want)
		}
	}
	m.join(0)
	if m.ranks == nil || m.count("roster to 1") != 1 || m.count("roster to 11") != 1 {
		t.Error(m.log)
	}
	if why := m.arrive(98, Hello{Version: "v", Rank: -1}); !strings.Contains(why, "already") {
		t.Error(why)
	}
}

// TestTooEarly: whatever a worker says before it has a rank, the others go on joining.
func TestTooEarly(t *testing.T) {
	m := newTestSession(2, false)
	m.join(-1)
	b, err := event.Encode(event.Note{Text: "x"}, t0)
	if err != nil {
		t.Fatal(err)
	}
	for _, early := range []message{{Type: "event", Body: b}, {Type: "state"}, {Type: "ping", Body: []byte(`{"rank":0}`)},
		{Type: "result"}, {Type: "failure"}} {
		if m.received(1000, early); len(m.out) > 0 {
			t.Errorf("%s: %+v", early.Type, m.out)
		}
		m.out = nil
	}
	m.join(1)
	if m.ending() || m.count("roster to 1000") != 1 {
		t.Error(m.log)
	}
}

func TestAllIsWell(t *testing.T) {
	m := newTestSession(3, true)
	m.join(0, 1, 2)
	b, err := event.Encode(event.Note{Text: "x"}, t0)
	if err != nil {
		t.Fatal(err)
	}
	m.received(1, message{Type: "event", Body: b})
	for r := range 3 {
		if m.over() || m.ending() {
			t.Fatal("over too early")
		}
		m.received(10*r+1, message{Type: "result", Body: []byte(fmt.Sprint(r))})
	}
	m.drain()
	if m.count("bye to 11") != 1 || m.count("event of 0") != 1 {
		t.Error(m.log)
	}
	for r := range 3 {
		m.disconnected(10*r+1, errors.New("EOF"))
		m.exited(r, 1, "h", nil, "")
	}
	all, err := m.outcome()
	if !m.over() || err != nil || len(all) != 3 || string(all[2].Body) != "2" {
		t.Errorf("%v, %v", all, err)
	}
}

// TestRootCause: in whatever order the news comes, the same worker is named.
func TestRootCause(t *testing.T) {
	echo := message{Type: "failure", Body: []byte(`{"text":"lost rank 1","echo":true}`)}
	own := message{Type: "failure", Body: []byte(`{"text":"disk full","input":true}`)}
	killed := errors.New("was killed (signal 9, killed)")
	type news = func(m *testSession)
	rank0 := []news{func(m *testSession) { m.received(1, echo) },
		func(m *testSession) { m.disconnected(1, errors.New("EOF")) },
		func(m *testSession) { m.exited(0, 100, "h", errors.New("ended with exit status 1"), "x") }}
	dies := []news{func(m *testSession) { m.disconnected(11, errors.New("EOF")) },
		func(m *testSession) { m.exited(1, 101, "h", killed, "") }}
	says := []news{func(m *testSession) { m.received(11, own) },
		func(m *testSession) { m.disconnected(11, errors.New("EOF")) },
		func(m *testSession) { m.exited(1, 101, "h", errors.New("ended with exit status 2"), "y") }}
	for _, c := range []struct {
		rank1 []news
		want  string
	}{{dies, "rank 1 (pid 101 on h): its process was killed"}, {says, "rank 1 (pid 101 on h): disk full"}} {
		for order := range merges(len(rank0), len(c.rank1)) {
			m := newTestSession(2, true)
			m.join(0, 1)
			a, b := rank0, c.rank1
			for _, first := range order {
				if m.over() {
					t.Fatalf("%s: over before all have gone", c.want)
				}
				if first {
					a[0](m)
					a = a[1:]
				} else {
					b[0](m)
					b = b[1:]
				}
			}
			m.drain()
			_, err := m.outcome()
			if !m.over() || err == nil || !strings.HasPrefix(err.Error(), c.want) ||
				m.count("abort to 1")+m.count("abort to 11") == 0 {
				t.Errorf("order %v: %v, %v; want %s", order, err, m.log, c.want)
			}
		}
	}
}

// merges yields every way to put a things of one kind and b of another in a row.
func merges(a, b int) func(func([]bool) bool) {
	return func(yield func([]bool) bool) {
		for bits := range 1 << (a + b) {
			var order []bool
			n := 0
			for i := range a + b {
				order = append(order, bits>>i&1 == 1)
				n += bits >> i & 1
			}
			if n == a && !yield(order) {
				return
			}
		}
	}
}

// TestWhoWeKillIsNotToBlame: a process that had to be ended follows from the failure.
func TestWhoWeKillIsNotToBlame(t *testing.T) {
	m := newTestSession(2, true)
	m.join(0, 1)
	m.received(1, message{Type: "failure", Body: []byte(`{"text":"waited 60s for rank 1","echo":true}`)})
	m.killed = true
	m.exited(1, 101, "h", errors.New("was killed"), "")
	if _, err := m.outcome(); !strings.Contains(err.Error(), "waited 60s") {
		t.Error(err)
	}
}

// TestVanished: of a worker on another host only its connection is known.
func TestVanished(t *testing.T) {
	m := newTestSession(2, false)
	m.join(0)
	m.disconnected(1, errors.New("EOF"))
	m.join(0, 1) // it may come again before the job begins
	m.disconnected(11, errors.New("its connection ended"))
	m.received(1, message{Type: "failure", Body: []byte(`{"text":"lost rank 1","echo":true}`)})
	m.disconnected(1, errors.New("EOF"))
	if _, err := m.outcome(); !m.over() || !strings.Contains(err.Error(), "rank 1 (pid 101 on h): it disconnected") {
		t.Error(err)
	}
}

// TestOwnMistake: what a worker has done wrong it would do again, so no worker is asked to come
// again, and who does hears why.
func TestOwnMistake(t *testing.T) {
	m := newTestSession(2, false)
	m.again = true
	m.join(0, 1)
	m.received(11, message{Type: "failure", Body: []byte(`{"text":"disk full","input":true}`)})
	last := m.out[len(m.out)-1].message
	if got := abortedBy(last); last.Type != "abort" || got.Again || got.Why != "rank 1 (pid 101 on h): disk full" {
		t.Errorf("%s %s", last.Type, last.Body)
	}
	m = newTestSession(2, false)
	m.cause, m.ended = errAborted, errors.New("disk full")
	if reason := m.arrive(1, Hello{Version: m.version}); reason != "the job has ended: disk full" {
		t.Error(reason)
	}
}

func TestMissing(t *testing.T) {
	m := newTestSession(5, false)
	m.join(3, -1)
	for range 3 { // it tries again, and is named once
		m.arrive(7, Hello{Version: "old", Rank: 1, Name: "h"})
	}
	m.late("1m0s")
	_, err := m.outcome()
	var missing *Missing
	if !errors.As(err, &missing) || fmt.Sprint(missing.Ranks) != "[1 2 4]" ||
		strings.Count(err.Error(), "build is old") != 1 {
		t.Error(err)
	}
	if m.drain(); m.count("abort to 31") != 1 {
		t.Error(m.log)
	}
}

func TestInterrupt(t *testing.T) {
	m := newTestSession(1, false)
	m.join(0)
	m.interrupt()
	if m.drain(); m.count("stop to 1") != 1 || m.ending() {
		t.Error(m.log)
	}
	m = newTestSession(2, false)
	m.join(0)
	m.interrupt()
	m.disconnected(1, errors.New("EOF"))
	if _, err := m.outcome(); !m.over() || err == nil {
		t.Error(err)
	}
}

// TestLostAfterItsLastWord: a survivor whose process ends before it comes again is
// lost too, and a session does not wait for processes that ended before it began.
func TestLostAfterItsLastWord(t *testing.T) {
	m := newTestSession(3, true)
	m.again = true
	m.join(0, 1, 2)
	m.exited(2, 102, "h", errors.New("was killed"), "")
	for r := range 2 {
		m.received(10*r+1, message{Type: "failure", Body: []byte(`{"text":"lost rank 2","echo":true}`)})
		m.disconnected(10*r+1, errors.New("EOF"))
	}
	if m.over() == (len(m.joined) == 3 && !m.joined[2].left) {
		t.Error("over before the connection of rank 2 has ended")
	}
	m.disconnected(21, errors.New("EOF"))
	m.exited(1, 101, "h", errors.New("ended with exit status 1"), "")
	if got := fmt.Sprint(m.lost()); !m.over() || got != "[1 2]" {
		t.Errorf("lost %s", got)
	}
}

// TestDeathBeforeJoining: while workers join, the process of one dies that has not joined. The job
// starts again at once, with a new process for that one only: neither those that wait, nor those
// that still start, are lost or ended.
func TestDeathBeforeJoining(t *testing.T) {
	m := newTestSession(3, true)
	m.again = true
	m.join(0)
	m.exited(2, 102, "h", errors.New("was killed"), "")
	if !m.ending() || m.over() {
		t.Fatal("it was not noticed, or the worker that waits was not")
	}
	m.disconnected(1, errors.New("its connection ended"))
	if _, err := m.outcome(); !m.over() || !slices.Equal(m.lost(), []int{2}) ||
		err == nil || !strings.Contains(err.Error(), "rank 2") {
		t.Errorf("over %v, lost %v, because %v", m.over(), m.lost(), err)
	}
	for _, a := range m.out {
		if a.kill {
			t.Errorf("rank %d was killed", a.rank)
		}
	}
}

// TestDeathBeforeJoiningStops: with --on-failure stop, processes that have not joined are ended at
// once too.
func TestDeathBeforeJoiningStops(t *testing.T) {
	m := newTestSession(3, true)
	m.join(0)
	m.exited(2, 102, "h", errors.New("was killed"), "")
	i := slices.IndexFunc(m.out, func(a act) bool { return a.kill })
	if i < 0 || m.out[i].rank != 1 {
		t.Fatalf("rank 1 still starts: %+v", m.out)
	}
	m.exited(1, 101, "h", errors.New("was killed"), "")
	m.exited(0, 100, "h", nil, "")
	m.disconnected(1, errors.New("its connection ended"))
	if _, err := m.outcome(); !m.over() || !strings.Contains(err.Error(), "rank 2") {
		t.Error(m.over(), err)
	}
}

// TestStoppedBeforeTheRoster: a worker that waits and sends nothing more is ended as before.
func TestStoppedBeforeTheRoster(t *testing.T) {
	m := newTestSession(2, true)
	m.again = true
	m.join(0)
	m.disconnected(1, errSilent)
	if !slices.Contains(m.lost(), 0) || m.over() {
		t.Errorf("lost %v, over %v", m.lost(), m.over())
	}
}

package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"starling/event"
)

// session decides what every message, and every end of a connection or process,
// means for the job. It takes one event at a time and puts the resulting actions
// into out; sockets, clocks and processes are the coordinator's.
type session struct {
	size, servers int
	job, version  string
	launched      bool // the workers' processes are ours
	again         bool // after a loss the job goes on with another session
	task          json.RawMessage
	blob          []byte
	own           [][]byte // by rank, after the blob; nil: nothing

	joined  []*joinedWorker // in the order they joined
	ranks   []*joinedWorker // nil until all have joined
	exits   []*exit         // by rank, of processes that have ended
	refused []string        // why workers were refused
	killing map[int]bool    // ranks whose processes we end

	stopping bool
	killed   bool    // we have begun to end processes
	cause    error   // what ended the job before its time
	ended    error   // the same for workers that join later; nil: they get no reason
	failures []*Died // in the order they became known
	out      []act
}

// joinedWorker is a worker that has joined the job.
type joinedWorker struct {
	conn     int
	hello    Hello
	rank     int // as given, or asked for, or -1
	result   *Result
	reported bool // it has sent a result or a failure
	left     bool
	rejoins  bool // it left because it has to join again
}

// exit is how a process ended.
type exit struct{ err error }

// act is something to do: send a message, pass an event or a state on, or end the
// process of a rank.
type act struct {
	conn    int
	message message
	event   event.Event
	state   *Result
	status  *Status
	kill    bool
	rank    int
}

// Result is what one worker ended with.
type Result struct {
	Rank int
	Body json.RawMessage
	Blob []byte
}

// Died is the error of a job that a worker's failure ended: the first one's, not
// those that followed from it.
type Died struct {
	Rank        int
	Name        string // of the host
	PID         int
	Text        string
	Input       bool // a user's mistake
	echo        bool // of another's failure
	late        bool // it waited too long for another
	unexplained bool // it ended without a message
}

// Lost reports whether the worker ended without a reason, or only because others
// did: a restart may help.
func (d *Died) Lost() bool { return d.unexplained || d.echo || d.late }

func (d *Died) Error() string {
	where := fmt.Sprintf("rank %d", d.Rank)
	if d.PID != 0 {
		where += fmt.Sprintf(" (pid %d on %s)", d.PID, d.Name)
	}
	return where + ": " + d.Text
}

// Missing is the error of workers that did not join in time.
type Missing struct {
	Ranks   []int
	Size    int
	Within  string
	Refused []string // and why others were refused
}

func (m *Missing) Error() string {
	text := fmt.Sprintf("%d of %d workers did not join within %s: missing rank %s", len(m.Ranks), m.Size, m.Within,
		join(m.Ranks))
	if len(m.Refused) > 0 {
		text += "; refused: " + strings.Join(m.Refused, "; ")
	}
	return text
}

func join(ranks []int) string {
	var s []string
	for _, r := range ranks {
		s = append(s, fmt.Sprint(r))
	}
	return strings.Join(s, ", ")
}

func (s *session) send(conn int, m message) { s.out = append(s.out, act{conn: conn, message: m}) }

// alreadyJoined ends the refusals after which a worker tries again.
const alreadyJoined = " joined already"

// restartsSoon is the refusal between two starts of a job.
const restartsSoon = "the job is about to start again"

// check is why a worker may not join, or "".
func (s *session) check(h *Hello) string {
	taken := func(rank int) bool {
		return slices.ContainsFunc(s.joined, func(g *joinedWorker) bool { return g.hello.Rank == rank })
	}
	switch {
	case h.Version != s.version:
		return fmt.Sprintf("its build is %s, this job's is %s; run the same build on every host", h.Version, s.version)
	case h.Job != "" && h.Job != s.job:
		return fmt.Sprintf("it belongs to job %s, this is job %s", h.Job, s.job)
	case h.Rank < -1 || h.Rank >= s.size:
		return fmt.Sprintf("it wants rank %d, there are ranks 0 to %d", h.Rank, s.size-1)
	case h.Rank >= 0 && taken(h.Rank):
		return fmt.Sprintf("rank %d has%s", h.Rank, alreadyJoined)
	case s.ranks != nil || len(s.joined) == s.size:
		return fmt.Sprintf("all %d workers have%s", s.size, alreadyJoined)
	case s.cause != nil && s.again:
		return restartsSoon
	case s.cause != nil && s.ended != nil:
		return fmt.Sprintf("%v: %v", errEnded, s.ended)
	case s.cause != nil:
		return errEnded.Error()
	}
	return ""
}

// arrive takes in a worker that has proved to know the token. When it is the last
// one, all get the roster. It returns why the worker is refused, or "".
func (s *session) arrive(conn int, h Hello) string {
	if reason := s.check(&h); reason != "" {
		// it tries again and again
		if text := fmt.Sprintf("rank %d on %s: %s", h.Rank, h.Name, reason); !slices.Contains(s.refused, text) {
			s.refused = append(s.refused, text)
		}
		return reason
	}
	s.joined = append(s.joined, &joinedWorker{conn: conn, hello: h, rank: h.Rank})
	return ""
}

// begin sends the roster once all have joined and have been welcomed.
func (s *session) begin() {
	if len(s.joined) < s.size || s.ranks != nil || s.cause != nil {
		return
	}
	s.ranks = make([]*joinedWorker, s.size)
	var any []*joinedWorker
	for _, g := range s.joined {
		if g.rank < 0 {
			any = append(any, g)
		} else {
			s.ranks[g.rank] = g
		}
	}
	for r := range s.ranks {
		if s.ranks[r] == nil {
			s.ranks[r], any = any[0], any[1:]
			s.ranks[r].rank = r
		}
	}
	peers := s.peers()
	for r, g := range s.ranks {
		var own []byte
		if s.own != nil {
			own = s.own[r]
		}
		m := newMessage("roster", roster{Rank: r, Job: s.job, Peers: peers, Task: s.task, Own: int64(len(own))})
		m.from = streamOf(s.blob, own)
		s.send(g.conn, m)
	}
	if s.stopping {
		s.sendAll(message{Type: "stop"})
	}
}

// peers is the roster. Workers are grouped into servers in order of rank, or else
// by host.
func (s *session) peers() []Peer {
	var hosts []string
	var peers []Peer
	for r, g := range s.ranks {
		h := &g.hello
		at := slices.Index(hosts, h.Host)
		if at < 0 {
			at = len(hosts)
			hosts = append(hosts, h.Host)
		}
		if s.servers > 0 {
			at = r / (s.size / s.servers)
		}
		peers = append(peers, Peer{Rank: r, Name: h.Name, Host: h.Host, PID: h.PID, Addr: h.Addr, Server: at})
	}
	return peers
}

// of is the worker of a connection, nil for one that was never admitted.
func (s *session) of(conn int) *joinedWorker {
	for _, g := range s.joined {
		if g.conn == conn {
			return g
		}
	}
	return nil
}

// received takes in a worker's message during the run. Before it has a rank, messages are
// ignored.
func (s *session) received(conn int, m message) {
	g := s.of(conn)
	if g == nil || g.reported || s.ranks == nil {
		return
	}
	switch m.Type {
	case "event":
		if e, err := event.Decode(m.Body); err == nil {
			s.out = append(s.out, act{event: e, rank: g.rank})
		}
	case "ping":
		s.status(g, m.Body)
	case "state":
		s.out = append(s.out, act{state: &Result{Rank: g.rank, Body: m.Body, Blob: m.blob}, rank: g.rank})
	case "result":
		g.reported, g.result = true, &Result{Rank: g.rank, Body: m.Body, Blob: m.blob}
		s.finish()
	case "failure":
		g.reported = true
		f := failed{Text: "it failed, and did not say why"}
		json.Unmarshal(m.Body, &f) // else what stands there
		s.fail(&Died{Rank: g.rank, Name: g.hello.Name, PID: g.hello.PID, Text: f.Text, Input: f.Input, echo: f.Echo,
			late: f.Late})
	}
}

// finish ends the workers when all are done: until then one that still
// trains may need the others.
func (s *session) finish() {
	if slices.ContainsFunc(s.ranks, func(g *joinedWorker) bool { return g.result == nil }) {
		return
	}
	s.sendAll(message{Type: "bye"})
}

// disconnected records that a connection has ended.
func (s *session) disconnected(conn int, why error) {
	g := s.of(conn)
	if g == nil {
		return
	}
	g.left = true
	if s.ranks == nil && s.cause == nil && !s.launched { // it may rejoin
		s.joined = slices.DeleteFunc(s.joined, func(o *joinedWorker) bool { return o == g })
		return
	}
	if s.ranks == nil && s.cause == errAborted && s.again && !errors.Is(why, errSilent) {
		g.rejoins = true // if its process has died, exited is called
		return
	}
	if !g.reported && !s.launched { // otherwise exited has the cause
		s.fail(&Died{Rank: g.rank, Name: g.hello.Name, PID: g.hello.PID, Text: fmt.Sprintf("it disconnected (%v)", why),
			unexplained: true})
	} else if !g.reported {
		// Its process is dead, or stopped, or cut off: it is of no more use. How it
		// exited is called when it has.
		s.kill(g.rank)
		s.silent(g, why)
		s.abort(fmt.Sprintf("rank %d was lost: %v", g.rank, why))
	}
}

// kill ends the process of a rank.
func (s *session) kill(rank int) {
	if s.killing == nil {
		s.killing = map[int]bool{}
	}
	s.killing[rank] = true
	s.out = append(s.out, act{kill: true, rank: rank})
}

// starting reports whether the process of a rank runs and has not joined yet: if the job starts
// again, it will join then.
func (s *session) starting(rank int) bool {
	return s.launched && s.exits[rank] == nil && !s.killing[rank] &&
		!slices.ContainsFunc(s.joined, func(g *joinedWorker) bool { return g.hello.Rank == rank })
}

// errSilent is why a connection was given up that had not ended.
var errSilent = errors.New("it sent nothing")

// silent keeps what is known of a worker whose process has not ended, and so does
// not tell.
func (s *session) silent(g *joinedWorker, why error) {
	if errors.Is(why, errSilent) {
		s.failures = append(s.failures, &Died{Rank: g.rank, Name: g.hello.Name, PID: g.hello.PID, Text: why.Error(),
			unexplained: true})
	}
}

// exited records that the process of a rank has ended. last is the last line it wrote.
func (s *session) exited(rank, pid int, host string, err error, last string) {
	s.exits[rank] = &exit{err}
	for _, g := range s.joined {
		if g.hello.Rank == rank && g.reported {
			return
		}
	}
	text := "its process ended without a word"
	if err != nil {
		text = "its process " + err.Error()
	}
	if last != "" {
		text += "; its last line: " + last
	}
	known := slices.ContainsFunc(s.failures, func(d *Died) bool { return d.Rank == rank }) // then we have killed it
	_, never := errors.AsType[*noLogin](err)
	s.fail(&Died{Rank: rank, Name: host, PID: pid, Text: text, unexplained: !s.killed && !known && !never,
		echo: s.killed || known})
}

// fail keeps a failure and makes all others stop.
func (s *session) fail(d *Died) {
	s.failures = append(s.failures, d)
	s.again = s.again && d.Lost() // what a worker has done wrong it would do again
	s.abort(d.Error())
}

// abort ends the job for all workers that are connected, and sends them the reason.
func (s *session) abort(why string) {
	if s.cause != nil {
		return
	}
	s.cause = errAborted
	s.sendAll(newMessage("abort", aborted{Again: s.again, Why: why}))
	for r := range s.size {
		if !s.again && s.starting(r) { // it would join a job that has ended
			s.kill(r)
		}
	}
}

// lost lists the ranks that will not rejoin by themselves: those that sent neither result
// nor failure, and those whose process has ended after it. Processes that have not joined yet are
// not lost, nor are those that left to join again.
func (s *session) lost() (ranks []int) {
	for r := range s.size {
		comes := s.starting(r) || slices.ContainsFunc(s.joined,
			func(g *joinedWorker) bool { return g.rank == r && (g.reported || g.rejoins) })
		if s.exits[r] != nil || !comes {
			ranks = append(ranks, r)
		}
	}
	return ranks
}

var errAborted = errors.New("another worker failed")

func (s *session) sendAll(m message) {
	for _, g := range s.joined {
		if !g.left {
			s.send(g.conn, m)
		}
	}
}

// late records that the time to join has passed.
func (s *session) late(within string) {
	if s.ranks != nil || s.cause != nil {
		return
	}
	var missing []int
	free := 0 // those that take any rank
	for _, g := range s.joined {
		if g.rank < 0 {
			free++
		}
	}
	for r := range s.size {
		if !slices.ContainsFunc(s.joined, func(g *joinedWorker) bool { return g.rank == r }) {
			missing = append(missing, r)
		}
	}
	missing = missing[min(free, len(missing)):]
	if s.launched && s.again { // a process that does not join counts as dead
		for _, r := range missing {
			s.kill(r)
			s.fail(&Died{Rank: r, Text: "its process did not join within " + within, unexplained: true})
		}
		return
	}
	s.again = false
	cause := &Missing{Ranks: missing, Size: s.size, Within: within, Refused: s.refused}
	s.abort(cause.Error())
	s.cause = cause
}

// interrupt makes all end after the same epoch, or the rendezvous at once.
func (s *session) interrupt() {
	s.stopping = true
	if s.ranks != nil {
		s.sendAll(message{Type: "stop"})
		return
	}
	s.again = false
	s.abort("the run was interrupted before all workers had come")
	s.cause = context.Canceled
}

// ending reports whether only the workers' ends are awaited.
func (s *session) ending() bool {
	return s.cause != nil || s.ranks != nil && !slices.ContainsFunc(s.ranks,
		func(g *joinedWorker) bool { return !g.reported })
}

// over reports whether all workers have gone.
func (s *session) over() bool {
	if !s.ending() {
		return false
	}
	for r, e := range s.exits {
		if s.launched && e == nil && !(s.again && s.cause == errAborted && !slices.Contains(s.lost(), r)) {
			return false
		}
	}
	return !slices.ContainsFunc(s.joined, func(g *joinedWorker) bool { return !g.left })
}

// outcome is the results by rank, or the root cause.
func (s *session) outcome() ([]Result, error) {
	if s.cause == nil {
		var all []Result
		for _, g := range s.ranks {
			all = append(all, *g.result)
		}
		return all, nil
	}
	if s.cause != errAborted {
		return nil, s.cause
	}
	return nil, s.root()
}

// root is the failure that the others followed from: the first worker that says
// what went wrong with itself; else the first that died or waited in vain; else the
// first.
func (s *session) root() error {
	for _, is := range []func(*Died) bool{
		func(d *Died) bool { return !d.echo && !d.unexplained && !d.late },
		func(d *Died) bool { return d.unexplained || d.late },
		func(d *Died) bool { return true },
	} {
		if i := slices.IndexFunc(s.failures, is); i >= 0 {
			return s.failures[i]
		}
	}
	return errAborted
}

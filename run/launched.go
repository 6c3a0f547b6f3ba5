package run

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"starling/cluster"
	"starling/event"
)

// Place is package cluster's, for the command.
type Place = cluster.Place

// PlaceOf is this process's place among the tasks of a launcher; nil: it is on its
// own, or the spec itself says how workers start.
func PlaceOf(s *Spec, getenv func(string) string) (*Place, error) {
	if s.NoLaunch || s.Hosts != "" || s.inProcess() {
		return nil, nil
	}
	p, err := cluster.Environment(getenv, s.Launcher)
	if err != nil {
		return nil, mistake("environment", err.Error(), "", "--launcher none trains without regard to it")
	}
	return p, nil
}

// RankOf is this process's rank among the tasks of a launcher; -1: there is none.
func RankOf(getenv func(string) string) (int, error) {
	s := Default()
	p, err := PlaceOf(&s, getenv)
	if p == nil || err != nil {
		return -1, err
	}
	return p.Rank, nil
}

// TrainAt trains s as one of the tasks of a launcher, each with a worker of its own.
// The task of rank 0 coordinates, and has the report; that of the others is nil. At
// no place it is Train.
func TrainAt(ctx context.Context, s Spec, p *Place, events event.Listener) (*Report, error) {
	if p == nil {
		return Train(ctx, s, events)
	}
	if err := s.tasks(p); err != nil {
		return nil, err
	}
	m, err := s.meeting(p)
	if err != nil {
		return nil, err
	}
	if p.Rank == 0 {
		return trainAs(ctx, s, m, event.All(events))
	}
	if err := s.checkFollower(); err != nil {
		return nil, err
	}
	return nil, m.follow(ctx, &s, events)
}

// checkFollower looks for mistakes that rank 0 finds too, so that no task waits for one that
// has given up.
func (s *Spec) checkFollower() error {
	if err := s.settleWorkers(); err != nil {
		return err
	}
	if _, err := os.Stat(s.Dataset); err == nil && s.partitionFolder() == "" {
		return s.wantsParts()
	}
	return s.Validate()
}

// tasks has a worker for every task.
func (s *Spec) tasks(p *Place) error {
	if err := s.settleParts(); err != nil {
		return err
	}
	if s.Workers != 0 && s.Workers != p.Size {
		return mistake("--workers", fmt.Sprint(s.Workers), fmt.Sprintf("%d, the tasks that %s has started", p.Size, p.Launcher), "leave out --workers, or give --launcher none")
	}
	s.NoLaunch, s.Workers = true, p.Size
	if s.Transport == "mpi" { // it ends all processes when it loses one
		s.OnFailure = "stop"
	}
	if s.Threads == 0 {
		s.Threads = p.CPUs
	}
	return nil
}

// meeting is how workers find a run that did not start them.
type meeting struct {
	text  string
	at    cluster.Rendezvous // as text says
	place *Place             // nil: they are started by hand
}

// meeting settles where tasks find each other. All of them must come to the same
// place without a word, from nothing but the spec and the environment.
func (s *Spec) meeting(p *Place) (*meeting, error) {
	text, job := s.Rendezvous, ""
	if p != nil {
		job = p.Job
	}
	switch {
	case text != "":
	case p.OneHost && p.Job != "":
		dir, err := cluster.PrivateFolder()
		if err != nil {
			return nil, err
		}
		text = "file:" + dir
	case p.Master != "" && (s.TokenFile != "" || os.Getenv(TokenVariable) != "" || s.TLS != "" || s.Insecure):
		text = "tcp:" + p.Master
	case p.Launcher == "kubernetes":
		return nil, mistake("--rendezvous", "none", "tasks that can find each other: "+cluster.MasterVariable+" set to the first one's host:port and a secret as "+TokenVariable, "see docs/launchers.md, or deploy/kubernetes.yaml")
	default: // no secret: a folder can hold one
		text = "file:."
	}
	at, err := cluster.ParseRendezvous(text, job)
	if err != nil {
		return nil, mistake("--rendezvous", err.Error(), "", "")
	}
	m := &meeting{text, at, p}
	if s.Listen == "" {
		s.Listen = m.listen()
	}
	return m, nil
}

// listen is where the coordinator does: on loopback where all are on one host.
func (m *meeting) listen() string {
	addr, known := strings.CutPrefix(m.at.String(), "tcp:")
	switch {
	case known && cluster.Loopback(addr):
		return addr
	case known: // a host's name may stand for an address that others cannot reach
		_, port, _ := net.SplitHostPort(addr)
		return ":" + port
	case m.place != nil && m.place.OneHost:
		return "127.0.0.1:0"
	}
	return ":0"
}

// settleMeeting completes a run whose workers are elsewhere.
func (c *clusterRun) settleMeeting() (err error) {
	s := &c.spec
	switch {
	case s.Hosts != "":
		c.slots, err = s.readHosts()
	case c.meet == nil && s.Rendezvous != "" && s.NoLaunch:
		c.meet, err = s.meeting(nil)
	}
	return err
}

// open tells where the run is, and starts the worker of this very task.
func (c *clusterRun) open(ctx context.Context, addr, job string, events event.Listener) (end func(), err error) {
	if c.meet == nil {
		return func() {}, nil
	}
	if host, _, err := net.SplitHostPort(c.spec.Listen); err == nil && (host == "" || net.ParseIP(host).IsUnspecified()) {
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			return nil, err
		}
		addr = cluster.Reach(port)
	}
	e := cluster.Entry{Addr: addr, Job: job}
	if c.meet.at.Secret() && c.spec.TokenFile == "" && os.Getenv(TokenVariable) == "" {
		e.Token = string(c.token)
	}
	withdraw, err := c.meet.at.Publish(ctx, e, func(err error) { events.On(event.Note{Text: "warning: rendezvous: " + err.Error()}) })
	if err != nil {
		return nil, mistake("--rendezvous", err.Error(), "", "")
	}
	if c.meet.place == nil {
		return withdraw, nil
	}
	w := c.spec.workerOf(0, c.token)
	w.Join, w.Job = addr, job
	leave := c.spec.ownWorker(ctx, w, events)
	return func() {
		leave()
		withdraw()
	}, nil
}

// leaveTime is how long this task's own worker may take to go when all is over.
const leaveTime = 5 * time.Second

// ownWorker starts the worker of rank 0. How it ended is the coordinator's business,
// which also asks it to stop.
func (s *Spec) ownWorker(ctx context.Context, w *WorkerSpec, events event.Listener) (leave func()) {
	ctx = context.WithoutCancel(ctx)
	kill, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { s.mind(ctx, kill, w, events) })
	return func() {
		timer := time.AfterFunc(leaveTime, stop)
		wg.Wait()
		timer.Stop()
		stop()
	}
}

// follow is the task of any rank but 0.
func (m *meeting) follow(ctx context.Context, s *Spec, events event.Listener) error {
	token, err := s.knownToken()
	if err != nil {
		return err
	}
	w := s.workerOf(m.place.Rank, token)
	w.Rendezvous, w.RendezvousJob = m.text, m.place.Job
	err = s.mind(ctx, context.WithoutCancel(ctx), w, events)
	var e *cluster.Exited
	switch {
	case !errors.As(err, &e):
		return err
	case e.Code == Interrupted:
		return ErrInterrupted
	case e.Code == Mistake:
		return mistake(fmt.Sprintf("rank %d", w.Rank), e.Error(), "", "")
	}
	return fmt.Errorf("rank %d: %w", w.Rank, err)
}

// mind runs a worker of this task, in a process of its own, so that it can be killed and
// start again; but MPI knows only the process that mpirun has started.
func (s *Spec) mind(ctx, kill context.Context, w *WorkerSpec, events event.Listener) error {
	if s.Transport == "mpi" {
		ctx, cancel := stopWith(ctx, kill.Done())
		defer cancel()
		return Worker(ctx, *w, event.Func(func(event.Event) {}))
	}
	times := 0
	if s.OnFailure == "restart" {
		times = mostTries
	}
	return cluster.Mind(ctx, kill, times, w.command, func(line string) { events.On(event.Note{Text: fmt.Sprintf("[rank %d] %s", w.Rank, line)}) })
}

// workerOf is a worker of this run; how it joins is still to be said.
func (s *Spec) workerOf(rank int, token []byte) *WorkerSpec {
	return &WorkerSpec{Rank: rank, Token: token, TLS: s.TLS, Insecure: s.Insecure, Timeout: s.Timeout, Heartbeat: s.Heartbeat}
}

// command runs the worker on this host.
func (w *WorkerSpec) command() (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, w.args()...)
	cmd.Env = append(os.Environ(), TokenVariable+"="+string(w.Token))
	return cmd, nil
}

// args are w on a command line, but for the token, which nobody is to see.
func (w *WorkerSpec) args() []string {
	args := []string{"worker", "--rank", fmt.Sprint(w.Rank), "--timeout", fmt.Sprint(w.Timeout), "--heartbeat", fmt.Sprint(w.Heartbeat), "--quiet"}
	for _, f := range []struct{ flag, value string }{{"--join", w.Join}, {"--job", w.Job}, {"--rendezvous", w.Rendezvous}, {"--rendezvous-job", w.RendezvousJob}, {"--part-dir", w.PartDir}, {"--tls", w.TLS}} {
		if f.value != "" {
			args = append(args, f.flag, f.value)
		}
	}
	if w.Insecure {
		args = append(args, "--insecure")
	}
	return args
}

// howToJoin says what those do who start workers by hand.
func (c *clusterRun) howToJoin(addr string) string {
	switch {
	case c.meet == nil:
		return fmt.Sprintf("starling worker --join %s --rank R, R from 0 to %d", addr, c.spec.Workers-1)
	case c.meet.place == nil:
		return fmt.Sprintf("starling worker --rendezvous %s --rank R, R from 0 to %d", c.meet.at, c.spec.Workers-1)
	}
	return fmt.Sprintf("the tasks of %s, through %s", c.meet.place.Launcher, c.meet.at)
}

// elsewhere: the workers may be on other hosts.
func (s *Spec) elsewhere() bool { return s.NoLaunch || s.Hosts != "" }

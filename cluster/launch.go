package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"starling/wire"
)

// Processes are the workers started on this host. None outlives this process:
// where the system allows, it ends them when this one dies, however it dies; and
// a worker ends itself when its control connection does.
type Processes struct {
	host  string
	cmds  []*exec.Cmd
	exits chan Exit
	pace  *pace
	again chan restart
	moved chan struct{} // one that waits may be started
	over  chan struct{} // closed when all have ended

	mu struct {
		sync.Mutex
		running []bool
		release chan struct{}
	}
}

// restart is a process to be started again.
type restart struct {
	start
	done chan error
}

// Exit is how a worker's process ended.
type Exit struct {
	Rank, PID int
	Err       error  // nil: well
	Last      string // the last line it wrote
}

// Launch starts a process a command, the i-th as rank i. Commands of SSH, the i-th to
// the i-th of hosts (nil: they are of this one), are started a few at a time. What they
// write goes to output, line by line, from any goroutine.
func Launch(cmds []*exec.Cmd, hosts []Host, output func(rank int, line string)) (*Processes, error) {
	host, _ := os.Hostname()
	p := &Processes{host: host, cmds: slices.Clone(cmds), exits: make(chan Exit, len(cmds)), pace: newPace(cmds, hosts),
		again: make(chan restart), moved: make(chan struct{}, 1), over: make(chan struct{})}
	p.mu.running = make([]bool, len(cmds))
	started := make(chan error)
	go p.run(started, output)
	if err := <-started; err != nil {
		p.Stop(0)
		<-p.over
		return nil, err
	}
	return p, nil
}

// Start starts the process of a rank that has ended anew.
func (p *Processes) Start(rank int, cmd *exec.Cmd) error {
	done := make(chan error, 1)
	select {
	case p.again <- restart{start{rank, cmd}, done}:
		return <-done
	case <-p.over:
		return errors.New("all processes have ended")
	}
}

// run starts the processes and stays until all have ended and none is started
// again. The system ends them with the thread that started them, so this goroutine
// keeps one for itself.
func (p *Processes) run(started chan<- error, output func(rank int, line string)) {
	defer close(p.over)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	ended := make(chan struct{})
	running, err := p.beginSome(output, ended)
	defer func() {
		for ; running > 0; running-- {
			<-ended
		}
	}()
	if started <- err; err != nil {
		return
	}
	for running > 0 || p.keep() {
		var done chan<- error // nil: it is not asked for
		select {
		case <-ended:
			running--
		case <-p.moved:
		case r := <-p.again:
			p.pace.add(r.start)
			done = r.done
		case <-p.released():
		}
		n, err := p.beginSome(output, ended)
		running += n
		if done != nil {
			done <- err
		}
	}
}

// beginSome starts those that need not wait, and returns how many.
func (p *Processes) beginSome(output func(rank int, line string), ended chan<- struct{}) (n int, first error) {
	p.mu.Lock() // one that Kill looks for waits or runs
	defer p.mu.Unlock()
	for {
		s, ok := p.pace.next()
		if !ok {
			return n, first
		}
		err := p.begin(s.rank, s.cmd, output, ended)
		if err == nil {
			n++
			continue
		}
		err = p.pace.ended(s.rank, fmt.Errorf("cannot be started: %w", err), "")
		go func() { p.exits <- Exit{Rank: s.rank, Err: err} }()
		if first == nil {
			first = fmt.Errorf("rank %d %w", s.rank, err)
		}
	}
}

// begin starts one process. Its end is reported once its output was read. REQUIRES: mu held.
func (p *Processes) begin(rank int, cmd *exec.Cmd, output func(rank int, line string), ended chan<- struct{}) error {
	last := ""
	lines := &lineWriter{put: func(line string) {
		if p.pace.loggedIn(rank, line) {
			p.wake()
			return
		}
		last = line
		output(rank, line)
	}}
	cmd.Stdout, cmd.Stderr = lines, lines
	cmd.WaitDelay = time.Second
	dieWithParent(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	p.cmds[rank], p.mu.running[rank] = cmd, true
	go func() {
		err := cmd.Wait()
		p.mu.Lock()
		p.mu.running[rank] = false
		p.mu.Unlock()
		lines.end()
		p.exits <- Exit{Rank: rank, PID: cmd.Process.Pid, Err: p.pace.ended(rank, readable(err), last), Last: last}
		ended <- struct{}{}
	}()
	return nil
}

// wake has run look who may be started.
func (p *Processes) wake() {
	select {
	case p.moved <- struct{}{}:
	default: // it will
	}
}

// Hold keeps Wait from returning while no process runs, until Release: one may be
// started again.
func (p *Processes) Hold() {
	p.mu.Lock()
	p.mu.release = make(chan struct{})
	p.mu.Unlock()
}

// Release ends Hold.
func (p *Processes) Release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.mu.release != nil {
		close(p.mu.release)
	}
	p.mu.release = nil
}

func (p *Processes) keep() bool { return p.released() != nil }

// released is closed by Release; nil: it is not held.
func (p *Processes) released() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.release
}

// ends is where exits come from; none of no processes.
func (p *Processes) ends() <-chan Exit {
	if p == nil {
		return nil
	}
	return p.exits
}

// Stop asks those still running to end, and kills them after a grace. It does not
// wait: Exits of all are still to come.
func (p *Processes) Stop(grace time.Duration) {
	for rank := range p.cmds {
		p.drop(rank)
	}
	p.signal(syscall.SIGTERM)
	wire.Real.AfterFunc(grace, func() { p.signal(syscall.SIGKILL) })
}

// drop ends a process that waits to be started.
func (p *Processes) drop(rank int) {
	if p.pace.drop(rank) {
		go func() { p.exits <- Exit{Rank: rank, Err: errors.New("was not started")} }()
	}
}

// Running reports whether the process of a rank has not ended yet; one that waits to be
// started has not.
func (p *Processes) Running(rank int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.mu.running[rank] || p.pace.waits(rank)
}

// PID is the process of a rank that has been started.
func (p *Processes) PID(rank int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.cmds[rank].Process.Pid
}

// Kill ends the process of a rank at once, if it runs.
func (p *Processes) Kill(rank int) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop(rank)
	if p.mu.running[rank] {
		p.cmds[rank].Process.Kill()
	}
}

// Wait returns when all have ended.
func (p *Processes) Wait() { <-p.over }

// signal reaches only processes that have not been waited for, whose numbers are
// still theirs.
func (p *Processes) signal(sig os.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for rank, is := range p.mu.running {
		if is {
			p.cmds[rank].Process.Signal(sig)
		}
	}
}

// readable is how a process ended, in words.
func readable(err error) error {
	var e *exec.ExitError
	if !errors.As(err, &e) {
		return err
	}
	if w, ok := e.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return fmt.Errorf("was killed (signal %d, %v)", int(w.Signal()), w.Signal())
	}
	return fmt.Errorf("ended with exit status %d", e.ExitCode())
}

// lineWriter passes on whole lines, long ones cut.
type lineWriter struct {
	put  func(string)
	part []byte
}

const maxOutputLine = 16 << 10

func (w *lineWriter) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if space := maxOutputLine - len(w.part); space > 0 {
			w.part = append(w.part, line[:min(len(line), space)]...)
		}
		if whole {
			w.end()
		}
		b = rest
	}
	return n, nil
}

// end passes on the line so far.
func (w *lineWriter) end() {
	if line := strings.TrimRight(string(w.part), "\r "); line != "" {
		w.put(line)
	}
	w.part = w.part[:0]
}

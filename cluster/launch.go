package cluster

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Processes are the workers started on this host. None outlives this process:
// where the system allows, it ends them when this one dies, however it dies; and
// a worker ends itself when its control connection does.
type Processes struct {
	host  string
	cmds  []*exec.Cmd
	exits chan Exit
	over  chan struct{} // closed when all have ended

	mu struct {
		sync.Mutex
		running []bool
	}
}

// Exit is how a worker's process ended.
type Exit struct {
	Rank, PID int
	Err       error  // nil: well
	Last      string // the last line it wrote
}

// Launch starts a process a command, the i-th as rank i. What they write goes to
// output, line by line, from any goroutine.
func Launch(cmds []*exec.Cmd, output func(rank int, line string)) (*Processes, error) {
	host, _ := os.Hostname()
	p := &Processes{host: host, cmds: cmds, exits: make(chan Exit, len(cmds)), over: make(chan struct{})}
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

// run starts the processes and stays until they have ended. The system ends them
// with the thread that started them, so this goroutine keeps one for itself.
func (p *Processes) run(started chan<- error, output func(rank int, line string)) {
	defer close(p.over)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var wg sync.WaitGroup
	defer wg.Wait()
	for rank, cmd := range p.cmds {
		lines := &lineWriter{put: func(line string) { output(rank, line) }}
		cmd.Stdout, cmd.Stderr = lines, lines
		cmd.WaitDelay = time.Second
		dieWithParent(cmd)
		if err := cmd.Start(); err != nil {
			started <- fmt.Errorf("rank %d cannot be started: %w", rank, err)
			return
		}
		p.setRunning(rank, true)
		wg.Go(func() {
			err := cmd.Wait()
			p.setRunning(rank, false)
			lines.end()
			p.exits <- Exit{Rank: rank, PID: cmd.Process.Pid, Err: readable(err), Last: lines.last}
		})
	}
	started <- nil
}

func (p *Processes) setRunning(rank int, is bool) {
	p.mu.Lock()
	p.mu.running[rank] = is
	p.mu.Unlock()
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
	p.signal(syscall.SIGTERM)
	time.AfterFunc(grace, func() { p.signal(syscall.SIGKILL) })
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

// readable is how a process ended, as people say it.
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
	last string
}

const maxOutputLine = 16 << 10

func (w *lineWriter) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		if room := maxOutputLine - len(w.part); room > 0 {
			w.part = append(w.part, line[:min(len(line), room)]...)
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
		w.last = line
		w.put(line)
	}
	w.part = w.part[:0]
}

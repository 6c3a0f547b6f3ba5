package cluster

import (
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
)

// mostLogins is how many may be logging in to a host at a time. sshd drops some of more
// than ten (its MaxStartups), and others may want to log in too.
const mostLogins = 8

// loggedIn is the line that comes first from a command on another host.
const loggedIn = "starling: logged in"

// start is a process to be started as a rank.
type start struct {
	rank int
	cmd  *exec.Cmd
}

// pace decides which worker may be started when. Those that log in to another host wait until there
// are few enough of them there that are not in yet.
type pace struct {
	hosts []string // by rank; nil: all are of this host, and none waits

	mu struct {
		sync.Mutex
		waiting []start
		outside []bool          // by rank: started, and not yet logged in
		reached map[string]bool // hosts that one has logged in to
	}
}

func newPace(cmds []*exec.Cmd, hosts []Host) *pace {
	p := &pace{}
	for _, h := range hosts {
		p.hosts = append(p.hosts, h.Name[strings.Index(h.Name, "@")+1:])
	}
	p.mu.outside, p.mu.reached = make([]bool, len(cmds)), map[string]bool{}
	for rank, cmd := range cmds {
		p.mu.waiting = append(p.mu.waiting, start{rank, cmd})
	}
	return p
}

// add makes one more wait.
func (p *pace) add(s start) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mu.waiting = append(p.mu.waiting, s)
}

// next is the first that need not wait any longer, if there is one.
func (p *pace) next() (start, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.IndexFunc(p.mu.waiting, func(s start) bool {
		return p.hosts == nil ||
			p.logins(p.hosts[s.rank]) < mostLogins
	})
	if i < 0 {
		return start{}, false
	}
	s := p.mu.waiting[i]
	p.mu.waiting = slices.Delete(p.mu.waiting, i, i+1)
	p.mu.outside[s.rank] = p.hosts != nil
	return s, true
}

// logins counts those that are logging in to a host. REQUIRES: mu held.
func (p *pace) logins(host string) (n int) {
	for rank, is := range p.mu.outside {
		if is && p.hosts[rank] == host {
			n++
		}
	}
	return n
}

// waits reports whether a rank has not been started yet.
func (p *pace) waits(rank int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.mu.waiting, func(s start) bool { return s.rank == rank })
}

// drop lets a rank, if it waits, wait no more: it is not to be started.
func (p *pace) drop(rank int) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := len(p.mu.waiting)
	p.mu.waiting = slices.DeleteFunc(p.mu.waiting, func(s start) bool { return s.rank == rank })
	return len(p.mu.waiting) < before
}

// loggedIn reports whether a line announces that a rank is logged in. A shell may have written
// something of its own before it.
func (p *pace) loggedIn(rank int, line string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.mu.outside[rank] || !strings.HasSuffix(line, loggedIn) {
		return false
	}
	p.mu.outside[rank], p.mu.reached[p.hosts[rank]] = false, true
	return true
}

// ended records how the process of a rank has ended; of one that never was logged in that
// too, and what sshd's way of saying no may mean.
func (p *pace) ended(rank int, err error, last string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	outside := p.mu.outside[rank]
	p.mu.outside[rank] = false
	if err == nil || !outside {
		return err
	}
	host := p.hosts[rank]
	err = fmt.Errorf("%w before it had logged in to %s", err, host)
	switch {
	case strings.Contains(last, "kex_exchange_identification"), strings.Contains(last, "Connection closed by"),
		strings.Contains(last, "Connection reset by"):
		return fmt.Errorf("%w, whose sshd may let too few log in at once (MaxStartups)", err)
	case !p.mu.reached[host]:
		return &noLogin{err}
	}
	return err
}

// noLogin is the end of a process that could not log in to a host that none has logged in to: its name is wrong, or it
// is down, or it does not know this user. Another try would end as this one.
type noLogin struct{ error }

func (e *noLogin) Unwrap() error { return e.error }

// announced is a command that prints, over there, when it has been reached.
func announced(command string) string { return "echo " + Quote(loggedIn) + "; exec " + command }

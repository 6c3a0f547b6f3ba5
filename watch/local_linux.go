package watch

import (
	"encoding/json"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"starling/wire"
)

// A run whose workers are all in one process has no rendezvous. starling top finds it by a socket without a file,
// named after the process, which gives a snapshot to the user who runs it, and to root.
const localName = "@starling-run-"

// ServeLocal lets starling top watch the run of this process, until stop is called. Where that is not possible, or
// the process has another run already, it cannot be watched.
func ServeLocal(snapshot func() *Snapshot) (stop func()) {
	l, err := net.Listen("unix", localName+strconv.Itoa(os.Getpid()))
	if err != nil {
		return func() {}
	}
	go func() {
		for {
			c, err := wire.Accept(l, nil)
			if err != nil {
				return
			}
			if mayWatch(c.(*net.UnixConn)) {
				c.SetDeadline(time.Now().Add(time.Second))
				json.NewEncoder(c).Encode(snapshot())
			}
			c.Close()
		}
	}()
	return func() { l.Close() }
}

// mayWatch reports whether a client is of this process's user, or root.
func mayWatch(c *net.UnixConn) (may bool) {
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	raw.Control(func(fd uintptr) {
		who, err := unix.GetsockoptUcred(int(fd), syscall.SOL_SOCKET, syscall.SO_PEERCRED)
		may = err == nil && (who.Uid == 0 || int(who.Uid) == os.Getuid())
	})
	return may
}

// localRuns are the processes of this host that can be watched.
func localRuns() (pids []string) {
	text, _ := os.ReadFile("/proc/net/unix")
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 8 || fields[3] != "00010000" { // it does not listen
			continue
		}
		if pid, ok := strings.CutPrefix(fields[7], localName); ok {
			pids = append(pids, pid)
		}
	}
	return pids
}

// lookLocal asks the run of a process for a snapshot.
func lookLocal(pid string, s *Snapshot) error {
	c, err := net.DialTimeout("unix", localName+pid, time.Second)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(5 * time.Second))
	return json.NewDecoder(c).Decode(s)
}

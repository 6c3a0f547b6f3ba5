package wiretest

import (
	"net"
	"os"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"starling/wire"
)

// Checked is a Transport's Around that fails a test which leaves something behind.
func Checked(t *testing.T, test func(t *testing.T)) {
	NoLeaks(t)
	test(t)
}

// NoLeaks fails the test if, in the end, it has more goroutines of ours, more
// descriptors or more shared memory than before.
func NoLeaks(t *testing.T) {
	t.Helper()
	if l, err := net.Listen("tcp", "127.0.0.1:0"); err == nil {
		l.Close() // the runtime opens descriptors of its own the first time
	}
	before := held()
	t.Cleanup(func() {
		// A goroutine that has told everybody that it ends may still be ending.
		for end := wire.Real.Now().Add(time.Minute); ; runtime.Gosched() {
			after := held()
			if after.goroutines <= before.goroutines && after.descriptors <= before.descriptors &&
				after.mapped <= before.mapped {
				return
			}
			if wire.Real.Now().After(end) {
				t.Errorf("left behind: %+v, before: %+v\n%s", after, before, stacks())
				return
			}
		}
	})
}

// ours are goroutines that run a method of the wire or of a transport.
var ours = regexp.MustCompile(`starling/wire(/(tcp|shm|mpi))?\.\(`)

type holding struct{ goroutines, descriptors, mapped int }

func held() (h holding) {
	for _, g := range strings.Split(stacks(), "\n\n") {
		if ours.MatchString(g) {
			h.goroutines++
		}
	}
	if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
		h.descriptors = len(fds)
	}
	if maps, err := os.ReadFile("/proc/self/maps"); err == nil {
		h.mapped = strings.Count(string(maps), "memfd:") + strings.Count(string(maps), "/dev/shm/")
	}
	return h
}

func stacks() string {
	buf := make([]byte, 1<<20)
	return string(buf[:runtime.Stack(buf, true)])
}

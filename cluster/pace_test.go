package cluster

import (
	"fmt"
	"io"
	"os/exec"
	"strings"
	"testing"
	"time"

	"starling/internal/testdeadline"
)

// logins are processes that log in when they are told to, or fail to.
type logins struct {
	*Processes
	inputs []io.WriteCloser // by rank
}

func newLogins(t *testing.T, hosts []Host) *logins {
	t.Helper()
	l := &logins{}
	var cmds []*exec.Cmd
	for range Slots(hosts) {
		cmd := exec.Command("sh", "-c", "read word; [ $word = in ] || { echo $word; exit 255; }; "+announced("cat"))
		input, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		cmds, l.inputs = append(cmds, cmd), append(l.inputs, input)
	}
	var err error
	if l.Processes, err = Launch(cmds, Slots(hosts), func(_ int, line string) {
		if strings.Contains(line, loggedIn) {
			t.Errorf("%q was shown", line)
		}
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Stop(0); l.Wait() })
	return l
}

// started lists the ranks whose process runs.
func (l *logins) started() (ranks []int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for rank, is := range l.mu.running {
		if is {
			ranks = append(ranks, rank)
		}
	}
	return ranks
}

// until waits for the ranks whose process runs to be these.
func (l *logins) until(t *testing.T, want ...int) {
	t.Helper()
	end := time.Now().Add(30 * time.Second)
	for ; fmt.Sprint(l.started()) != fmt.Sprint(want); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%v run, want %v", l.started(), want)
		}
	}
}

// Of a host's workers the ninth waits until one of the first eight is in or has ended,
// whatever user they are; those of other hosts do not wait for them.
func TestLoginsArePaced(t *testing.T) {
	l := newLogins(t, []Host{{Name: "alpha", Slots: 5}, {Name: "me@alpha", Slots: 7}, {Name: "beta", Slots: 1}})
	l.until(t, 0, 1, 2, 3, 4, 5, 6, 7, 12)
	if !l.Running(11) {
		t.Error("one that waits has ended")
	}
	fmt.Fprintln(l.inputs[3], "in")
	l.until(t, 0, 1, 2, 3, 4, 5, 6, 7, 8, 12)
	fmt.Fprintln(l.inputs[0], "kex_exchange_identification:")
	l.until(t, 1, 2, 3, 4, 5, 6, 7, 8, 9, 12)
	e := testdeadline.Receive(t, l.ends(), "an exit")
	if want := "ended with exit status 255 before it had logged in to alpha, whose sshd may let too few log in at " +
		"once (MaxStartups)"; e.Rank != 0 || e.Err == nil || e.Err.Error() != want {
		t.Errorf("%+v, want %s", e, want)
	}
	l.inputs[3].Close()
	if e := testdeadline.Receive(t, l.ends(), "an exit"); e.Rank != 3 || e.Err != nil || e.Last != "" {
		t.Errorf("%+v, want a good end", e)
	}
	if err := l.Start(0, exec.Command("sh", "-c", "exit 1")); err != nil { // behind 10 and 11
		t.Error(err)
	}
	l.until(t, 1, 2, 4, 5, 6, 7, 8, 9, 12)
	l.Kill(11)
	if e := testdeadline.Receive(t, l.ends(), "an exit"); e.Rank != 11 || e.PID != 0 ||
		e.Err.Error() != "was not started" || l.Running(11) {
		t.Errorf("%+v", e)
	}
	l.Stop(0)
	ended := map[int]bool{}
	for range 11 {
		ended[testdeadline.Receive(t, l.ends(), "an exit").Rank] = true
	}
	if len(ended) != 11 || !ended[0] || !ended[10] {
		t.Errorf("%v", ended)
	}
	l.Wait()
}

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// terminal is a real one: tmux draws it, and tells what is on it.
type terminal struct {
	t      *testing.T
	socket string
	lines  int // run so far
}

// newTerminal starts a shell in a folder, whose starling is ours.
func newTerminal(t *testing.T, dir string, columns int, env ...string) *terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux, so terminals are not tried: ", err)
	}
	s, err := os.MkdirTemp("", "tmux")
	if err != nil {
		t.Fatal(err)
	}
	term := &terminal{t: t, socket: filepath.Join(s, "s")}
	shell := append(append([]string{"env", "PS1=ready> ", "TERM=xterm-256color", "NO_COLOR=",
		"PATH=" + filepath.Dir(binary) + ":" + os.Getenv("PATH")}, env...), "bash", "--norc", "--noprofile")
	term.tmux(append([]string{"-f", "/dev/null", "new-session", "-d", "-x", fmt.Sprint(columns), "-y", "50", "-c", dir},
		shell...)...)
	t.Cleanup(func() {
		exec.Command("tmux", "-S", term.socket, "kill-server").Run()
		os.RemoveAll(s)
	})
	term.await(`ready>$`)
	return term
}

func (m *terminal) tmux(args ...string) string {
	m.t.Helper()
	out, err := exec.Command("tmux", append([]string{"-S", m.socket}, args...)...).CombinedOutput()
	if err != nil {
		m.t.Fatalf("tmux %q: %v\n%s", args, err, out)
	}
	return string(out)
}

// press presses keys, by tmux's names.
func (m *terminal) press(keys ...string) { m.tmux(append([]string{"send-keys"}, keys...)...) }

// types types a line.
func (m *terminal) types(line string) { m.press(line, "Enter") }

// screen is what is on the terminal, without the blanks at the end.
func (m *terminal) screen(more ...string) string {
	return strings.TrimRight(m.tmux(append([]string{"capture-pane", "-p"}, more...)...), "\n ")
}

// await waits until the screen matches.
func (m *terminal) await(pattern string) string {
	m.t.Helper()
	match := regexp.MustCompile("(?s)" + pattern)
	for end := time.Now().Add(hang); ; time.Sleep(20 * time.Millisecond) {
		s := m.screen()
		if match.MatchString(s) {
			return s
		}
		if time.Now().After(end) {
			m.t.Fatalf("no %s on the screen:\n%s", pattern, s)
		}
	}
}

// run types a line and waits until it is done; the result is what the line has shown.
func (m *terminal) run(line string) string {
	m.t.Helper()
	m.lines++
	m.types(fmt.Sprintf("clear; %s; echo done-%d", line, m.lines))
	end := fmt.Sprintf("done-%d\nready>", m.lines)
	return strings.TrimSuffix(m.await("(^|\n)"+end+"$"), end)
}

// TestBarsEndFull: nothing that has ended looks unfinished.
func TestBarsEndFull(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := newTerminal(t, dir, 80)
	writeFile(t, dir, "edges.csv", edgeLines(3000))
	bar := regexp.MustCompile(`(?m)^(.*?)  \[(.*?)\]`)
	for _, c := range []struct {
		line string
		bars []string
	}{
		{"starling generate sbm --nodes 3000 --edges 40000 --features 16 --classes 4 --out graph",
			[]string{"write edges", "draw features"}},
		{"starling import edgelist edges.csv --out web", []string{"read edges", "write"}},
		{"starling partition graph --parts 2 --out parts", []string{"coarsen", "refine", "halos", "write parts"}},
		{"starling partition graph --parts 2 --tries 3 --out best", []string{"try", "write parts"}},
		{"starling train graph --workers 2 --epochs 3 --hidden 16", []string{"write parts", "epoch 3/3"}},
		{"starling train graph --epochs 3 --hidden 16", []string{"epoch 3/3"}},
	} {
		s := m.run(c.line)
		seen := map[string]bool{}
		for _, found := range bar.FindAllStringSubmatch(s, -1) {
			seen[found[1]] = true
			if strings.Trim(found[2], "=") != "" {
				t.Errorf("%s: %q is not full:\n%s", c.line, found[0], s)
			}
		}
		for _, want := range c.bars {
			if !seen[want] {
				t.Errorf("%s: no bar %q:\n%s", c.line, want, s)
			}
		}
	}
}

// edgeLines is an edge list of a ring.
func edgeLines(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d,%d\n", i, (i+1)%n)
	}
	return b.String()
}

// TestInterruptedOnATerminal: what Ctrl-C says stays, above the bar and the result.
func TestInterruptedOnATerminal(t *testing.T) {
	t.Parallel()
	dir := small(t)
	for _, more := range []string{"", " --workers 2", " --json - > /dev/null"} {
		m := newTerminal(t, dir, 60)
		m.types("starling train graph --epochs 10000000 --hidden 16" + more)
		m.await(`epoch \d+/10000000 .*loss`)
		m.press("C-c")
		s := m.await(`\nready>$`)
		for _, want := range []string{"starling: stopping as soon as what is under way is finished;\n  press Ctrl-C again " +
			"to stop at once\n", "interrupted after", "no state was saved to go on from: with"} {
			if strings.Count(s, want) != 1 {
				t.Errorf("%s: %q is not there once:\n%s", more, want, s)
			}
		}
	}
}

// TestWrappedOnATerminal: no word is broken at the edge of a narrow terminal, in whatever a command says.
func TestWrappedOnATerminal(t *testing.T) {
	t.Parallel()
	dir := small(t)
	m := newTerminal(t, dir, 60)
	for _, line := range []string{"starling train graph --mdoel gcn", "starling train graph --epochs 2",
		"starling train graph --workers 2 --epochs 2", "starling partition graph --parts 2 --out parts --overwrite",
		"starling info graph", "starling predict --help", "starling import nosuch x --out y"} {
		plain := starling(t, dir, strings.Fields(line)[1:]...)
		known := map[string]bool{}
		for _, w := range strings.Fields(plain.stdout + plain.stderr) {
			known[w] = true
		}
		s := m.run("COLUMNS=60 " + line)
		for shown := range strings.Lines(s) {
			words := strings.Fields(shown)
			if len([]rune(shown)) < 60 || len(words) == 0 { // the line was not full
				continue
			}
			last := words[len(words)-1]
			if !known[last] && !strings.ContainsAny(last, "0123456789=[]-.…") {
				t.Errorf("%s: %q is no word of it, in the line %q", line, last, shown)
			}
		}
	}
	if s := m.run("starling train graph --mdoel gcn"); !strings.Contains(s,
		"starling: flag: found --mdoel, want a flag of starling\n  train; did you mean --model?\n") {
		t.Error(s)
	}
	if s := m.run("starling train graph --candidates c.csv"); !strings.Contains(s, "did you mean --val-candidates?") {
		t.Error(s)
	}
}

// TestColors: a terminal gets colors, unless its user wants none; nothing else does.
func TestColors(t *testing.T) {
	t.Parallel()
	dir := small(t)
	const wrong, right = "starling train graph --mdoel gcn", "starling train graph --epochs 2 --hidden 8"
	colored := func(m *terminal, line string) bool {
		m.run(line)
		return strings.Contains(m.screen("-e"), "\x1b[3")
	}
	plain, m := newTerminal(t, dir, 80, "NO_COLOR=1"), newTerminal(t, dir, 80)
	for _, line := range []string{wrong, right} {
		if !colored(m, line) {
			t.Errorf("%s: no colors", line)
		}
		if colored(plain, line) {
			t.Errorf("%s: colors with NO_COLOR", line)
		}
		if colored(m, line+" 2>&1 | cat") {
			t.Errorf("%s: colors in a pipe", line)
		}
	}
}

// ownHostVar has the command that tests in a network namespace of their own use.
const ownHostVar = "STARLING_OWN_HOST"

// onAHostOfItsOwn runs a test again in namespaces of its own, where no other run of this machine can be seen by its
// socket or its process, and says whether it did.
func onAHostOfItsOwn(t *testing.T) bool {
	t.Helper()
	if os.Getenv(ownHostVar) != "" {
		return false
	}
	unshare := []string{"--user", "--map-root-user", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"}
	if os.Geteuid() == 0 {
		unshare = unshare[2:]
	}
	if out, err := exec.Command("unshare", append(unshare, "true")...).CombinedOutput(); err != nil {
		t.Skipf("no namespaces, and without them runs of other tests would be in the list: %v, %s", err, out)
	}
	c := exec.Command("unshare", append(unshare, "sh", "-c", `ip link set lo up && "$0" "$@"`, os.Args[0],
		"-test.run=^"+t.Name()+"$", "-test.v")...)
	c.Env = append(os.Environ(), ownHostVar+"="+binary)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return true
}

// TestTopOnATerminal: a run of one worker is shown, several are listed, and q ends it.
func TestTopOnATerminal(t *testing.T) {
	t.Parallel()
	if onAHostOfItsOwn(t) {
		return
	}
	dir := small(t)
	m, other := newTerminal(t, dir, 100), newTerminal(t, dir, 100)
	other.types("starling train graph --epochs 100000000 --hidden 16 --model gcn & one=$!")
	other.await(`epoch \d+/100000000`)
	m.types("clear; starling top")
	m.await(`gcn on \S+, strategy none, 1 worker: epoch \d+/100000000, loss.*\n *0  \S+ +\d+ .*computes.*\n\nq quits`)
	m.press("q")
	m.await(`\nready>$`)
	other.types("starling train graph --epochs 100000000 --hidden 16 --model sage --workers 2 & two=$!")
	other.await(`strategy halo.*epoch \d+/100000000`)
	m.types("clear; starling top")
	s := m.await(`\n *1 +\d+ +gcn on .*\n *2 +127.0.0.1:\d+ +sage on .*2 workers.*\n\nq quits, a number shows the run`)
	if strings.Contains(s, "does not show itself") {
		t.Error(s)
	}
	m.press("2")
	m.await(`sage on .*\n *1  \S+ +\d+ .*l lists the runs`)
	m.press("l")
	m.await(`\n *2 +127.0.0.1`)
	m.press("1")
	m.await(`gcn on .*l lists the runs`)
	other.types("kill -INT $one")
	m.await(`the run has ended\nready>$`)
	if s := m.run("starling top --once | cat"); !strings.Contains(s, "sage on") {
		t.Error(s)
	}
	other.types("kill -INT $two")
	other.await(`interrupted.*interrupted`)
}

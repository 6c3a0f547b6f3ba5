package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write what scenarios show into their files")

// Scenarios are files of commands, a line each after "> ", with what they show below
// them, reviewed. What the clock and the machine decide is left out, or a capital
// letter stands for it. go test -run TestScenarios -update writes them anew.
//
//	starling ARGS             runs to its end
//	start NAME starling ARGS  runs beside what follows; other is another build of
//	                          starling, netcluster scripts/netcluster, and on HOST starling
//	                          is on one of its hosts
//	await NAME PATTERN        until it has shown a line of this pattern, or has it in
//	                          the file of this name
//	kill, stop, cont, interrupt NAME [RANK]  it, or its worker of a rank
//	end NAME                  waits for its end
//	same A B                  compares the losses of two results
//	disk FOLDER SIZE [ro]     mounts a small disk there, or changes the one there
//	write FILE TEXT
//
// PORT is a free port, EPOCHS how many the result in got.json has: a run that something
// happens to has no end of its own, so that none comes before it on a fast machine. It is
// interrupted, and compared with one of as many epochs.
func TestScenarios(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("there is no /proc here to find workers in")
	}
	files, err := filepath.Glob("testdata/scenarios/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scenarios", err)
	}
	for _, f := range files {
		t.Run(strings.TrimSuffix(filepath.Base(f), ".txt"), func(t *testing.T) {
			t.Parallel()
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "> other ") {
				otherBuild(t) // before anybody waits for it
			}
			got := newScenario(t).play(string(text))
			switch {
			case *update && !t.Failed():
				err = os.WriteFile(f, []byte(got), 0o644)
			case got != string(text):
				t.Errorf("%s shows\n%s\nwant\n%s", f, got, text)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
}

// scenario is one under way, in a folder of its own.
type scenario struct {
	t    *testing.T
	dir  string
	env  []string
	port string
	runs map[string]*scene
}

// scene is a command of a scenario that runs beside others.
type scene struct {
	*exec.Cmd
	mu    sync.Mutex
	text  bytes.Buffer
	news  chan struct{}
	ended chan struct{}
}

func newScenario(t *testing.T) *scenario {
	s := &scenario{t: t, dir: t.TempDir(), port: freePort(), runs: map[string]*scene{}}
	s.env = append(os.Environ(), "TMPDIR="+t.TempDir(), "STARLING="+binary)
	copyInto(t, s.dir, "graph", "parts")
	return s
}

// play does what a text says, and returns it with what is shown now.
func (s *scenario) play(text string) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		command, ok := strings.CutPrefix(line, "> ")
		switch {
		case ok:
			out.WriteString(line + s.do(strings.TrimSpace(command)))
		case strings.HasPrefix(line, "#") || line == "\n":
			out.WriteString(line)
		}
	}
	return out.String()
}

// do is one command, and what it shows.
func (s *scenario) do(command string) string {
	s.t.Helper()
	command = strings.ReplaceAll(command, "PORT", s.port)
	if strings.Contains(command, "EPOCHS") {
		command = strings.ReplaceAll(command, "EPOCHS", fmt.Sprint(result(s.t,
			readFile(s.t, s.dir, "got.json"))["epochs"]))
	}
	words := strings.Fields(command)
	rest := words[1:]
	switch words[0] {
	case "starling", "other", "netcluster":
		r := s.start(words)
		<-r.ended
		return s.show(r)
	case "start":
		s.runs[rest[0]] = s.start(rest[1:])
	case "await":
		if s.runs[rest[0]] == nil {
			s.awaitFile(rest[0], strings.Join(rest[1:], " "))
			break
		}
		s.await(s.run(rest[0]), strings.Join(rest[1:], " "))
	case "kill", "stop", "cont", "interrupt":
		signal := map[string]syscall.Signal{"kill": syscall.SIGKILL, "stop": syscall.SIGSTOP, "cont": syscall.SIGCONT,
			"interrupt": syscall.SIGINT}[words[0]]
		if err := syscall.Kill(s.pid(rest), signal); err != nil {
			s.t.Fatalf("%s: %v", command, err)
		}
	case "end":
		r := s.run(rest[0])
		select {
		case <-r.ended:
		case <-time.After(hang):
			s.t.Fatalf("%s does not end: %s", rest[0], r.string())
		}
		return s.show(r)
	case "same":
		return s.same(rest[0], rest[1])
	case "disk":
		s.disk(rest)
	case "write":
		if err := os.WriteFile(filepath.Join(s.dir, rest[0]), []byte(strings.Join(rest[1:], " ")), 0o600); err != nil {
			s.t.Fatal(err)
		}
	default:
		s.t.Fatalf("there is no command %q", words[0])
	}
	return ""
}

func (s *scenario) run(name string) *scene {
	r := s.runs[name]
	if r == nil {
		s.t.Fatalf("there is no %s", name)
	}
	return r
}

// start runs a command; it does not outlive the test.
func (s *scenario) start(words []string) *scene {
	s.t.Helper()
	r := &scene{news: make(chan struct{}, 1), ended: make(chan struct{})}
	switch words[0] {
	case "netcluster":
		r.Cmd = netcluster(words[1], words[2:]...)
		if words[1] == "up" {
			newCluster(s.t, words[2:]...)
			r.Cmd = exec.Command("true")
		}
	case "on":
		r.Cmd = netcluster("exec", append([]string{words[1], binary}, words[3:]...)...)
	case "other":
		r.Cmd = exec.Command(otherBuild(s.t), words[1:]...)
	default:
		r.Cmd = exec.Command(binary, words[1:]...)
	}
	r.Dir, r.Env, r.Stdout, r.Stderr, r.WaitDelay = s.dir, append(r.Env, s.env...), r, r, time.Second
	if err := r.Start(); err != nil {
		s.t.Fatal(err)
	}
	go func() {
		r.Wait()
		close(r.ended)
	}()
	s.t.Cleanup(func() {
		r.Process.Kill() // if it still runs
		<-r.ended
	})
	return r
}

func (r *scene) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	select {
	case r.news <- struct{}{}:
	default:
	}
	return r.text.Write(b)
}

func (r *scene) string() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.String()
}

// await returns when a command has shown a line of a pattern.
func (s *scenario) await(r *scene, pattern string) {
	s.t.Helper()
	match := regexp.MustCompile("(?m)" + pattern)
	late := time.After(hang)
	for !match.MatchString(r.string()) {
		select {
		case <-r.news:
		case <-r.ended:
			if !match.MatchString(r.string()) {
				s.t.Fatalf("it ended without %s: %s", pattern, r.string())
			}
		case <-late:
			s.t.Fatalf("no %s in %s", pattern, r.string())
		}
	}
}

// awaitFile returns when a file has a line of a pattern.
func (s *scenario) awaitFile(name, pattern string) {
	s.t.Helper()
	match := regexp.MustCompile("(?m)" + pattern)
	for end := time.Now().Add(hang); !match.MatchString(fileOrNone(filepath.Join(s.dir,
		name))); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			s.t.Fatalf("no %s in %s: %s", pattern, name, fileOrNone(filepath.Join(s.dir, name)))
		}
	}
}

// pid returns the process of a command, or of its worker of a rank.
func (s *scenario) pid(of []string) int {
	s.t.Helper()
	run := s.run(of[0]).Process.Pid
	if len(of) == 1 {
		return run
	}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, f := range files {
		stat, _ := os.ReadFile(f)
		args, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "cmdline"))
		after := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])) // state, parent, …
		if words := strings.Split(string(args), "\x00"); len(after) > 1 && after[1] == fmt.Sprint(run) &&
			slices.Contains(words, "worker") {
			if i := slices.Index(words, "--rank"); i >= 0 && words[i+1] == of[1] {
				pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(f)))
				return pid
			}
		}
	}
	s.t.Fatalf("%s has no worker of rank %s: %s", of[0], of[1], s.run(of[0]).string())
	return 0
}

// same compares the losses of two results, bit by bit.
func (s *scenario) same(a, b string) string {
	x, y := losses(s.t, result(s.t, readFile(s.t, s.dir, a))), losses(s.t, result(s.t, readFile(s.t, s.dir, b)))
	if !slices.Equal(x, y) {
		return "the losses differ\n"
	}
	return "the same losses\n"
}

// What the clock and the machine decide.
var unsaid = regexp.MustCompile(`^epoch +\d+/|: \d+%$|^cut into |^checkpoint | skipped: newer ones came |^trying to connect |^(sent|  +planned|activation|control|feature|gradient|parameter|total|waiting for other workers:|rows on their way) `)

var fickle = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`pid \d+ on \S+\)`), "pid P on HOST)"},
	{regexp.MustCompile(`rank (-?\d) on [^ :]+:`), "rank $1 on HOST:"},
	{regexp.MustCompile(`(127\.0\.0\.1|10\.77\.0\.\d):\d+`), "$1:PORT"},
	{regexp.MustCompile(`job [0-9A-Z]{12}`), "job J"},
	{regexp.MustCompile(`(from|after|in|of) epoch \d+`), "$1 epoch N"},
	{regexp.MustCompile(`epoch \d+ (stalls|is done)`), "epoch N $1"},
	{regexp.MustCompile(`epoch-?\d{4,}[^ :]*`), "epoch-N"},
	{regexp.MustCompile(`best epoch \d+: .*`), "best epoch N"},
	{regexp.MustCompile(`^interrupted after \d+ epochs`), "interrupted after N epochs"},
	{regexp.MustCompile(`\d+(\.\d+)? (s|ms)\b`), "T"},
	{regexp.MustCompile(`T for rank (\d) \([^)]*\)`), "T for rank $1 (…)"},
	{regexp.MustCompile(`build is [^ ,]+, this job's is [^ ;]+;`), "build is A, this job's is B;"},
}

// waitedFirst is a worker that was waited for before it was taken for dead: both take about
// as long.
var waitedFirst = regexp.MustCompile(`(?m)^epoch N stalls: .*\n(^lost rank )`)

// again is a worker that seems lost after one that was, on a machine that is too slow for
// the heartbeat.
var again = regexp.MustCompile(`(?m)(^gcn on .*; going on after epoch N .*\n)(^lost rank .*it sent nothing.*\n^training goes on .*\n^gcn on .*; going on after epoch N .*\n)+`)

// rejoins is a worker that says, in a line or two, why it comes again; perhaps more than
// once on such a machine.
var rejoins = regexp.MustCompile(`(?m)^(rank \d of \d, in job J\n)((.*\n)*?.*; joining again\nrank \d of \d, in job J\n)+`)

// show is what a command wrote, without what is different every time, and how it ended.
func (s *scenario) show(r *scene) string {
	text := strings.ReplaceAll(strings.ReplaceAll(r.string(), s.dir, "DIR"), binary, "starling")
	var out strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if unsaid.MatchString(line) {
			continue
		}
		for _, f := range fickle {
			line = f.what.ReplaceAllString(line, f.with)
		}
		out.WriteString(line + "\n")
	}
	shown := waitedFirst.ReplaceAllString(out.String(), "$1")
	shown = rejoins.ReplaceAllString(again.ReplaceAllString(shown, "$1"), "$1…; joining again\n$1")
	code := r.ProcessState.ExitCode()
	if code < 0 {
		return shown + "killed\n"
	}
	return shown + fmt.Sprintf("exit %d\n", code)
}

// otherBuild is the command of another release.
var otherBuild = func() func(t *testing.T) string {
	var once sync.Once
	path := ""
	return func(t *testing.T) string {
		t.Helper()
		once.Do(func() {
			path = binary + "-other"
			if out, err := exec.Command("go", "build", "-buildvcs=false", "-ldflags",
				"-s -w -X starling/internal/version.release=v0.another", "-o", path,
				".").CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		})
		return path
	}
}()

package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
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

	"starling/internal/testseed"
)

const faultHeartbeat = 3 // seconds

// faultCheckpoints is the documented limit of what a fault may cost: the epochs since the last state.
const faultCheckpoints = 10

// placement is where the workers of a run are, and the faults that are possible there.
type placement struct {
	name   string
	faults []string
}

var placements = []placement{
	{"started, tcp", []string{"killed", "stopped", "paused", "coordinator"}},
	{"started, shm", []string{"killed", "stopped", "paused", "coordinator"}},
	{"by hand, tcp", []string{"killed", "stopped", "paused", "coordinator"}},
	{"by hand, shm", []string{"killed", "stopped", "paused", "coordinator"}},
	{"hosts", []string{"cut", "restored", "restored", "killed", "coordinator"}},
	{"hosts", []string{"cut", "restored", "restored", "paused", "coordinator"}},
}

// onePlace is the placement of a run of one process.
var onePlace = placement{"one process", []string{"paused", "coordinator", "coordinator"}}

// TestRandomFaults injects faults at random moments, as many as STARLING_FAULTS says: no hang, no
// wrong result, and no more epochs repeated than documented. scripts/faults injects 1,000.
// STARLING_SEED repeats what was drawn, STARLING_FAULT_CASES is an expression that chooses among the runs. Most of the
// time a loss is about to be noticed, so several runs share the machine.
func TestRandomFaults(t *testing.T) {
	t.Parallel()
	n, _ := strconv.Atoi(os.Getenv("STARLING_FAULTS"))
	seed := testseed.New(t)
	if n == 0 {
		n = 3
	}
	lanes := min(6, (n+9)/10)
	all := &results{dir: small(t), wants: map[string]wanted{}}
	all.prepare(t)
	t.Run("lanes", func(t *testing.T) {
		for lane := range lanes {
			t.Run(fmt.Sprint(lane), func(t *testing.T) {
				t.Parallel()
				f := newLane(t, all, seed, lane)
				f.cases = chosenCases(t, faultCases())
				f.draw.Shuffle(len(f.cases), func(i, j int) { f.cases[i], f.cases[j] = f.cases[j], f.cases[i] })
				f.inject((n + lane) / lanes)
				nothingLeftOf(t, f.dir, f.tmp)
			})
		}
	})
	t.Log("\n" + faultTable(all.done))
}

// results are what runs are compared with, and what has happened to them.
type results struct {
	dir   string
	mu    sync.Mutex
	wants map[string]wanted
	done  []fault
}

// wanted is the result of a run that nothing happened to.
type wanted struct {
	losses  []float64
	weights string
}

func (a *results) prepare(t *testing.T) {
	works(t, a.dir, "generate", "typed", "--like", "small", "--scale", "0.1", "--out", "typed", "--quiet")
	for _, graph := range []string{"graph", "typed"} {
		for n := 2; n <= 4; n++ {
			works(t, a.dir, "partition", graph, "--parts", fmt.Sprint(n), "--out", fmt.Sprint(graph, "-parts", n), "--quiet")
		}
		works(t, a.dir, "partition", graph, "--servers", "2", "--workers", "2", "--out", graph+"-servers", "--quiet")
	}
}

// lane is runs one after another, in a folder and on hosts of their own.
type lane struct {
	t     *testing.T
	all   *results
	dir   string
	tmp   string // where its runs have their temporary files
	draw  *rand.Rand
	name  string      // of the hosts; empty: there are none
	cases []faultCase // in the order of its runs
	done  []fault
}

func newLane(t *testing.T, all *results, seed uint64, number int) *lane {
	draw := rand.New(rand.NewPCG(seed, uint64(number)))
	f := &lane{t: t, all: all, dir: t.TempDir(), tmp: t.TempDir(), draw: draw}
	if err := os.WriteFile(filepath.Join(f.dir, "token"), []byte("correct horse battery staple"), 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() != 0 {
		t.Log("no host is cut off: network namespaces need root")
		return f
	}
	f.name = fmt.Sprintf("stt%dlane%d", os.Getpid(), number)
	if out, err := f.net("up", "--hosts", "4", "--fast", "1gbit").CombinedOutput(); err != nil {
		t.Logf("no host is cut off: %s", out)
		f.name = ""
		return f
	}
	t.Cleanup(func() { f.net("down").Run() })
	return f
}

// chosenCases returns the cases that STARLING_FAULT_CASES matches: all without it.
func chosenCases(t *testing.T, list []faultCase) []faultCase {
	t.Helper()
	chosen, err := regexp.Compile(os.Getenv("STARLING_FAULT_CASES"))
	if err != nil {
		t.Fatal(err)
	}
	cases := slices.DeleteFunc(list, func(c faultCase) bool { return !chosen.MatchString(c.args) })
	if len(cases) == 0 {
		t.Fatalf("STARLING_FAULT_CASES=%v: found none of the runs, want an expression that matches some", chosen)
	}
	return cases
}

// net is the script on the hosts of these runs.
func (f *lane) net(action string, args ...string) *exec.Cmd {
	return netcluster(action, append([]string{"--name", f.name}, args...)...)
}

// inject has so many things happen.
func (f *lane) inject(n int) {
	for i := 0; len(f.done) < n && !f.t.Failed(); i++ {
		began := len(f.done)
		f.run(i, min(1+f.draw.IntN(4), n-began))
		f.all.mu.Lock()
		f.all.done = append(f.all.done, f.done[began:]...)
		f.all.mu.Unlock()
		for _, d := range f.done[began:] {
			f.t.Log(d)
		}
	}
}

// run is one run and what happens to it.
func (f *lane) run(i, most int) {
	f.t.Helper()
	c := f.cases[i%len(f.cases)]
	where, workers := f.place(c)
	common := c.command(filepath.Join(f.all.dir, c.data(workers)))
	want := f.want(common)
	r := &faultedRun{lane: f, name: c.args, where: where.name, workers: workers, common: common,
		byRank: map[int]*process{}, cut: -1}
	r.begin()
	defer r.clear()
	for range most {
		if !r.inject(where.faults[f.draw.IntN(len(where.faults))]) {
			break
		}
	}
	r.finish(want)
}

// place draws where a run is, and how many workers it has.
func (f *lane) place(c faultCase) (where placement, workers int) {
	if c.alone {
		return onePlace, 1
	}
	where = placements[f.draw.IntN(len(placements))]
	for where.name == "hosts" && f.name == "" || strings.HasSuffix(where.name, "shm") && !c.sharesMemory() {
		where = placements[f.draw.IntN(len(placements))]
	}
	if c.servers() {
		return where, 4
	}
	return where, 2 + f.draw.IntN(3)
}

// want is what a run gives that nothing happens to; runs are compared with it often.
func (f *lane) want(common []string) wanted {
	f.t.Helper()
	key := strings.Join(common, " ")
	f.all.mu.Lock()
	defer f.all.mu.Unlock()
	if _, ok := f.all.wants[key]; !ok {
		works(f.t, f.dir, append(common, "--quiet", "--json", "want.json", "--out", "want", "--overwrite")...)
		f.all.wants[key] = f.got("want")
	}
	return f.all.wants[key]
}

// got is what a run left.
func (f *lane) got(name string) wanted {
	f.t.Helper()
	return wanted{losses(f.t, result(f.t, readFile(f.t, f.dir, name+".json"))),
		readFile(f.t, f.dir, name+"/model.safetensors")}
}

// faultedRun is one run under way.
type faultedRun struct {
	*lane
	name, where string
	workers     int
	common      []string
	at          string // where workers by hand join
	main        *process
	sums        *process         // the switch of hosts, if the strategy needs one
	byRank      map[int]*process // workers by hand
	replaced    []*process       // those that others have replaced
	cut         int              // the host that is cut off now; -1: none
}

// process is a command whose lines are kept with their times.
type process struct {
	*exec.Cmd
	rank  int // -1: the coordinator; -2: a switch
	host  int
	ended chan struct{}
	news  chan struct{}
	mu    sync.Mutex
	text  bytes.Buffer
	marks []mark
}

// mark is when a line was written that tells of a loss or its end.
type mark struct {
	at   time.Time
	line string
}

func (p *process) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for line := range strings.Lines(string(b)) {
		p.marks = append(p.marks, mark{time.Now(), strings.TrimSpace(line)})
	}
	select {
	case p.news <- struct{}{}:
	default:
	}
	return p.text.Write(b)
}

func (p *process) string() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.String()
}

// since finds the first line after a time that has a text in it.
func (p *process) since(at time.Time, text string) (mark, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, m := range p.marks {
		if m.at.After(at) && strings.Contains(m.line, text) {
			return m, true
		}
	}
	return mark{}, false
}

func (p *process) running() bool {
	select {
	case <-p.ended:
		return false
	default:
		return true
	}
}

// command is starling on a host, or here.
func (r *faultedRun) command(rank, host int, args ...string) *process {
	p := &process{rank: rank, host: host, ended: make(chan struct{}), news: make(chan struct{}, 1),
		Cmd: exec.Command(binary, args...)}
	if r.where == "hosts" {
		p.Cmd = r.net("exec", append([]string{fmt.Sprint(host), binary}, args...)...)
	}
	if p.Env == nil {
		p.Env = os.Environ()
	}
	p.Env = append(p.Env, "TMPDIR="+r.tmp)
	p.Dir, p.Stdout, p.Stderr, p.WaitDelay = r.dir, p, p, time.Second
	if err := p.Start(); err != nil {
		r.t.Fatal(err)
	}
	go func() {
		p.Wait()
		close(p.ended)
	}()
	return p
}

func (r *faultedRun) byHand() bool {
	return !strings.HasPrefix(r.where, "started") && r.where != onePlace.name
}

// begin starts the run, and the workers that it does not start itself.
func (r *faultedRun) begin() {
	os.RemoveAll(filepath.Join(r.dir, "ck"))
	os.RemoveAll(filepath.Join(r.dir, "got"))
	if r.byHand() {
		r.at = "10.77.0.1:" + freePort()
		if r.where != "hosts" {
			r.at = "127.0.0.1:" + freePort()
		}
	}
	r.startSwitch()
	r.coordinate()
	for rank := 0; rank < r.workers && r.byHand(); rank++ {
		r.byRank[rank] = r.worker(rank, rank)
	}
}

// startSwitch starts the switch of a strategy that needs one, where workers are on several hosts:
// the one that a run starts itself is for workers of one host.
func (r *faultedRun) startSwitch() {
	if r.where != "hosts" || !strings.Contains(r.name, "switchgnn") {
		return
	}
	addr := "10.77.0.1:" + freePort()
	r.sums = r.command(-2, 0, "switch", "--listen", addr, "--token-file", "token")
	r.await(r.sums, "switching on", time.Time{})
	r.common = append(slices.Clone(r.common), "--switch", addr, "--switch-token-file", "token")
}

// coordinate starts the process that workers join.
func (r *faultedRun) coordinate() {
	args := append(slices.Clone(r.common), "--checkpoint-every", fmt.Sprint(faultCheckpoints), "--checkpoint-dir",
		"ck", "--resume-if-any", "--json", "got.json", "--out", "got")
	if r.where != onePlace.name {
		args = append(args, "--heartbeat", fmt.Sprint(faultHeartbeat))
	}
	if _, transport, ok := strings.Cut(r.where, ", "); ok {
		args = append(args, "--transport", transport)
	}
	if r.byHand() {
		args = append(args, "--no-launch", "--listen", r.at, "--token-file", "token")
	}
	r.main = r.command(-1, 0, args...)
}

// worker starts the worker of a rank by hand, on a host.
func (r *faultedRun) worker(rank, host int) *process {
	return r.command(rank, host, "worker", "--join", r.at, "--rank", fmt.Sprint(rank), "--token-file", "token",
		"--heartbeat", fmt.Sprint(faultHeartbeat))
}

// clear leaves nothing behind.
func (r *faultedRun) clear() {
	r.heal()
	all := append([]*process{r.main}, r.replaced...)
	if r.sums != nil {
		all = append(all, r.sums)
	}
	for _, p := range r.byRank {
		all = append(all, p)
	}
	for _, p := range all {
		p.Process.Kill() // if it still runs
		<-p.ended
	}
}

// finish waits for the end and compares.
func (r *faultedRun) finish(want wanted) {
	r.t.Helper()
	for ended := false; !ended; {
		select {
		case <-r.main.ended:
			ended = true
		case <-r.main.news: // it goes on, however slowly
		case <-time.After(hang):
			r.hangs("it does not end")
			return
		}
	}
	if r.givenUp() {
		return
	}
	if code := r.main.ProcessState.ExitCode(); code != 0 {
		r.t.Errorf("%s, %s, %d workers: status %d%s", r.name, r.where, r.workers, code, r.logs())
		return
	}
	got := r.got("got")
	for e := range want.losses {
		if e >= len(got.losses) || got.losses[e] != want.losses[e] {
			r.t.Errorf("%s, %s, %d workers: the loss of epoch %d is not that of an undisturbed run%s", r.name, r.where,
				r.workers, e+1, r.logs())
			return
		}
	}
	if got.weights != want.weights {
		r.t.Errorf("%s, %s, %d workers: the weights are not those of an undisturbed run%s", r.name, r.where, r.workers,
			r.logs())
	}
	for rank := range r.byRank {
		if !r.leftWell(rank) {
			r.hangs(fmt.Sprintf("no worker of rank %d has ended well", rank))
			return
		}
	}
}

// givenUp reports whether the run has ended as documented: after four starts from the same epoch that
// have failed, by faults of this test.
func (r *faultedRun) givenUp() bool {
	faults := 0
	for _, d := range r.done {
		if d.run == r {
			faults++
		}
	}
	if _, ok := r.main.since(time.Time{}, "4 starts from epoch"); !ok || faults < 4 {
		return false
	}
	r.t.Logf("%s, %s: the documented end after four faults within the same epochs", r.name, r.where)
	return true
}

// leftWell tells whether a worker of a rank has ended with status 0. Where one that was
// replaced has come back, either may have had the place.
func (r *faultedRun) leftWell(rank int) bool {
	late := time.After(hang)
	for {
		for _, p := range append([]*process{r.byRank[rank]}, r.replaced...) {
			if p.rank == rank && !p.running() && p.ProcessState.ExitCode() == 0 {
				return true
			}
		}
		select {
		case <-late:
			return false
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// hangs fails with the stacks of everything that runs.
func (r *faultedRun) hangs(why string) {
	r.t.Helper()
	pids := append(r.started(), r.main.Process.Pid)
	for _, p := range r.byRank {
		pids = append(pids, p.Process.Pid)
	}
	for _, pid := range pids {
		syscall.Kill(pid, syscall.SIGCONT)
		syscall.Kill(pid, syscall.SIGQUIT)
	}
	time.Sleep(2 * time.Second)
	r.t.Errorf("%s, %s, %d workers: %s%s", r.name, r.where, r.workers, why, r.logs())
}

// logs are what the processes of a run said.
func (r *faultedRun) logs() string {
	var b strings.Builder
	tell := func(name string, p *process) {
		fmt.Fprintf(&b, "\n--- %s (pid %d)\n%s", name, p.Process.Pid, long(p.string()))
	}
	tell("the run", r.main)
	for rank, p := range r.byRank {
		tell(fmt.Sprint("rank ", rank), p)
	}
	for _, p := range r.replaced {
		tell("replaced", p)
	}
	for _, d := range r.done {
		if d.run == r {
			fmt.Fprintf(&b, "\n%v", d)
		}
	}
	return b.String()
}

// long is a text without its middle, if it is very long.
func long(text string) string {
	if len(text) < 12000 {
		return text
	}
	return text[:6000] + "\n…\n" + text[len(text)-6000:]
}

package main

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// fault is one thing that happened, and how it went on.
type fault struct {
	run   *faultedRun
	kind  string
	rank  int // -1: the coordinator
	alone bool
	lost  bool          // a worker was lost, and named rightly
	named time.Duration // from the fault until it was
	back  time.Duration // from then until training went on
	total time.Duration // from the fault until training went on; 0: it never stopped
	again int           // epochs that were seen before the fault and trained again
}

func (d fault) String() string {
	what := fmt.Sprintf("rank %d %s", d.rank, d.kind)
	if d.rank < 0 {
		what = "the coordinator killed"
	}
	text := fmt.Sprintf("%s, %s, %d workers: %s", d.run.name, d.run.where, d.run.workers, what)
	if d.total == 0 {
		return text
	}
	if !d.lost && d.rank >= 0 {
		text += "; ANOTHER was named"
	}
	return text + fmt.Sprintf("; noticed after %.2f s, training went on %.2f s later, %d epochs again",
		d.named.Seconds(), d.back.Seconds(), d.again)
}

// inject has something happen to the run at a random moment, and waits until all is
// well again; sometimes it does not, so that the next fault is during a recovery. It is
// false when the run has ended before.
func (r *faultedRun) inject(kind string) bool {
	r.t.Helper()
	if !r.trains() {
		return false
	}
	time.Sleep(time.Duration(r.draw.IntN(500)) * time.Millisecond)
	if !r.main.running() || r.lastEpochShown() {
		return false // workers by hand have ended, and would not join a coordinator that is started again
	}
	d := fault{run: r, kind: kind, rank: r.draw.IntN(r.workers), alone: true}
	last := len(r.done) - 1
	if last >= 0 && r.done[last].run == r && !r.done[last].alone {
		d.alone = false
	}
	patient := r.draw.IntN(4) > 0
	began := time.Now()
	switch kind {
	case "coordinator":
		d.rank = -1
		saved, writing := r.restart()
		patient = true
		if !r.await(r.main, "epoch ", began) {
			return false
		}
		m, _ := r.main.since(began, " parameters")
		d.total = m.at.Sub(began)
		d.back = d.total
		done := afterEpoch(m.line, "going on after epoch ")
		if done < saved {
			r.t.Errorf("%v: it goes on from epoch %d, and a state of epoch %d is on disk%s", d, done, saved, r.logs())
		}
		r.repeats(&d, began, done, writing)
	case "restored", "paused":
		if !r.interrupt(&d) {
			return false
		}
		patient = true
		if _, lost := r.main.since(began, "lost rank"); lost {
			r.recovered(&d, began)
		}
	default:
		if !r.remove(&d) {
			return false
		}
		if patient {
			r.recovered(&d, began)
		}
	}
	d.alone = d.alone && patient
	r.done = append(r.done, d)
	return !r.t.Failed()
}

// trains waits for the first epoch; now and then it does not, so that faults are while
// workers join.
func (r *faultedRun) trains() bool {
	if r.draw.IntN(6) == 0 {
		return true
	}
	return r.await(r.main, "epoch ", time.Time{})
}

// lastEpochShown reports whether the run only has to write its results.
func (r *faultedRun) lastEpochShown() bool {
	r.main.mu.Lock()
	defer r.main.mu.Unlock()
	return slices.ContainsFunc(r.main.marks, func(m mark) bool {
		var epoch, of int
		n, _ := fmt.Sscanf(m.line, "epoch %d/%d", &epoch, &of)
		return n == 2 && epoch == of
	})
}

// await waits for a line. It is false when the run ends before.
func (r *faultedRun) await(p *process, text string, after time.Time) bool {
	r.t.Helper()
	late := time.After(hang)
	for {
		if _, ok := p.since(after, text); ok {
			return true
		}
		select {
		case <-p.news:
		case <-p.ended:
			_, ok := p.since(after, text)
			return ok
		case <-late:
			r.hangs(fmt.Sprintf("%s after %q nothing is said of %q", hang, r.last(), text))
			return false
		}
	}
}

func (r *faultedRun) last() string {
	for _, d := range slices.Backward(r.done) {
		if d.run == r {
			return d.String()
		}
	}
	return "the start"
}

// recovered waits for the word that training goes on, and takes the times.
func (r *faultedRun) recovered(d *fault, began time.Time) {
	r.t.Helper()
	late := time.After(hang)
	for !r.goesOn(began) {
		_, lost := r.main.since(began, "lost rank")
		if _, trains := r.main.since(began.Add(3*faultHeartbeat*time.Second), "epoch "); trains && !lost {
			return // none was: it happened while they joined
		}
		select {
		case <-r.main.news:
		case <-r.main.ended:
			if !r.goesOn(began) {
				return
			}
		case <-late:
			r.hangs(fmt.Sprintf("%v after rank %d was %s training does not go on", hang, d.rank, d.kind))
			return
		}
	}
	lost, _ := r.main.since(began, "lost rank")
	on, _ := r.main.since(lost.at, "training goes on")
	if on.at.IsZero() { // of a loss before; the next one is on its way
		r.await(r.main, "training goes on", lost.at)
		on, _ = r.main.since(lost.at, "training goes on")
	}
	d.named, d.back, d.total = lost.at.Sub(began), on.at.Sub(lost.at), on.at.Sub(began)
	d.lost = strings.Contains(lost.line, fmt.Sprintf("lost rank %d ", d.rank))
	r.repeats(d, lost.at, afterEpoch(on.line, "training goes on from epoch "), false)
}

// afterEpoch is the number of epochs that are done where a line says that training goes on.
func afterEpoch(line, text string) (done int) {
	_, after, _ := strings.Cut(line, text)
	fmt.Sscanf(after, "%d", &done)
	return done
}

// repeats counts the epochs that were shown before a fault and are trained again. They are at most
// those since the last state; one more interval may have been on its way. On disk, states that
// newer ones replaced before they were written are named, once the disk has written the one before: where it was still
// at it, skipped is true.
func (r *faultedRun) repeats(d *fault, at time.Time, done int, skipped bool) {
	r.t.Helper()
	shown := 0
	for _, p := range append([]*process{r.main}, r.replaced...) {
		if p.rank >= 0 {
			continue
		}
		p.mu.Lock()
		for _, m := range p.marks {
			if m.at.Before(at) {
				shown = max(shown, afterEpoch(m.line, "epoch "))
				skipped = skipped || strings.Contains(m.line, "skipped: newer ones")
			}
		}
		p.mu.Unlock()
	}
	d.again = max(0, shown-done)
	if d.again > 2*faultCheckpoints && !skipped {
		r.t.Errorf("%v: %d epochs are trained again%s", d, d.again, r.logs())
	}
}

// goesOn tells whether training went on after a loss.
func (r *faultedRun) goesOn(began time.Time) bool {
	_, ok := r.main.since(began, "training goes on")
	return ok
}

// remove does what a worker does not survive where it is, and starts another in its place
// if it was started by hand.
func (r *faultedRun) remove(d *fault) bool {
	r.t.Helper()
	signal := syscall.SIGKILL
	switch d.kind {
	case "stopped":
		signal = syscall.SIGSTOP
	case "cut":
		return r.cutOff(d)
	}
	began := time.Now()
	pid := r.pid(d.rank)
	if pid == 0 || syscall.Kill(pid, signal) != nil {
		return false
	}
	if !r.byHand() {
		return true
	}
	if d.kind == "stopped" {
		r.noticed(began)
	}
	r.replace(d.rank, r.byRank[d.rank].host)
	return true
}

// noticed waits until a loss would have been noticed. The loss of a worker that has not joined
// yet is not told.
func (r *faultedRun) noticed(began time.Time) {
	late := time.After(3 * faultHeartbeat * time.Second)
	for {
		if _, ok := r.main.since(began, "lost rank"); ok {
			return
		}
		select {
		case <-r.main.news:
		case <-r.main.ended:
			return
		case <-late:
			return
		}
	}
}

// replace starts another worker of a rank.
func (r *faultedRun) replace(rank, host int) {
	r.replaced = append(r.replaced, r.byRank[rank])
	r.byRank[rank] = r.worker(rank, host)
}

// cutOff unplugs a host for good; its worker comes again on another.
func (r *faultedRun) cutOff(d *fault) bool {
	r.t.Helper()
	r.heal()
	began := time.Now()
	if d.rank = r.onHost(); d.rank < 0 {
		return false // all have moved to the first
	}
	r.unplug(r.byRank[d.rank].host)
	r.noticed(began)
	for rank, p := range r.byRank {
		if p.host == r.cut {
			r.replace(rank, 0)
		}
	}
	return true
}

// onHost is a rank that is not on the first host, where the coordinator is; -1: none.
func (r *faultedRun) onHost() int {
	for rank := range r.workers {
		if r.byRank[rank].host > 0 {
			return rank
		}
	}
	return -1
}

func (r *faultedRun) unplug(host int) {
	r.t.Helper()
	if out, err := r.net("cut", fmt.Sprint(host)).CombinedOutput(); err != nil {
		r.t.Fatalf("%v: %s", err, out)
	}
	r.cut = host
}

// heal plugs in what is cut off.
func (r *faultedRun) heal() {
	if r.cut >= 0 && r.where == "hosts" {
		r.net("restore", fmt.Sprint(r.cut)).Run()
	}
	r.cut = -1
}

// interrupt stops a worker, or cuts off a host, and undoes it after a while: before or
// after it was noticed.
func (r *faultedRun) interrupt(d *fault) bool {
	r.t.Helper()
	while := time.Duration(r.draw.IntN(2*faultHeartbeat*1000)) * time.Millisecond
	d.kind = fmt.Sprintf("%s after %.1f s", d.kind, while.Seconds())
	if r.where == "hosts" && strings.HasPrefix(d.kind, "restored") {
		r.heal()
		r.unplug(r.byRank[d.rank].host)
		r.pass(while)
		r.heal()
		return true
	}
	pid := r.pid(d.rank)
	if pid == 0 || syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return false
	}
	r.pass(while)
	syscall.Kill(pid, syscall.SIGCONT)
	return true
}

// pass lets pass time, unless the run ends.
func (r *faultedRun) pass(while time.Duration) {
	select {
	case <-r.main.ended:
	case <-time.After(while):
	}
}

// restart kills the coordinator, and starts it again. It returns the epoch of the newest state on disk, and whether
// another was being written.
func (r *faultedRun) restart() (saved int, writing bool) {
	r.main.Process.Kill()
	<-r.main.ended
	r.replaced = append(r.replaced, r.main)
	saved, writing = statesIn(filepath.Join(r.dir, "ck"))
	time.Sleep(time.Duration(r.draw.IntN(300)) * time.Millisecond)
	r.coordinate()
	return saved, writing
}

// statesIn is the epoch of the newest state in a folder of them, and whether there is one that is not whole.
func statesIn(dir string) (newest int, partial bool) {
	list, _ := os.ReadDir(dir)
	for _, entry := range list {
		epoch := 0
		if _, err := fmt.Sscanf(entry.Name(), "epoch-%d", &epoch); err != nil {
			partial = partial || strings.HasPrefix(entry.Name(), ".epoch-")
		}
		newest = max(newest, epoch)
	}
	return newest, partial
}

// pid is the process of a rank; 0: there is none now.
func (r *faultedRun) pid(rank int) int {
	if r.where == onePlace.name {
		return r.main.Process.Pid
	}
	if r.byHand() {
		if !r.byRank[rank].running() {
			return 0
		}
		return r.byRank[rank].Process.Pid
	}
	for _, pid := range r.started() {
		args, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
		words := strings.Split(string(args), "\x00")
		if i := slices.Index(words, "--rank"); i >= 0 && words[i+1] == fmt.Sprint(rank) {
			return pid
		}
	}
	return 0
}

// started are the workers' processes that the run has started.
func (r *faultedRun) started() (pids []int) {
	for _, pid := range workersOf(r.t, r.dir) {
		stat, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
		if after := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])); len(after) > 1 &&
			after[1] == fmt.Sprint(r.main.Process.Pid) {
			pids = append(pids, pid)
		}
	}
	return pids
}

// faultTable is what the docs show: by kind of fault, how many, and how long until the loss
// was named and until training went on.
func faultTable(done []fault) string {
	var b strings.Builder
	b.WriteString("| fault | times | timed | until named | from there until training continued | epochs again |\n" +
		"| --- | ---: | ---: | ---: | ---: | ---: |\n")
	kinds := map[string][]fault{}
	for _, d := range done {
		kind, _, _ := strings.Cut(d.kind, " after")
		kinds[kind] = append(kinds[kind], d)
		kinds["all"] = append(kinds["all"], d)
	}
	for _, kind := range []string{"killed", "stopped", "paused", "cut", "restored", "coordinator", "all"} {
		var named, back []time.Duration
		again := 0
		for _, d := range kinds[kind] {
			again = max(again, d.again)
			if d.alone && d.total > 0 {
				named, back = append(named, d.named), append(back, d.back)
			}
		}
		fmt.Fprintf(&b, "| %s | %d | %d | %s | %s | %d |\n", kind, len(kinds[kind]), len(back), medianAndMax(named),
			medianAndMax(back), again)
	}
	longest := slices.MaxFunc(append(done, fault{run: &faultedRun{}}),
		func(a, b fault) int { return cmp.Compare(a.total, b.total) })
	fmt.Fprintf(&b, "longest from a fault until training continued: %v\n", longest)
	by := map[string]int{}
	for _, d := range done {
		by[d.run.name]++
		by[d.run.where]++
	}
	for _, name := range slices.Sorted(maps.Keys(by)) {
		fmt.Fprintf(&b, "%4d  %s\n", by[name], name)
	}
	return b.String()
}

// medianAndMax is the median and the most.
func medianAndMax(list []time.Duration) string {
	if len(list) == 0 {
		return "—"
	}
	slices.Sort(list)
	return fmt.Sprintf("%.2f s (%.2f s)", list[len(list)/2].Seconds(), list[len(list)-1].Seconds())
}

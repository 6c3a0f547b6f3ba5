package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"starling/internal/testseed"
)

const (
	lostTimeout = 5                // seconds that a run waits for a lost worker
	lostSlack   = 60 * time.Second // for a machine with other work
)

// lostCases are what workers train when one of them is lost: every strategy of mini-batches, what is learnt beside the
// weights, also where runs are not repeatable, and the full graph over several paths.
func lostCases() (list []faultCase) {
	for _, c := range faultCases() {
		if strings.Contains(c.args, "--mode mini --strategy") || strings.Contains(c.args, "--paths") {
			list = append(list, c)
		}
	}
	return append(list, faultCase{args: "--mode mini --strategy distdgl --learn-embeddings 8 --async-embeddings"})
}

// TestSurvivorsOfALostWorkerEnd kills a worker right after an epoch, in runs whose workers were started by hand: the
// others wait for another one until --timeout, and no longer, and obey SIGTERM meanwhile, also where only the launcher
// is sent it. STARLING_LOST_RUNS is how often, STARLING_FAULT_CASES of which cases, an expression;
// scripts/lost-workers has 200.
func TestSurvivorsOfALostWorkerEnd(t *testing.T) {
	t.Parallel()
	n, _ := strconv.Atoi(os.Getenv("STARLING_LOST_RUNS"))
	all := &results{dir: small(t), wants: map[string]wanted{}}
	all.prepare(t)
	cases, places := lostCases(), []string{"by hand, tcp", "by hand, shm", "hosts"}
	if n == 0 {
		n, places = 2, places[:1]
		cases = slices.DeleteFunc(cases, func(c faultCase) bool {
			return !strings.HasSuffix(c.args, "--learn-embeddings 8")
		})
	}
	cases = chosenCases(t, cases)
	lanes := min(4, (n+1)/2)
	seed := testseed.New(t)
	longest := make([]lostTimes, lanes)
	t.Run("lanes", func(t *testing.T) {
		for lane := range lanes {
			t.Run(fmt.Sprint(lane), func(t *testing.T) {
				t.Parallel()
				f := newLane(t, all, seed, 50+lane)
				for i := lane; i < n && !t.Failed(); i += lanes {
					l := lossAt(i, len(cases), len(places))
					where := places[l.place]
					if where == "hosts" && f.name == "" || strings.HasSuffix(where, "shm") && !cases[l.number].sharesMemory() {
						where = places[0]
					}
					f.lose(cases[l.number], where, l.term, &longest[lane])
				}
				nothingLeftOf(t, f.dir, f.tmp)
			})
		}
	})
	t.Logf("%d runs; the longest until survivors ended, by themselves and by SIGTERM: %v", n, longest)
}

// loss is a run of the schedule: the numbers of its case and its place, and whether survivors are told to end.
type loss struct {
	number, place int
	term          bool
}

// lossAt is a run by its number. As many runs as there are pairs have every case end both ways; three times as many
// have them do so in every place.
func lossAt(i, cases, places int) loss {
	return loss{number: i / 2 % cases, place: (i/2%cases + i/2/cases) % places, term: i%2 == 1}
}

// TestLostWorkersScheduleHasEveryPair: whatever the number of cases is, every one ends by itself and by SIGTERM.
func TestLostWorkersScheduleHasEveryPair(t *testing.T) {
	const places = 3
	for cases := 1; cases < 40; cases++ {
		met := map[loss]bool{}
		for i := range 2 * cases * places {
			met[lossAt(i, cases, places)] = true
			if pairs := 2 * cases; i == pairs-1 && len(met) != pairs {
				t.Errorf("%d cases: the first %d runs have %d different ones", cases, pairs, len(met))
			}
		}
		if len(met) != 2*cases*places {
			t.Errorf("%d cases: %d of %d are met", cases, len(met), 2*cases*places)
		}
	}
}

// lostTimes are the longest times until survivors ended, beyond --timeout and after SIGTERM.
type lostTimes struct{ beyond, term time.Duration }

// lose is a run that loses rank 2 after an epoch. With term the others are then told to end, or their launcher is.
func (f *lane) lose(c faultCase, where string, term bool, longest *lostTimes) {
	f.t.Helper()
	workers := 3
	if c.servers() {
		workers = 4
	}
	common := append(c.command(filepath.Join(f.all.dir, c.data(workers))), "--timeout", fmt.Sprint(lostTimeout), "--epochs",
		"1000000")
	r := &faultedRun{lane: f, name: c.args, where: where, workers: workers, common: common,
		byRank: map[int]*process{}, cut: -1}
	r.begin()
	defer r.clear()
	if !r.await(r.main, "epoch ", time.Time{}) {
		f.t.Fatalf("%s, %s: no epoch%s", r.name, where, r.logs())
	}
	r.byRank[2].Process.Kill()
	began := time.Now()
	if term {
		time.Sleep(time.Duration(f.draw.IntN(1000)) * time.Millisecond) // from a wait in a step to joining again
		launcher := f.draw.IntN(2) == 0
		began = time.Now()
		if launcher {
			r.main.Process.Signal(syscall.SIGTERM)
			r.ends(r.main, began)
		}
		for rank, p := range r.byRank {
			if rank != 2 && !launcher {
				p.Process.Signal(syscall.SIGTERM)
			}
		}
	}
	for rank, p := range r.byRank {
		if rank != 2 {
			r.ends(p, began)
		}
	}
	if took := time.Since(began); term {
		longest.term = max(longest.term, took)
		f.t.Logf("%s, %s: ended %v after SIGTERM", r.name, where, took)
		if took > time.Second { // a slow machine, or a wait that does not obey
			f.t.Log(r.logs())
		}
	} else {
		longest.beyond = max(longest.beyond, took-lostTimeout*time.Second)
		f.t.Logf("%s, %s: ended after %v", r.name, where, took)
	}
	if !term {
		r.ends(r.main, began)
	}
}

// ends waits for the end of a process.
func (r *faultedRun) ends(p *process, began time.Time) {
	r.t.Helper()
	select {
	case <-p.ended:
	case <-time.After(time.Until(began.Add(lostTimeout*time.Second + lostSlack))):
		r.hangs(fmt.Sprintf("rank %d is still there %v after rank 2 was lost", p.rank, time.Since(began)))
	}
}

// TestAWorkerThatLooksForItsRunObeysSIGTERM: nothing listens where it is to join.
func TestAWorkerThatLooksForItsRunObeysSIGTERM(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := start(t, dir, "worker", "--join", "127.0.0.1:"+freePort(), "--rank", "0", "--timeout", "600")
	time.Sleep(200 * time.Millisecond) // it may be anywhere by then
	w.Process.Signal(syscall.SIGTERM)
	if code := w.end(); code != 130 && code != -1 { // -1: the signal came before the program was ready for one
		t.Errorf("status %d: %s", code, w.stderr.String())
	}
}

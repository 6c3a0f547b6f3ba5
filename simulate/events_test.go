package simulate

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"starling/dataset/generate"
	"starling/event"
	"starling/report/web"
	"starling/setup/setuptest"
	"starling/wire"
)

// watchedTwice simulates strategies on three workers twice, and returns the folder of events of the first, which the
// second has too, to the byte.
func watchedTwice(t *testing.T, change func(*Options), strategies ...string) (string, *Simulated) {
	t.Helper()
	o := simulated(setuptest.Block(t, func(p *generate.Params) { p.Nodes, p.Edges = 90, 600 }), strategies...)
	o.Cluster.Workers, o.Rate = 3, "100Mbps"
	change(&o)
	var folders []string
	var r *Simulated
	for i := range 2 {
		o.Events = filepath.Join(t.TempDir(), "a", fmt.Sprint("folder", i))
		folders, r = append(folders, o.Events), simulate(t, o)
	}
	for _, name := range strategies {
		first, second := lines(t, folders[0], name), lines(t, folders[1], name)
		for i := range first {
			if i >= len(second) || !bytes.Equal(first[i], second[i]) {
				t.Fatalf("%s: line %d differs:\n%s\n%s", name, i+1, first[i], second[min(i, len(second)-1)])
			}
		}
		if len(first) != len(second) {
			t.Errorf("%s: %d and %d lines", name, len(first), len(second))
		}
	}
	return folders[0], r
}

// lines are the events of a strategy.
func lines(t *testing.T, dir, strategy string) [][]byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(strategy, ":", "-")+".jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSpace(b), []byte("\n"))
}

// TestEventsInVirtualTime: the files of two simulations are the same to the byte; they have what starling train writes,
// at virtual times, with what every worker did and waited for, and its bytes planned beside counted.
func TestEventsInVirtualTime(t *testing.T) {
	dir, r := watchedTwice(t, func(o *Options) {}, "halo", "bns:0.5")
	var order []string
	waited, sent, known := make([]float64, 3), make([]int64, 3), make([]float64, 3)
	planned, counted, expected := make([]int64, 3), make([]int64, 3), int64(0)
	for _, line := range lines(t, dir, "halo") {
		e, at, err := event.DecodeAt(line)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimPrefix(fmt.Sprintf("%T", e), "event.")
		if n := len(order); n == 0 || order[n-1] != name {
			order = append(order, name)
		}
		since := at.Sub(wire.VirtualStart).Seconds()
		if since < 0 || since > r.Rows[0].Network.Seconds+1e-9 {
			t.Errorf("%s at %v s of %v s", name, since, r.Rows[0].Network.Seconds)
		}
		switch e := e.(type) {
		case event.Opened:
			if !e.Virtual || strings.Contains(e.Settings, os.TempDir()+"/starling") {
				t.Errorf("%+v", e)
			}
		case event.Planned:
			expected = e.EpochBytes
		case event.Worker:
			for i := range e.Slices {
				s := &e.Slices[i]
				waited[e.Worker], known[e.Worker] = waited[e.Worker]+s.Wait, known[e.Worker]+s.Seconds
				if s.Wait > s.Seconds || s.Wait > 0 && (s.For < 0 || s.For == e.Worker || s.For > 2) || s.Ago < 0 {
					t.Errorf("rank %d: %+v", e.Worker, s)
				}
			}
			sent[e.Worker], planned[e.Worker], counted[e.Worker] = 0, 0, 0
			for _, x := range e.Traffic {
				planned[e.Worker], counted[e.Worker] = planned[e.Worker]+x.Planned, counted[e.Worker]+x.Counted
			}
			for _, b := range e.To {
				sent[e.Worker] += b
			}
			if e.PID != 0 || e.Memory != 0 || e.Host != fmt.Sprint("host ", e.Worker) {
				t.Errorf("%+v", e)
			}
		case event.Result:
			if strings.Contains(string(e.Report), `"made"`) {
				t.Error("the result has a date")
			}
		}
	}
	text := strings.Join(order, " ")
	if !strings.HasPrefix(text, "Opened Planned Started") || !strings.Contains(text, "Epoch Worker") ||
		!strings.Contains(text, "Worker Done") || !strings.HasSuffix(text, "Result") {
		t.Error(text)
	}
	total := int64(0)
	for rank := range 3 {
		if total += sent[rank]; waited[rank] <= 0 || waited[rank] >= known[rank] ||
			known[rank] > 1.01*r.Rows[0].Network.Seconds || known[rank] < 0.7*r.Rows[0].Network.Seconds {
			t.Errorf("rank %d waited %v s of %v s; the run took %v s", rank, waited[rank], known[rank],
				r.Rows[0].Network.Seconds)
		}
	}
	if want := r.Rows[0].Run.Bytes.Total; total != want || expected <= 0 || expected >= want {
		t.Errorf("%d bytes, %d planned per epoch, want %d in all", total, expected, want)
	}
	if fmt.Sprint(planned) != fmt.Sprint(counted) || fmt.Sprint(counted) != fmt.Sprint(sent) {
		t.Errorf("%d bytes planned, %d counted, %d sent to others", planned, counted, sent)
	}
}

// TestEventsOfBatches: so are files of mini-batches, whose workers fetch from several goroutines.
func TestEventsOfBatches(t *testing.T) {
	dir, _ := watchedTwice(t, func(o *Options) {
		o.Mode, o.Model.Name, o.Batches.Size, o.Training.Epochs = "mini", "sage", 30, 2
	}, "distdgl", "salient")
	if n := len(lines(t, dir, "salient")); n < 8 {
		t.Errorf("%d lines", n)
	}
}

// TestPageOfVirtualTime: the page of such a file has a strip of each worker with its waiting, times that are read, and
// says that they are virtual.
func TestPageOfVirtualTime(t *testing.T) {
	o := simulated(setuptest.Block(t, nil), "halo")
	o.Cluster.Workers, o.Rate, o.Events = 4, "1Gbps", t.TempDir()
	simulate(t, o)
	run := web.NewRun("")
	for _, line := range lines(t, o.Events, "halo") {
		e, at, err := event.DecodeAt(line)
		if err != nil {
			t.Fatal(err)
		}
		run.Take(e, at)
	}
	page := string(web.Page(run))
	strips := regexp.MustCompile(`(?s)aria-label="(rank \d) over time".*?</svg>`).FindAllStringSubmatch(page, -1)
	if len(strips) != 4 {
		t.Fatalf("%d strips", len(strips))
	}
	for r, s := range strips {
		columns := 0
		for _, part := range regexp.MustCompile(`<path class="k-wait" d="([^"]*)"`).FindAllStringSubmatch(s[0], -1) {
			columns += strings.Count(strings.ToUpper(part[1]), "M")
		}
		if s[1] != fmt.Sprint("rank ", r) || columns == 0 {
			t.Errorf("%s has no waiting: %.300s", s[1], s[0])
		}
	}
	for _, want := range []string{"<dt>virtual time</dt>", "Virtual time, of simulated workers", "Time that was waited",
		"yes, to the byte", "host 3"} {
		if !strings.Contains(page, want) {
			t.Errorf("no %q", want)
		}
	}
	for _, not := range []string{"so far", ">0 ms<", ">process<", ">peak<"} {
		if strings.Contains(page, not) {
			t.Errorf("it has %q", not)
		}
	}
}

// TestEventFiles: names are safe, and differ; what is no folder, or cannot be written, is refused.
func TestEventFiles(t *testing.T) {
	taken := map[string]bool{}
	var got []string
	for _, name := range []string{"halo+relay", "bns:0.5", "BNS/0.5", "..", ""} {
		got = append(got, freeName(fileName(name), taken))
	}
	if text := strings.Join(got, " "); text != "halo+relay bns-0.5 BNS-0.5-2 run.. run" {
		t.Error(text)
	}
	dir := setuptest.Block(t, nil)
	file := filepath.Join(t.TempDir(), "file")
	folder := filepath.Join(t.TempDir(), "halo.jsonl")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for events, want := range map[string]string{file: "is a file", filepath.Join(file, "x"): "--events",
		filepath.Dir(folder): "this is a folder", "-": "--events"} {
		o := simulated(dir, "halo")
		o.Events = events
		if _, err := Train(t.Context(), o, nil); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v", events, err)
		}
	}
}

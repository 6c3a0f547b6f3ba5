package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
)

// epochShown is the epoch that the head of a page shows.
const epochShown = `+(document.querySelector("dl.facts dd")?.textContent.split(" ")[0].replaceAll(",", "") ?? 0)`

// TestLivePage: a browser follows a run of four workers, sees that one is lost and comes back, is loaded again, follows
// to the end, and saves the page, which opens from disk without a network and has the numbers of --json.
func TestLivePage(t *testing.T) {
	t.Parallel()
	chromium(t)
	dir := small(t)
	s := start(t, dir, trainArgs("--workers", "4", "--epochs", "100000", "--eval-every", "5", "--checkpoint-every", "20",
		"--heartbeat", "60", "--web", "127.0.0.1:0", "--json", "r.json")...)
	link := s.until(t, `this run's page: (http://\S+)`)[1]
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	p := openTab(t, link, "light", 1280)
	p.until(epochShown + " > 0")
	first := value[float64](p, epochShown)
	p.until(epochShown + " > " + string(mustJSON(t, first)))
	p.until(`document.querySelectorAll("svg.strip").length == 4`)

	go s.out.WriteTo(&s.stdout) // what follows is not looked at
	if err := syscall.Kill(workersOf(t, dir)[2], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	p.until(`document.querySelector("#curves .mark.lost")`)
	p.until(`document.querySelector("#happened-0 .is-lost")?.textContent.includes("lost rank ")`)
	p.until(`document.querySelector("#curves .mark.back")`)
	p.do(chromedp.Reload())
	p.until(`document.querySelector("#curves .mark.lost")`)
	first = value[float64](p, epochShown)
	p.until(epochShown + " > " + string(mustJSON(t, first)))
	p.values(`#curves svg.curves`, "loss")
	p.values(`#time-0 svg.strip`, "computing")
	p.values(`#bytes-0 .heat-grid svg`, "rank")
	p.sorts()
	p.fits("light", 1280)
	p.fits("dark", 400)
	p.looksAs("light", 1280)

	if err := s.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	p.until(`document.getElementById("link-state").textContent == "The run is over."`)
	s.Wait()
	m := result(t, readFile(t, dir, "r.json"))
	p.do(chromedp.Click(chromedp.CSS("#save")))
	saved := p.downloaded()
	p.quiet(u.Host)

	file := filepath.Join(t.TempDir(), "saved.html")
	if err := os.WriteFile(file, saved, 0o644); err != nil {
		t.Fatal(err)
	}
	p = openTab(t, "file://"+file, "light", 1280)
	var got []struct{ Loss, Val, EpochSeconds []float64 }
	decode(t, value[string](p, `JSON.stringify(JSON.parse(document.getElementById("numbers").textContent).map(n =>
		({Loss: n.loss, Val: n.val.filter(x => x !== null), EpochSeconds: n.epoch_seconds})))`), &got)
	var want struct {
		Loss         []float64
		ValAccuracy  []float64 `json:"val_accuracy"`
		EpochSeconds []float64 `json:"epoch_seconds"`
	}
	decode(t, string(mustJSON(t, m)), &want)
	if len(got) != 1 || !same(got[0].Loss, want.Loss) || !same(got[0].Val, want.ValAccuracy) ||
		!same(got[0].EpochSeconds, want.EpochSeconds) {
		t.Errorf("%d and %d losses", len(got[0].Loss), len(want.Loss))
	}
	for _, mark := range []string{"lost", "back"} {
		if !value[bool](p, `!!document.querySelector("#curves .mark.`+mark+`")`) {
			t.Errorf("no mark: %s", mark)
		}
	}
	p.values(`#curves svg.curves`, "loss")
	p.sorts()
	p.fits("light", 1280)
	p.fits("dark", 400)
	p.quiet("")
	nothingLeft(t, dir)
}

func same(a, b []float64) bool {
	return len(b) > 0 && strings.Join(texts(a), " ") == strings.Join(texts(b), " ")
}

func texts(list []float64) (out []string) {
	for _, x := range list {
		b, _ := json.Marshal(x)
		out = append(out, string(b))
	}
	return out
}

func mustJSON(t *testing.T, x any) []byte {
	t.Helper()
	b, err := json.Marshal(x)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decode(t *testing.T, text string, x any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), x); err != nil {
		t.Fatal(err)
	}
}

// values makes sure that a word shows under the pointer somewhere over an element.
func (p *tab) values(selector, word string) {
	p.t.Helper()
	at := value[[]float64](p, `(() => { const e = document.querySelector("`+selector+`");
		e.scrollIntoView({block: "center"});
		const r = e.getBoundingClientRect(); return [r.left, r.width, r.top + r.height / 2]; })()`)
	end := time.Now().Add(hang)
	for i := 0; ; i++ {
		p.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, at[0]+at[1]*(float64(i%16)+0.5)/16, at[2]))
		text := value[string](p, `(e => !e || e.hidden ? "" : e.textContent)(document.getElementById("values"))`)
		if strings.Contains(text, word) {
			break
		}
		if time.Now().After(end) {
			p.t.Fatalf("over %s: %q", selector, text)
		}
	}
	p.do(chromedp.MouseEvent(input.DispatchMouseEventTypeMouseMoved, 1, 1))
	p.until(`document.getElementById("values").hidden`)
}

// sorts makes sure that a click on the head of a column sorts a table, one more the other way.
func (p *tab) sorts() {
	p.t.Helper()
	ranks := `[...document.querySelectorAll("#workers-0 tbody tr")].map(r => r.cells[0].textContent).join("")`
	for _, want := range []string{"0123", "3210"} {
		p.do(chromedp.Click(chromedp.CSS("#workers-0 th")))
		p.until(ranks + ` == "` + want + `"`)
	}
}

// downloaded is the file that was saved.
func (p *tab) downloaded() []byte {
	p.t.Helper()
	for end := time.Now().Add(hang); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		b, err := os.ReadFile(filepath.Join(p.downloads, "run.html"))
		if err == nil && strings.HasSuffix(strings.TrimSpace(string(b)), "</html>") {
			return b
		}
	}
	p.t.Fatal("no file was saved")
	return nil
}

// TestNothingListens: a run has no address to connect to unless one was asked for.
func TestNothingListens(t *testing.T) {
	t.Parallel()
	dir := small(t)
	for args, want := range map[string]int{"--workers 1": 0, "--workers 2 --in-process": 0, "--web 127.0.0.1:0": 1} {
		s := start(t, dir, trainArgs(append(strings.Fields(args), endless...)...)...)
		s.until(t, `^epoch `)
		if got := listens(t, s.Process.Pid); got != want {
			t.Errorf("%s: it listens at %d addresses, want %d", args, got, want)
		}
		s.Process.Kill()
		s.end()
	}
}

// listens is how many TCP addresses a process listens at.
func listens(t *testing.T, pid int) (n int) {
	t.Helper()
	own := map[string]bool{}
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil || len(fds) == 0 {
		t.Skip("there is no /proc here to look for sockets in")
	}
	for _, fd := range fds {
		if to, err := os.Readlink(fd); err == nil {
			own[to] = true
		}
	}
	for _, table := range []string{"tcp", "tcp6"} {
		b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		for line := range strings.Lines(string(b)) {
			const state, inode, listening = 3, 9, "0A"
			if f := strings.Fields(line); len(f) > inode && f[state] == listening && own["socket:["+f[inode]+"]"] {
				n++
			}
		}
	}
	return n
}

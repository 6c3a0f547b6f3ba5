package main

import (
	"bytes"
	"context"
	"image/png"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
)

// chromium is the browser that pages are looked at with, one for all tests; a test is left out without one.
func chromium(t *testing.T) context.Context {
	t.Helper()
	ctx, err := startBrowser()
	if ctx == nil && err == nil {
		t.Skip("no Chromium here: scripts/test-tools installs it")
	}
	if err != nil {
		t.Fatal(err)
	}
	return ctx
}

// endBrowser ends what startBrowser has started.
var endBrowser = func() {}

var startBrowser = sync.OnceValues(func() (context.Context, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		flags := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
			chromedp.DisableGPU, chromedp.Flag("hide-scrollbars", true))
		all, end := chromedp.NewExecAllocator(context.Background(), flags...)
		ctx, _ := chromedp.NewContext(all)
		endBrowser = end
		return ctx, chromedp.Do(ctx)
	}
	return nil, nil
})

// tab is a page in the browser, and what went wrong in it.
type tab struct {
	t         *testing.T
	ctx       context.Context
	downloads string // the folder of files that are saved
	mu        struct {
		sync.Mutex
		console []string
		asked   []string // addresses
	}
}

// openTab opens an address in a tab that shares nothing with others.
func openTab(t *testing.T, address, mode string, width int) *tab {
	t.Helper()
	ctx, end := chromedp.NewContext(chromium(t), chromedp.WithNewBrowserContext())
	t.Cleanup(end)
	ctx, end = context.WithTimeout(ctx, hang)
	t.Cleanup(end)
	p := &tab{t: t, ctx: ctx, downloads: t.TempDir()}
	console, asked := chromedp.Console(ctx), chromedp.Events(ctx, network.RequestWillBeSent)
	go func() {
		for m, err := range console {
			if err != nil {
				return
			}
			p.note(&p.mu.console, string(m.Type)+": "+m.Text+" "+m.URL)
		}
	}()
	go func() {
		for e, err := range asked {
			if err != nil {
				return
			}
			p.note(&p.mu.asked, e.Request.URL)
		}
	}()
	call(p, network.Enable, network.EnableParams{})
	_, err := chromedp.CallBrowser(ctx, browser.SetDownloadBehavior, browser.SetDownloadBehaviorParams{
		Behavior: browser.SetDownloadBehaviorBehaviorAllow, DownloadPath: p.downloads,
		BrowserContextID: chromedp.FromContext(ctx).BrowserContextID})
	if err != nil {
		t.Fatal(err)
	}
	p.looksAs(mode, width)
	p.do(chromedp.Navigate(address))
	return p
}

func (p *tab) note(list *[]string, text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	*list = append(*list, text)
}

// call has the browser do something with the tab.
func call[P, R any](p *tab, what cdp.Command[P, R], params P) R {
	p.t.Helper()
	r, err := chromedp.Call(p.ctx, what, params)
	if err != nil {
		p.t.Fatal(what.Method, err)
	}
	return r
}

func (p *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	p.t.Helper()
	if err := chromedp.Do(p.ctx, steps...); err != nil {
		p.t.Fatal(err)
	}
}

// value is what an expression is on the page.
func value[T any](p *tab, expression string) T {
	p.t.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits until an expression holds on the page.
func (p *tab) until(expression string) {
	p.t.Helper()
	for end := time.Now().Add(hang); !value[bool](p, "!!("+expression+")"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			p.t.Fatalf("never %s: %s", expression, tail(value[string](p, "document.body.innerText")))
		}
	}
}

// looksAs makes it a light or dark page of a width.
func (p *tab) looksAs(mode string, width int) {
	p.t.Helper()
	call(p, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: mode}}})
	call(p, emulation.SetDeviceMetricsOverride, emulation.SetDeviceMetricsOverrideParams{Width: int64(width),
		Height: 1600, DeviceScaleFactor: 1})
}

// textCutOff is text that is cut off or beyond the page.
const textCutOff = `(() => {
  const cut = [], scrolls = e => {
    for (; e; e = e.parentElement) if (/auto|scroll/.test(getComputedStyle(e).overflowX)) return true;
  };
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some(n => n.nodeType == 3 && n.textContent.trim());
    if (!own || e.closest("svg, script, style") || !e.getClientRects().length) continue;
    const r = e.getBoundingClientRect(), s = getComputedStyle(e);
    if (s.overflowX == "hidden" && e.scrollWidth > e.clientWidth + 1) cut.push(e.textContent);
    if ((r.right > innerWidth + 1 || r.left < -1) && !scrolls(e)) cut.push(e.textContent);
  }
  if (document.documentElement.scrollWidth > innerWidth + 1) cut.push("the page is wider than the window");
  return cut.slice(0, 5).join("|");
})()`

// fits makes sure that no text is cut off, and that the page is drawn, light or dark, at a width.
func (p *tab) fits(mode string, width int) {
	p.t.Helper()
	p.looksAs(mode, width)
	if cut := value[string](p, textCutOff); cut != "" {
		p.t.Errorf("%s, %d wide: text is cut off: %q", mode, width, cut)
	}
	shot, err := chromedp.Run(p.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		p.t.Fatal(err)
	}
	drawn(p.t, shot, mode)
}

// quiet makes sure that nothing was said in the console, and that no host but the given ones was asked.
func (p *tab) quiet(hosts ...string) {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, line := range p.mu.console {
		p.t.Errorf("console: %s", line)
	}
	for _, address := range p.mu.asked {
		u, err := url.Parse(address)
		if err != nil || !slices.Contains(hosts, u.Host) && u.Scheme != "data" && u.Scheme != "blob" {
			p.t.Errorf("it asked %s", address)
		}
	}
	if len(p.mu.asked) == 0 {
		p.t.Error("no request was noted")
	}
}

// lookAt opens a page in a browser, and checks that it shows something, without an error in the console and
// without text that is cut off.
func lookAt(t *testing.T, page, mode string, width int) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "page.html")
	if err := os.WriteFile(file, []byte(page), 0o644); err != nil {
		t.Fatal(err)
	}
	p := openTab(t, "file://"+file, mode, width)
	p.fits(mode, width)
	p.quiet("")
}

// drawn makes sure that a screenshot is not empty, and as light or dark as it should be.
func drawn(t *testing.T, shot []byte, mode string) {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(shot))
	if err != nil {
		t.Fatal(err)
	}
	b, colors := img.Bounds(), map[[3]uint32]int{}
	total := 0
	for y := b.Min.Y; y < b.Max.Y; y += 3 {
		for x := b.Min.X; x < b.Max.X; x += 3 {
			r, g, bl, _ := img.At(x, y).RGBA()
			colors[[3]uint32{r >> 8, g >> 8, bl >> 8}]++
			total++
		}
	}
	var most [3]uint32
	for c, n := range colors {
		if n > colors[most] {
			most = c
		}
	}
	if ink := total - colors[most]; len(colors) < 20 || ink < total/200 {
		t.Errorf("%s: %d colors, %d of %d pixels drawn", mode, len(colors), ink, total)
	}
	if light := most[0] > 128; light != (mode == "light") {
		t.Errorf("%s: the background is %v", mode, most)
	}
}

// TestPagesInBrowser looks at the pages that are files, light and wide, dark and narrow: colors do not change what
// fits.
func TestPagesInBrowser(t *testing.T) {
	t.Parallel()
	chromium(t)
	dir := small(t)
	works(t, dir, append([]string{"compare", "graph", "--workers", "2", "--rounds", "2", "--vary-seed", "--html",
		"compare.html"}, quick...)...)
	works(t, dir, "partition", "graph", "--parts", "4", "--html", "four.html")
	works(t, dir, "partition", "graph", "--parts", "64", "--method", "hash", "--html", "sixty-four.html")
	works(t, dir, "plan", "graph", "--workers", "4", "--servers", "2", "--html", "plan.html")
	works(t, dir, "simulate", "train", "graph", "--workers", "4", "--servers", "2", "--epochs", "2", "--html",
		"simulate.html")
	works(t, dir, "info", "graph", "--html", "info.html")
	works(t, dir, trainArgs("--out", "run", "--quiet")...)
	works(t, dir, "explain", "run", "graph", "--vertex", "1", "--html", "explain.html")
	works(t, dir, "predict", "run", "graph", "--report", "report.html", "--out", "p.csv", "--quiet")
	works(t, dir, "train", "graph", "--mode", "mini", "--workers", "4", "--servers", "2", "--epochs", "3", "--quiet",
		"--html", "mini.html")
	for _, file := range []string{"compare", "four", "sixty-four", "plan", "simulate", "info", "explain", "report",
		"mini"} {
		page := readFile(t, dir, file+".html")
		if strings.Count(page, "prefers-color-scheme: dark") != 1 || !strings.Contains(page, `class="sortable"`) {
			t.Errorf("%s has not the style of all pages, or no table that sorts", file)
		}
		t.Run(file+" light, wide", func(t *testing.T) { lookAt(t, page, "light", 1280) })
		t.Run(file+" dark, narrow", func(t *testing.T) { lookAt(t, page, "dark", 400) })
	}
}

// TestPageContents: what the pages show, where there is no browser.
func TestPageContents(t *testing.T) {
	t.Parallel()
	dir := small(t)
	works(t, dir, append([]string{"compare", "graph", "--workers", "2", "--strategies", "halo,bns", "--rounds", "2",
		"--vary-seed", "--html", "compare.html"}, quick...)...)
	page := readFile(t, dir, "compare.html")
	for _, want := range []string{"<h2>Test accuracy</h2>", "Validation accuracy</h2>", "Validation accuracy over time",
		`class="grid"`, `class="whisker"`, "All settings", "<dt>hidden</dt>", time.Now().Format("2006-01-")} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of compare has no %s", want)
		}
	}
	works(t, dir, "partition", "graph", "--parts", "64", "--method", "hash", "--html", "parts.html")
	page = readFile(t, dir, "parts.html")
	for _, want := range []string{`viewBox="0 0 64 64"`, `class="shade"`, `class="meter"`, "Not compared", "<li>multilevel",
		">63</td>"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of partition has no %s", want)
		}
	}
}

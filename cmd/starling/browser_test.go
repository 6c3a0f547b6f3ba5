package main

import (
	"bytes"
	"context"
	"fmt"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// chromium is the browser that pages are looked at with; the test is left out without one.
func chromium(t *testing.T) string {
	t.Helper()
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	t.Skip("no Chromium here: scripts/test-tools installs it")
	return ""
}

// lookedFor finds text that is cut off or beyond the page, and says so in the title.
const lookedFor = `<script>
addEventListener("load", () => {
  const cut = [], scrolls = e => { for (; e; e = e.parentElement) if (/auto|scroll/.test(getComputedStyle(e).overflowX)) return true; };
  for (const e of document.querySelectorAll("body *")) {
    const own = [...e.childNodes].some(n => n.nodeType == 3 && n.textContent.trim());
    if (!own || e.closest("svg, details, script")) continue;
    const r = e.getBoundingClientRect(), s = getComputedStyle(e);
    if (s.overflow == "hidden" && e.scrollWidth > e.clientWidth + 1) cut.push(e.textContent);
    if ((r.right > innerWidth + 1 || r.left < -1) && !scrolls(e)) cut.push(e.textContent);
  }
  document.body.dataset.cut = "CUT[" + cut.slice(0, 5).join("|") + "]";
});
</script></body>`

// lookAt opens a page in a browser, and checks that it shows something, without an error in the console and
// without text that is cut off.
func lookAt(t *testing.T, browser, page, mode string, width int) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	if err := os.WriteFile(file, []byte(strings.Replace(page, "</body>", lookedFor, 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	shot := filepath.Join(dir, "shot.png")
	flags := []string{"--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr",
		"--user-data-dir=" + dir, fmt.Sprintf("--window-size=%d,1600", width)}
	if mode == "dark" {
		flags = append(flags, "--blink-settings=preferredColorScheme=0")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	var dom, log bytes.Buffer
	c := exec.CommandContext(ctx, browser, append(flags, "--dump-dom", "--screenshot="+shot, "file://"+file)...)
	c.Stdout, c.Stderr = &dom, &log
	if err := c.Run(); err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "CONSOLE") {
			t.Errorf("%s, %d wide: %s", mode, width, line)
		}
	}
	_, cut, found := strings.Cut(dom.String(), "CUT[")
	if cut, _, _ = strings.Cut(cut, "]"); !found || cut != "" {
		t.Errorf("%s, %d wide: text is cut off: %q", mode, width, cut)
	}
	drawn(t, shot, mode)
}

// drawn makes sure that a screenshot is not empty, and as light or dark as it should be.
func drawn(t *testing.T, path, mode string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	img, err := png.Decode(f)
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

// TestPagesInBrowser looks at the pages of compare and partition, light and wide, dark and narrow: colors do not
// change what fits.
func TestPagesInBrowser(t *testing.T) {
	t.Parallel()
	browser := chromium(t)
	dir := small(t)
	works(t, dir, append([]string{"compare", "graph", "--workers", "2", "--rounds", "2", "--vary-seed", "--html",
		"compare.html"}, quick...)...)
	works(t, dir, "partition", "graph", "--parts", "4", "--html", "four.html")
	works(t, dir, "partition", "graph", "--parts", "64", "--method", "hash", "--html", "sixty-four.html")
	for _, file := range []string{"compare.html", "four.html", "sixty-four.html"} {
		page := readFile(t, dir, file)
		t.Run(file+" light, wide", func(t *testing.T) { lookAt(t, browser, page, "light", 1280) })
		t.Run(file+" dark, narrow", func(t *testing.T) { lookAt(t, browser, page, "dark", 600) })
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
	for _, want := range []string{"<th>56</th>", `class="scale"`, "prefers-color-scheme:dark){.shade", "Not compared",
		"<li>multilevel"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page of partition has no %s", want)
		}
	}
}

package main

import (
	"fmt"
	"net/url"
	"os"
	"slices"
	"testing"
	"time"

	"starling/report/web"
	"starling/report/web/webtest"
)

// scrolling scrolls a page down and up for some frames, and notes how long each took, and every task that held the
// page's thread up for more than 50 ms.
const scrolling = `(() => {
  window.took = []; window.held = [];
  new PerformanceObserver(l => l.getEntries().forEach(e => held.push(e.duration))).observe({entryTypes: ["longtask"]});
  let last = 0, down = 1;
  const step = now => {
    if (last) took.push(now - last);
    last = now;
    const at = scrollY;
    scrollBy(0, 60 * down);
    if (scrollY == at) down = -down;
    if (took.length < %d) requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})()`

// emptyPage is as long, and what its frames take is the browser's and the machine's.
const emptyPage = `data:text/html,<!DOCTYPE html><title>empty</title><body style="height: 9000px">`

// scrolled scrolls a tab, while during is called now and then, and logs how long frames took.
func (p *tab) scrolled(what string, frames int, during func()) {
	p.t.Helper()
	value[any](p, fmt.Sprintf(scrolling, frames))
	for value[int](p, "took.length") < frames {
		during()
		time.Sleep(200 * time.Millisecond)
	}
	took, held := value[[]float64](p, "took"), value[[]float64](p, "held")
	slices.Sort(took)
	at := func(share float64) float64 { return took[int(share*float64(len(took)-1))] }
	longest := 0.0
	for _, x := range held {
		longest = max(longest, x)
	}
	p.t.Logf("%s: frames of %.1f ms (median), 95 of 100 within %.1f ms; %d tasks of more than 50 ms, the longest %.0f",
		what, at(0.5), at(0.95), len(held), longest)
}

// TestManyRanksScroll: the page of 10,000 epochs and 64 ranks, which goes on, scrolls, is quiet, and shows what comes
// meanwhile. STARLING_SCROLL=1 scrolls for longer, for the figures of docs/watching.md.
func TestManyRanksScroll(t *testing.T) {
	chromium(t)
	frames, widths := 30, []int{400}
	if os.Getenv("STARLING_SCROLL") != "" {
		frames, widths = 400, []int{1280, 400}
	}
	r, second := webtest.ManyRanks()
	s, err := web.Listen("127.0.0.1:0", "", r)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	u, err := url.Parse(s.Link)
	if err != nil {
		t.Fatal(err)
	}
	for _, width := range widths {
		openTab(t, emptyPage, "light", width).scrolled(fmt.Sprint("an empty page, ", width, " wide"), frames, func() {})
		p := openTab(t, s.Link, "light", width)
		p.until(`document.querySelectorAll("svg.strip").length == 64`)
		before := value[float64](p, epochShown)
		p.scrolled(fmt.Sprint("the run's page, ", width, " wide"), frames, second)
		p.until(epochShown + " > " + string(mustJSON(t, before)))
		p.quiet(u.Host)
	}
}

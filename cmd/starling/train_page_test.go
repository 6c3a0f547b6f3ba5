package main

import (
	"html"
	"os"
	"strings"
	"testing"
)

// TestPageOfARun: curves, the report by class, warnings and bytes are on one page, also of a typed graph on two workers;
// what is asked for in vain is refused before anything is trained.
func TestPageOfARun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	works(t, dir, "get", "demo", "--out", "demo", "--quiet")
	works(t, dir, "train", "demo", "--epochs", "3", "--quiet", "--html", "run.html")
	says := func(file string, all ...string) {
		t.Helper()
		page := html.UnescapeString(readFile(t, dir, file))
		for _, text := range append(all, "<!DOCTYPE html>", "</html>") {
			if strings.Count(page, text) != 1 {
				t.Errorf("%q is %d times in %s:\n%s", text, strings.Count(page, text), file, page)
			}
		}
		if strings.Count(page, "<script") != 2 || strings.Contains(page, "<nil>") || strings.Contains(page, "NaN") {
			t.Errorf("%s:\n%s", file, page)
		}
	}
	says("run.html", "<h1>gcn on demo</h1>", "<h2>Training loss</h2>", "<h2>Metric: accuracy</h2>", "<h2>Result</h2>", "<dt>median epoch</dt>",
		`<th scope="col">precision</th>`, "<h2>Confusion</h2>", "<h2>Calibration</h2>", "All settings")
	typedGraph(t, dir)
	works(t, dir, "train", "graph", "--model", "rgcn", "--hidden", "16", "--workers", "2", "--epochs", "2", "--quiet", "--html",
		"typed.html", "--json", "typed.json")
	says("typed.html", "<h2>Sent</h2>", "<dt>sent</dt>", `<th scope="col">precision</th>`, `<th scope="col">counted</th>`)
	for text, args := range map[string][]string{
		"--html: found it beside --sweep or --seeds": {"--seeds", "2", "--html", "a.html"},
		"--html: found -":                 {"--html", "-"},
		"--html: found a.html, as --json": {"--html", "a.html", "--json", "a.html"},
		"--html: found no/a.html":         {"--html", "no/a.html"},
	} {
		refuses(t, dir, []string{text}, append([]string{"train", "demo", "--epochs", "1"}, args...)...)
	}
	for _, file := range []string{"a.html", "no"} {
		if _, err := os.Stat(dir + "/" + file); err == nil {
			t.Errorf("%s was written", file)
		}
	}
}

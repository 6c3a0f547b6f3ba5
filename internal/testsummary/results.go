package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// event is one line of go test -json (see go doc test2json).
type event struct {
	Action     string
	Package    string
	ImportPath string // of build output
	Test       string
	Output     string
}

// results collects the events of a run.
type results struct {
	out     *prefixed
	output  map[string]map[string][]string // by package and test; "": the package's own
	failing map[string][]string            // tests, by package
	failed  []string                       // packages, in the order they ended
	skipped map[reason][]string            // tests
	cutOff  map[string]bool                // packages whose tests did not all end
	first   []failure                      // all tests that failed, each as it did the first time
	// unsteady are tests that failed, and passed when they were run again.
	unsteady []failure
}

// reason is why tests of a package were skipped.
type reason struct{ pkg, text string }

func newResults(out *prefixed) *results {
	return &results{out: out, output: map[string]map[string][]string{}, failing: map[string][]string{},
		skipped: map[reason][]string{}, cutOff: map[string]bool{}}
}

// read handles all events. Lines that are not JSON are shown as they are.
func (r *results) read(in io.Reader) error {
	lines := bufio.NewReaderSize(in, 1<<16)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			var e event
			if json.Unmarshal(line, &e) != nil || e.Action == "" {
				r.out.line("%s", strings.TrimRight(string(line), "\n"))
			} else {
				r.handle(e)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (r *results) handle(e event) {
	switch e.Action {
	case "build-output":
		r.out.line("%s", strings.TrimRight(e.Output, "\n"))
	case "output":
		if r.output[e.Package] == nil {
			r.output[e.Package] = map[string][]string{}
		}
		r.output[e.Package][e.Test] = append(r.output[e.Package][e.Test], e.Output)
	case "skip":
		if e.Test != "" {
			why := reason{e.Package, reasonOf(r.output[e.Package][e.Test])}
			r.skipped[why] = append(r.skipped[why], e.Test)
		}
	case "fail":
		if e.Test != "" {
			r.failing[e.Package] = append(r.failing[e.Package], e.Test)
		}
	}
	if e.Test != "" {
		if e.Action == "pass" || e.Action == "skip" {
			delete(r.output[e.Package], e.Test)
		}
		return
	}
	if e.Action == "pass" || e.Action == "skip" || e.Action == "fail" {
		r.end(e)
	}
}

// end shows a package that has ended.
func (r *results) end(e event) {
	defer delete(r.output, e.Package)
	if e.Action != "fail" {
		for _, line := range r.output[e.Package][""] {
			if strings.HasPrefix(line, "ok  ") || strings.HasPrefix(line, "?   ") {
				r.out.line("%s", strings.TrimRight(line, "\n"))
			}
		}
		return
	}
	r.failed = append(r.failed, e.Package)
	r.first = append(r.first, r.failures(e.Package)...)
	// A test that did not end, as one that the panic of another or the time limit cut off, has
	// output and no result: it is shown too.
	tests := slices.Sorted(maps.Keys(r.output[e.Package]))
	for _, test := range tests {
		if cutOffBy.MatchString(strings.Join(r.output[e.Package][test], "")) {
			r.cutOff[e.Package] = true
		}
		if test != "" {
			r.show(r.output[e.Package][test])
		}
	}
	r.show(r.output[e.Package][""])
}

// show prints output without the lines that -v adds.
func (r *results) show(output []string) { r.out.output("", strings.Join(output, "")) }

// verboseOnly are lines that go test prints with -v only.
var verboseOnly = regexp.MustCompile(`^\s*(=== (RUN|PAUSE|CONT|NAME)\b|PASS$)`)

var position = regexp.MustCompile(`^\s*[\w.]+\.go:\d+: `)

// reasonOf is the text a test was skipped with.
func reasonOf(output []string) string {
	var text []string
	for line := range strings.Lines(strings.Join(output, "")) {
		if verboseOnly.MatchString(line) || strings.HasPrefix(strings.TrimSpace(line), "--- ") {
			continue
		}
		text = append(text, strings.TrimSpace(position.ReplaceAllString(line, "")))
	}
	if len(text) == 0 {
		return "no reason given"
	}
	return strings.Join(text, " ")
}

// summary lists skipped tests by package and reason, then unsteady tests and failed packages.
func (r *results) summary(w *prefixed) error {
	count := 0
	for _, tests := range r.skipped {
		count += len(tests)
	}
	if count > 0 {
		w.line("skipped tests: %d", count)
	}
	reasons := slices.SortedFunc(maps.Keys(r.skipped), func(a, b reason) int {
		return strings.Compare(a.pkg+"\n"+a.text, b.pkg+"\n"+b.text)
	})
	for _, why := range reasons {
		w.line("  %s %s: %s", why.pkg, named(r.skipped[why]), why.text)
	}
	for _, f := range r.unsteady {
		w.line("UNSTEADY, failed and then passed alone: %v", f)
		w.output("    ", f.output)
	}
	if n := len(r.unsteady); n > mostUnsteady {
		w.line("FAILED: %d unsteady tests, of which there may be %d", n, mostUnsteady)
	}
	if len(r.failed) == 0 {
		return w.line("no package failed")
	}
	slices.Sort(r.failed)
	r.failed = slices.Compact(r.failed)
	err := w.line("FAILED packages: %d", len(r.failed))
	for _, pkg := range r.failed {
		text := named(r.failing[pkg])
		if text == "" {
			text = "see its output above"
		}
		err = w.line("  %s: %s", pkg, text)
	}
	return err
}

// named lists tests, at most a few.
func named(tests []string) string {
	const most = 4
	slices.Sort(tests)
	tests = slices.Compact(tests)
	if len(tests) <= most {
		return strings.Join(tests, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(tests[:most], ", "), len(tests)-most)
}

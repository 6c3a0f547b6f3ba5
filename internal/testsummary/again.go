package main

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// mostUnsteady is the number of unsteady tests that a run may have and still succeed.
const mostUnsteady = 1

// failure is a top-level test that failed, with its output and that of its subtests.
type failure struct {
	pkg, test, output string
	seeds             []string // those that it logged, to be repeated
}

func (f failure) String() string {
	if len(f.seeds) == 0 {
		return f.pkg + " " + f.test
	}
	return fmt.Sprintf("%s %s (%s=%s)", f.pkg, f.test, seedVar, strings.Join(f.seeds, ", "))
}

// seedVar is the variable that repeats what a test drew (internal/testseed).
const seedVar = "STARLING_SEED"

var seed = regexp.MustCompile(seedVar + `=(\d+)`)

// failures are the top-level tests of a package that failed. A test that tries one seed after another logs
// the one that fails last.
func (r *results) failures(pkg string) (list []failure) {
	for _, top := range topLevel(r.failing[pkg]) {
		f := failure{pkg: pkg, test: top}
		for _, test := range slices.Sorted(maps.Keys(r.output[pkg])) {
			if name, _, _ := strings.Cut(test, "/"); name != top {
				continue
			}
			text := strings.Join(r.output[pkg][test], "")
			f.output += text
			if found := seed.FindAllStringSubmatch(text, -1); found != nil {
				f.seeds = append(f.seeds, found[len(found)-1][1])
			}
		}
		slices.Sort(f.seeds)
		f.seeds = slices.Compact(f.seeds)
		list = append(list, f)
	}
	return list
}

// runAgain runs each test that failed once more, alone, if they are few and nothing else went wrong. One that
// passes is unsteady. The status tells of tests that failed both times; it is 1 where too many are unsteady.
func (r *results) runAgain(command []string, most, status int) (int, error) {
	first := r.first
	if !r.few(most) {
		return status, nil
	}
	r.failing, r.failed, r.first = map[string][]string{}, nil, nil
	left := 0
	for _, f := range slices.SortedFunc(slices.Values(first), func(a, b failure) int {
		return cmp.Compare(a.String(), b.String())
	}) {
		got, err := r.repeat(command, f)
		if err != nil {
			return status, err
		}
		if left = max(left, got); got == 0 {
			r.unsteady = append(r.unsteady, f)
		}
	}
	if len(r.unsteady) > mostUnsteady {
		left = max(left, 1)
	}
	return left, nil
}

// repeat runs a test with every seed that it failed with, or once, if it logged none.
func (r *results) repeat(command []string, f failure) (status int, err error) {
	r.out.line("again, alone: %v", f)
	if len(f.seeds) == 0 {
		return r.run(alone(command, f))
	}
	for _, s := range f.seeds {
		got, err := r.run(alone(command, f), seedVar+"="+s)
		if err != nil {
			return got, err
		}
		status = max(status, got)
	}
	return status, nil
}

// few says whether failing tests account for every package that failed, and are at most the given number. A
// package without one did not build, or was cut off; a data race is found by chance and is an error whenever it is.
func (r *results) few(most int) bool {
	tests := map[string]int{}
	for _, f := range r.first {
		tests[f.pkg]++
		if strings.Contains(f.output, "WARNING: DATA RACE") {
			return false
		}
	}
	for _, pkg := range r.failed {
		if tests[pkg] == 0 || r.cutOff[pkg] {
			return false
		}
	}
	return len(r.first) > 0 && len(r.first) <= most
}

// topLevel are the tests that stand by themselves, without their parts.
func topLevel(tests []string) (out []string) {
	for _, t := range tests {
		name, _, _ := strings.Cut(t, "/")
		out = append(out, name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// alone is the command for one test of a package. The packages of the command begin with a dot.
func alone(command []string, f failure) (out []string) {
	for _, word := range command {
		if !strings.HasPrefix(word, "./") {
			out = append(out, word)
		}
	}
	return append(out, "-count=1", "-run", "^"+regexp.QuoteMeta(f.test)+"$", f.pkg)
}

// cutOffBy is in the output of a package whose tests did not all end.
var cutOffBy = regexp.MustCompile(`(?m)^(panic: |fatal error: |\*\*\* Test killed|signal: )`)

package main

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// runAgain runs the tests that failed once more, package after package, if they are few and nothing else
// went wrong. The status is that of what failed both times.
func (r *results) runAgain(command []string, most, status int) (int, error) {
	failing := r.failing
	if !r.few(most) {
		return status, nil
	}
	r.failing, r.failed = map[string][]string{}, nil
	left := 0
	for _, pkg := range slices.Sorted(maps.Keys(failing)) {
		tests := topLevel(failing[pkg])
		r.out.line("again, alone: %s %s", pkg, strings.Join(tests, ", "))
		got, err := r.run(alone(command, pkg, tests))
		if err != nil {
			return status, err
		}
		if left = max(left, got); got == 0 {
			r.passedAgain = append(r.passedAgain, pkg+" "+strings.Join(tests, ", "))
		}
	}
	return left, nil
}

// few says whether failing tests account for every package that failed, and are at most so many. A package
// without one did not build, or was cut off.
func (r *results) few(most int) bool {
	n := 0
	for _, pkg := range r.failed {
		tests := topLevel(r.failing[pkg])
		if len(tests) == 0 || r.cutOff[pkg] {
			return false
		}
		n += len(tests)
	}
	return n > 0 && n <= most
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

// alone is the command for some tests of a package. Its packages begin with a dot.
func alone(command []string, pkg string, tests []string) (out []string) {
	for _, word := range command {
		if !strings.HasPrefix(word, "./") {
			out = append(out, word)
		}
	}
	for i, t := range tests {
		tests[i] = regexp.QuoteMeta(t)
	}
	return append(out, "-count=1", "-run", "^("+strings.Join(tests, "|")+")$", pkg)
}

// cutOffBy is in the output of a package whose tests did not all end.
var cutOffBy = regexp.MustCompile(`(?m)^(panic: |fatal error: |\*\*\* Test killed|signal: )`)

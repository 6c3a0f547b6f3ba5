// Testsummary runs go test and sums up what was skipped and what failed.
//
//	go run ./internal/testsummary [-prefix P] [-summary FILE] [-again N] go test -json ./PACKAGE…
//
// It shows what go test shows without -v and -json: a line per package, and the output of
// failing tests. At the end come the tests that were skipped, with their reasons, over all
// packages, and the packages that failed; with -summary they are written to a file instead,
// so that several runs can be summed up together. Its exit status is the command's.
//
// With -again, if at most N tests failed, each is run once more, with nothing beside it and with the seed that it
// logged (internal/testseed). One that fails again is an error that can be repeated, and fails the run. One that
// passes is unsteady: it depends on what runs beside it, and has to be put right. The summary lists it with the
// output of its failure; a second unsteady test fails the run. A data race is never run again.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

func main() {
	prefix := flag.String("prefix", "", "begins every line")
	file := flag.String("summary", "", "write the summary to this file instead of the end of the output")
	again := flag.Int("again", 0, "if at most this number of tests fail, run each of them again, alone")
	flag.Parse()
	status, err := run(flag.Args(), *prefix, *file, *again)
	if err != nil {
		fmt.Fprintln(os.Stderr, "testsummary:", err)
		status = max(status, 1)
	}
	os.Exit(status)
}

func run(command []string, prefix, file string, again int) (status int, err error) {
	if len(command) == 0 {
		return 2, errors.New("found no command, want go test -json …")
	}
	results := newResults(&prefixed{w: os.Stdout, prefix: prefix})
	status, err = results.run(command)
	if err == nil && status != 0 {
		status, err = results.runAgain(command, again, status)
	}
	return status, errors.Join(err, writeSummary(results, prefix, file))
}

// run runs a command with more environment variables, handles its events, and returns its exit status.
func (r *results) run(command []string, env ...string) (status int, err error) {
	c := exec.Command(command[0], command[1:]...)
	c.Stderr, c.Env = os.Stderr, append(os.Environ(), env...)
	out, err := c.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := c.Start(); err != nil {
		return 1, err
	}
	readErr := r.read(out)
	if err := c.Wait(); err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			return 1, err
		}
		status = max(exit.ExitCode(), 1) // -1: ended by a signal
	}
	return status, readErr
}

func writeSummary(r *results, prefix, file string) error {
	if file == "" {
		return r.summary(&prefixed{w: os.Stdout, prefix: prefix})
	}
	f, err := os.Create(file)
	if err != nil {
		return err
	}
	return errors.Join(r.summary(&prefixed{w: f, prefix: prefix}), f.Close())
}

// prefixed writes whole lines with a prefix.
type prefixed struct {
	w      io.Writer
	prefix string
}

func (p *prefixed) line(format string, a ...any) error {
	_, err := fmt.Fprintf(p.w, "%s%s\n", p.prefix, fmt.Sprintf(format, a...))
	return err
}

// output writes the lines of a test's output that go test prints without -v, each indented.
func (p *prefixed) output(indent, text string) {
	for line := range strings.Lines(text) {
		if !verboseOnly.MatchString(line) {
			p.line("%s%s", indent, strings.TrimRight(line, "\n"))
		}
	}
}

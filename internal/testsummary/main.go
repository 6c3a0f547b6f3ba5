// Testsummary runs go test and sums up what was skipped and what failed.
//
//	go run ./internal/testsummary [-prefix P] [-summary FILE] [-again N] go test -json ./PACKAGE…
//
// It shows what go test shows without -v and -json: a line per package, and the output of
// failing tests. At the end come the tests that were skipped, with their reasons, over all
// packages, and the packages that failed; with -summary they are written to a file instead,
// so that several runs can be summed up together. Its exit status is that of the command.
//
// With -again, up to N tests that failed are run once more, with nothing beside them. What passes then
// does not fail the run, since two cores that do six things at once can make a deadline of a test pass,
// but it is named in the summary: such a test depends on what runs beside it, and has to be put right.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
)

func main() {
	prefix := flag.String("prefix", "", "begins every line")
	file := flag.String("summary", "", "write the summary to this file instead of the end of the output")
	again := flag.Int("again", 0, "run so many failing tests, at most, a second time, alone")
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

// run runs a command, handles its events, and returns its exit status.
func (r *results) run(command []string) (status int, err error) {
	c := exec.Command(command[0], command[1:]...)
	c.Stderr = os.Stderr
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

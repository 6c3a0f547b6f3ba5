package main

import (
	"errors"
	"io"
	"os"
	"syscall"

	"starling/run"
)

// stdout is standard output for all commands. A write that fails, because the disk behind it is
// full, is an error of the command, even if the writer ignores it, as cobra's help does.
var stdout = &lasting{to: os.Stdout}

// lasting keeps the first error of writing to a file.
type lasting struct {
	to  *os.File
	err error
}

func (l *lasting) Write(b []byte) (int, error) {
	n, err := l.to.Write(b)
	if l.err == nil && !errors.Is(err, syscall.EPIPE) { // the reader has seen enough
		l.err = err
	}
	return n, err
}

// text is standard output for what people read: on a terminal, long lines break between words. JSON goes to stdout.
var text = run.Wrapped(stdout, os.Stdout)

// screen is where text is shown: standard output, unless that carries JSON.
func screen(json string) *os.File {
	if json == "-" {
		return os.Stderr
	}
	return os.Stdout
}

// words is the same, for text whose loss is an error.
func words(json string) io.Writer {
	if json == "-" {
		return run.Wrapped(os.Stderr, os.Stderr)
	}
	return text
}

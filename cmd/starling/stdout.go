package main

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// stdout is standard output for all that commands say. What could not be written there,
// since the disk behind it is full, is an error of the command, whoever wrote it: cobra's
// help tells nobody.
var stdout = &lasting{to: os.Stdout}

// lasting keeps the first error of writing to a file.
type lasting struct {
	to  *os.File
	err error
}

func (l *lasting) Write(b []byte) (int, error) {
	n, err := l.to.Write(b)
	if l.err == nil && !errors.Is(err, syscall.EPIPE) { // whoever read it has seen enough
		l.err = err
	}
	return n, err
}

// screen is where people are told things: standard output, unless that carries JSON.
func screen(json string) *os.File {
	if json == "-" {
		return os.Stderr
	}
	return os.Stdout
}

// words is the same, for words whose loss is an error.
func words(json string) io.Writer {
	if json == "-" {
		return os.Stderr
	}
	return stdout
}

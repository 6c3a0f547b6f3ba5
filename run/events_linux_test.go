package run

import (
	"bufio"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"starling/event"
)

// TestNobodyReadsEvents: who waits for the reader of a pipe says so, and can be stopped.
func TestNobodyReadsEvents(t *testing.T) {
	s := quick(block(t, nil))
	s.Events = filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(s.Events, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	_, err := Train(ctx, s, event.Func(func(e event.Event) {
		if n, ok := e.(event.Note); ok && strings.Contains(n.Text, s.Events) {
			stop()
		}
	}))
	if !errors.Is(err, ErrInterrupted) {
		t.Error(err)
	}
}

// TestReaderOfEventsLeaves: a run does not wait for the reader of a pipe that has gone; it
// ends with its report, and says that not all was written.
func TestReaderOfEventsLeaves(t *testing.T) {
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	first := make(chan string)
	go func() {
		f, err := os.Open(pipe)
		if err != nil {
			t.Error(err)
		}
		line, _ := bufio.NewReader(f).ReadString('\n')
		f.Close()
		first <- line
	}()
	s := quick(block(t, nil))
	s.Layers, s.Epochs, s.EvalEvery, s.Events = 1, 500, 500, pipe // more than a pipe holds
	r, err := Train(t.Context(), s, event.Func(func(event.Event) {}))
	if !errors.Is(err, syscall.EPIPE) || r == nil || len(r.Loss) != s.Epochs {
		t.Error("nobody read to the end, and the run says: ", err)
	}
	if _, err := event.Decode([]byte(<-first)); err != nil {
		t.Error(err)
	}
}

package main

import (
	"os"
	"os/signal"
	"syscall"
	"testing"
)

// TestServeEnds: a server is stopped by a terminal, by whoever started it, and by the terminal's end.
func TestServeEnds(t *testing.T) {
	dir := small(t)
	works(t, dir, trainArgs("--out", "run", "--quiet")...)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
		if s == syscall.SIGHUP && signal.Ignored(s) {
			t.Skip("SIGHUP is ignored here, as by nohup, and so it is by what is started")
		}
		server := start(t, dir, "serve", "run", "graph", "--listen", "127.0.0.1:0")
		server.until(t, `^answering `)
		if err := server.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
		if status := server.end(); status != 0 {
			t.Errorf("after %v: status %d, %s", s, status, server.stderr.String())
		}
	}
}

package main

import (
	"os"
	"syscall"
	"testing"
)

// TestServeEnds: a server is stopped by a terminal, by its parent process, and by the terminal's end.
func TestServeEnds(t *testing.T) {
	t.Parallel()
	passHangUpsOn(t)
	dir := small(t)
	works(t, dir, trainArgs("--out", "run", "--quiet")...)
	for _, s := range []os.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP} {
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

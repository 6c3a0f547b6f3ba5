package main

import (
	"strings"
	"syscall"
	"testing"
)

// TestSwitchCommand: runs train through a switch process, with the plan kept to the byte,
// as through one of their own; it ends on SIGTERM.
func TestSwitchCommand(t *testing.T) {
	t.Parallel()
	dir := small(t)
	refuses(t, dir, []string{"--listen", "--token-file"}, "switch", "--listen", "0.0.0.0:0")
	refuses(t, dir, []string{"--memory", "100MiB"}, "switch", "--memory", "much")
	refuses(t, dir, []string{"attention"}, trainArgs("--workers", "2", "--strategy", "switchgnn", "--model", "gat")...)
	refuses(t, dir, []string{"--relay", "without effect"}, trainArgs("--workers", "2", "--strategy", "switchgnn", "--relay")...)
	s := start(t, dir, "switch", "--listen", "127.0.0.1:0", "--status", "0")
	addr := s.until(t, `switching on (\S+),`)[1]
	train := trainArgs("--workers", "3", "--strategy", "switchgnn", "--model", "gcn", "--json", "-", "--quiet")
	through := result(t, works(t, dir, append(train, "--switch", addr)...).stdout)
	own := result(t, works(t, dir, train...).stdout)
	for what, m := range map[string]map[string]any{"a switch process": through, "the run's own": own} {
		b := m["bytes"].(map[string]any)
		links := b["by_link"].(map[string]any)
		if b["total"] != b["planned"] || !(links["between_servers"].(float64) > 0) {
			t.Errorf("%s: bytes %v", what, b)
		}
	}
	if a, b := through["loss"].([]any), own["loss"].([]any); len(a) != len(b) || a[len(a)-1] != b[len(b)-1] {
		t.Errorf("losses %v and %v", a, b)
	}
	s.Process.Signal(syscall.SIGTERM)
	if status := s.end(); status != 0 || strings.Contains(s.stderr.String(), "panic") {
		t.Errorf("status %d\n%s", status, s.stderr.String())
	}
}

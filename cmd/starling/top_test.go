package main

import (
	"fmt"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A run is shown as it goes, to those who may look; and when a worker keeps the others
// waiting, for whom they wait.
func TestTop(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, strategy, with string }{
		{"plain", "halo", ""}, {"token", "g3", "--token-file token"}, {"tls", "g3", "--tls certs/alpha"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newScenario(t)
			s.do("starling certs --hosts alpha --out certs")
			s.do("write token " + rightToken)
			addr := "127.0.0.1:" + s.port
			s.do(fmt.Sprintf("start run starling train graph --workers 3 --epochs 1000000 --layers 2 --hidden 16 "+
				"--eval-every 0 --heartbeat 60 --checkpoint-dir ck --strategy %s --listen %s %s",
				c.strategy, addr, c.with))
			s.do("await run ^epoch")
			top := func() string { return s.do("starling top " + addr + " --once " + c.with) }
			lines := fmt.Sprintf(`(?s)gcn on graph, strategy %s, 3 workers: epoch \d+/1000000, loss .*since the start, checkpoint of epoch N written T ago`, c.strategy)
			for r := range 3 {
				lines += fmt.Sprintf(`.*\n *%d  \S+ +%d `, r, s.pid([]string{"run", fmt.Sprint(r)}))
			}
			s.shows(top, lines)
			if c.with != "" {
				if text := s.do("starling top " + addr + " --once"); strings.HasSuffix(text, "exit 0\n") {
					t.Errorf("anybody may look: %s", text)
				}
			}
			victim := s.pid([]string{"run", "1"})
			s.do("stop run 1")
			waits := `has waited T for rank \d \(…\)\n`
			s.shows(top, `(?m)^ *0 .* `+waits+` *1 .* has reported nothing for T\n *2 .* `+waits)
			s.await(s.run("run"), regexp.QuoteMeta("all wait for rank 1 (pid "+fmt.Sprint(victim)+" on "))
			s.do("cont run 1")
			s.await(s.run("run"), `^epoch \d+ is done after`)
			s.shows(top, `(?m)^ *1 .*(computes|waits|prepares)`)
			s.run("run").Process.Signal(syscall.SIGINT)
			if text := s.do("end run"); !strings.HasSuffix(text, "exit 130\n") {
				t.Error(text)
			}
			if text := top(); strings.HasSuffix(text, "exit 0\n") {
				t.Errorf("a run that has ended is shown: %s", text)
			}
		})
	}
}

// shows looks until there is to see what is wanted.
func (s *scenario) shows(look func() string, pattern string) {
	s.t.Helper()
	match := regexp.MustCompile(pattern)
	text := look()
	for end := time.Now().Add(hang); !match.MatchString(text); text = look() {
		if time.Now().After(end) {
			s.t.Fatalf("no %s in\n%s", pattern, text)
		}
		time.Sleep(100 * time.Millisecond)
	}
}

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// otherUser runs starling as another user of this host: uid 65534 if the test may do that, else with
// another home, which has another secret.
func otherUser(t *testing.T, args ...string) output {
	t.Helper()
	home, err := os.MkdirTemp("/tmp", "starling-other-user-*")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(home)
	c := exec.Command(filepath.Join(home, "starling"), args...)
	c.Dir, c.Env = home, append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME=", "TMPDIR="+home, "STARLING_TOKEN=")
	b, err := os.ReadFile(binary)
	if err == nil {
		err = os.WriteFile(c.Path, b, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		const uid = 65534
		if err := os.Chown(home, uid, uid); err != nil {
			t.Fatal(err)
		}
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid, NoSetGroups: true}}
	}
	return finish(t, c)
}

// TestOtherUsers: a run on loopback, without any flag about security, can be joined and watched by
// its own user alone: workers started by hand need nothing but the address; those of other users
// of the host are refused, whether the run starts its own workers or not.
func TestOtherUsers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, flags string }{{"started", ""}, {"by hand", "--no-launch"}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newScenario(t)
			addr := "127.0.0.1:" + s.port
			s.do("start run starling train parts --epochs 1000000 --eval-every 0 --on-failure stop --listen " + addr +
				" " + c.flags)
			if c.flags != "" {
				s.do("start zero starling worker --join " + addr)
				s.do("await run worker")
			} else {
				s.do("await run ^epoch")
			}
			refused := func(o output, text string) {
				t.Helper()
				if o.status == 0 || !strings.Contains(o.stderr, text) {
					t.Errorf("status %d: %s%s, want %q", o.status, o.stdout, o.stderr, text)
				}
			}
			refused(otherUser(t, "worker", "--join", addr, "--timeout", "5"), "wrong token")
			refused(otherUser(t, "worker", "--join", addr, "--timeout", "5", "--insecure"), "wrong token")
			refused(otherUser(t, "top", addr, "--once"), "wrong token")
			if c.flags != "" {
				s.do("start one starling worker --join " + addr)
				s.do("await run ^epoch")
			}
			if text := s.do("starling top " + addr + " --once"); !strings.HasSuffix(text, "exit 0\n") {
				t.Errorf("its own user cannot watch: %s", text)
			}
			s.run("run").Process.Signal(syscall.SIGINT)
			if text := s.do("end run"); !strings.HasSuffix(text, "exit 130\n") {
				t.Error(text)
			}
		})
	}
}

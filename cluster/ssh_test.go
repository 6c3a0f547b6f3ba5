package cluster

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

func TestReadHosts(t *testing.T) {
	hosts, err := ReadHosts(strings.NewReader("\n# all\nalpha slots=2\n  me@beta dir=/d binary=/b/starling # " +
		"old\n10.0.0.3\n"))
	want := []Host{{"alpha", 2, "", ""}, {"me@beta", 1, "/d", "/b/starling"}, {"10.0.0.3", 1, "", ""}}
	if err != nil || !reflect.DeepEqual(hosts, want) {
		t.Errorf("%+v, %v", hosts, err)
	}
	var names []string
	for _, h := range Slots(hosts) {
		names = append(names, h.Name)
	}
	if got := strings.Join(names, " "); got != "alpha alpha me@beta 10.0.0.3" {
		t.Error(got)
	}
	for text, want := range map[string]string{"": "no host", "a\nb slots=0": "line 2: slots", "a slots=x": "slots",
		"a slot=1": "expected slots=N", "-oProxyCommand=x": "name of a host", "slots=2": "name of a host", "a dir=": "dir"} {
		if h, err := ReadHosts(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %+v, %v; want %s", text, h, err, want)
		}
	}
}

func FuzzReadHosts(f *testing.F) {
	f.Add([]byte("alpha slots=2 dir=/x\n# no\nbeta"))
	f.Fuzz(func(t *testing.T, b []byte) {
		hosts, err := ReadHosts(bytes.NewReader(b))
		for _, h := range hosts {
			if err != nil || h.Slots < 1 || h.Name == "" || h.Name[0] == '-' {
				t.Errorf("%+v, %v", h, err)
			}
		}
	})
}

// The words arrive over there as they were, whatever is in them, and the token on
// standard input alone.
func TestSSH(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("there is no sh here to stand for the other host's")
	}
	dir := t.TempDir()
	fake := filepath.Join(dir, "ssh")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\n[ \"$1\" = -x ] && [ \"$2\" = alpha ] || exit 9\nshift 2\nexec "+
		"sh -c \"$*\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	words := []string{"sh", "-c", `for w; do printf '<%s>' "$w"; done; cat`, "", "plain",
		"two words", "it's", `$HOME;"*"`, ""}
	cmd, err := SSH(fake+" -x", Host{Name: "alpha"}, words, []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	if want := loggedIn + "\n" + `<plain><two words><it's><$HOME;"*"><>` + "secret\n"; err != nil || string(out) != want {
		t.Errorf("%v: %s, want %s", err, out, want)
	}
	if strings.Contains(strings.Join(cmd.Args, " "), "secret") {
		t.Error("the token is on the command line")
	}
	if _, err := SSH(" ", Host{Name: "alpha"}, words, nil); err == nil {
		t.Error("no command")
	}
}

// A killed process is started again, up to a number of times; others are not.
func TestSupervise(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no sh here")
	}
	mind := func(times int, script string) (starts int, lines []string, err error) {
		err = Supervise(t.Context(), t.Context(), times, func() (*exec.Cmd, error) {
			starts++
			return exec.Command(sh, "-c", script), nil
		}, func(line string) { lines = append(lines, line) })
		return starts, lines, err
	}
	if n, lines, err := mind(3, "echo hello"); n != 1 || err != nil || len(lines) != 1 || lines[0] != "hello" {
		t.Error(n, lines, err)
	}
	if n, _, err := mind(3, "echo why >&2; exit 2"); n != 1 || err == nil || err.(*Exited).Code != 2 ||
		err.(*Exited).Last != "why" {
		t.Error(n, err)
	}
	if n, _, err := mind(2, "kill -9 $$"); n != 3 || err == nil || !strings.Contains(err.Error(), "signal 9") {
		t.Error(n, err)
	}
	ctx := t.Context()
	if err := Supervise(ctx, ctx, 0, func() (*exec.Cmd, error) {
		return exec.Command(filepath.Join(t.TempDir(),
			"none")), nil
	}, func(string) {}); err == nil {
		t.Error("nothing was started")
	}
}

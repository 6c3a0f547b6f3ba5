package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// jumping is the command with a wall clock that jumps an hour ahead three seconds
// after the start of every process, and two hours back after six. The clock that only
// ever goes on is left as it is: a host's time that a user sets.
func jumping(t *testing.T) string {
	t.Helper()
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	source := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	text, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	const line = "\tmono -= startNano\n"
	if strings.Count(string(text), line) != 1 {
		t.Skip("this version of Go tells the time otherwise, so its clock cannot be made to jump")
	}
	dir := t.TempDir()
	changed, overlay, path := filepath.Join(dir, "time.go"), filepath.Join(dir, "overlay.json"), filepath.Join(dir,
		"starling")
	jumps := line + "\tif mono > 6e9 {\n\t\tsec -= 3600\n\t} else if mono > 3e9 {\n\t\tsec += 3600\n\t}\n"
	list, _ := json.Marshal(map[string]any{"Replace": map[string]string{source: changed}})
	for name, b := range map[string][]byte{changed: []byte(strings.Replace(string(text), line, jumps, 1)),
		overlay: list} {
		if err := os.WriteFile(name, b, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("go", "build", "-overlay", overlay, "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return path
}

// A clock that jumps an hour in mid-run, ahead and back, changes nothing: no worker is
// taken for dead, nothing times out, and the result is the same.
func TestClockJumps(t *testing.T) {
	if os.Getenv("STARLING_CLOCK") == "" {
		t.Skip("a Go library with another clock takes minutes to build; STARLING_CLOCK=1 does it")
	}
	path := jumping(t)
	s := newScenario(t)
	s.do("starling certs --hosts alpha --days 1 --out certs")
	real := binary
	binary = path // of everything that runs from here on; tests that do not run beside others
	began := time.Now()
	s.do("start run starling train graph --workers 3 --epochs 1000000 --layers 2 --hidden 16 --eval-every 0 " +
		"--checkpoint-dir ck --checkpoint-every 50 --tls certs/alpha --json got.json")
	binary = real
	s.do("await run ^epoch")
	time.Sleep(10*time.Second - time.Since(began)) // it is the jumps that are waited for
	s.do("await run epoch")
	s.run("run").Process.Signal(syscall.SIGINT)
	text := s.do("end run")
	for _, word := range []string{"lost", "stalls", "refused", "waited"} {
		if strings.Contains(text, word) {
			t.Errorf("%s: %s", word, text)
		}
	}
	if !strings.HasSuffix(text, "exit 130\n") {
		t.Fatal(text)
	}
	got := result(t, readFile(t, s.dir, "got.json"))
	for _, seconds := range got["epoch_seconds"].([]any) {
		if seconds.(float64) < 0 || seconds.(float64) > 1000 {
			t.Fatalf("an epoch took %v s", seconds)
		}
	}
	s.do(fmt.Sprintf("starling train graph --workers 3 --epochs %v --layers 2 --hidden 16 --eval-every 0 --quiet "+
		"--json want.json", got["epochs"]))
	if same := s.same("got.json", "want.json"); same != "the same losses\n" {
		t.Error(same)
	}
	t.Logf("%v epochs, the clock an hour ahead after 3 s and an hour behind after 6", got["epochs"])
}

package tasks

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"starling/disk"
)

// otherVar has this test's program take a task in a folder, and never finish it.
const otherVar = "STARLING_TASKS_OTHER"

func TestMain(m *testing.M) {
	if dir := os.Getenv(otherVar); dir != "" {
		f, err := Open(dir, "a plan")
		if err == nil {
			err = f.Do(context.Background(), "s", 1, func(int, *Out) (any, error) {
				fmt.Println("has it")
				_, err := io.ReadAll(os.Stdin) // until the test ends
				return nil, err
			})
		}
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// other is a process that has task 0 of stage s.
func other(t *testing.T, dir string) *os.Process {
	t.Helper()
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), otherVar+"="+dir)
	_, err := c.StdinPipe()
	must(t, err)
	out, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "has it\n" {
		t.Fatal(line, err)
	}
	return c.Process
}

// TestProcessWithoutLife: a process that has a task and makes no progress, as when it or its host is stopped, is named
// with its host; when it is gone, others do its task.
func TestProcessWithoutLife(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "work")
	p := other(t, dir)
	must(t, p.Signal(syscall.SIGSTOP))
	f, err := Open(dir, "a plan")
	must(t, err)
	defer f.Close()
	f.Lifeless = 100 * time.Millisecond
	did := 0
	work := func(int, *Out) (any, error) { did++; return nil, nil }
	host, err := os.Hostname()
	must(t, err)
	want := fmt.Sprintf("task 0 of stage s: process %d on %s has it and has shown no sign of life for 100ms; end that "+
		"process", p.Pid, host)
	for did == 0 {
		err = f.Do(t.Context(), "s", 1, work)
		if err == nil || !strings.HasPrefix(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Fatalf("%v, want %s", err, want)
		}
		if err := f.Finish(t.Context(), nil); err == nil || !strings.Contains(err.Error(),
			fmt.Sprintf("process %d on %s has been reading or finishing this work", p.Pid, host)) {
			t.Error(err)
		}
		must(t, p.Kill())
		_, err = p.Wait()
		must(t, err)
		must(t, f.Do(t.Context(), "s", 1, work))
	}
	if did != 1 {
		t.Error(did)
	}
}

// TestSignsOfLife: as long as its process touches a lock, a task may take as long as it needs.
func TestSignsOfLife(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "work")
	f, err := Open(dir, "a plan")
	must(t, err)
	defer f.Close()
	at := time.Now()
	f.now = func() time.Time { return at }
	s := &sweep{f: f, stage: "s", n: 1, done: make([]bool, 1), seen: map[int]*life{}}
	must(t, makeFolder(filepath.Join(dir, "s")))
	lock := f.taskDir("s", 0) + ".lock"
	must(t, os.WriteFile(lock, []byte("process 7 on elsewhere"), 0o666))
	release, free, err := disk.Claim(lock)
	must(t, err)
	if !free {
		t.Fatal("the lock is not free")
	}
	defer release()
	for range 10 {
		at = at.Add(f.Lifeless - time.Second)
		must(t, os.Chtimes(lock, at, at))
		if _, err := s.pass(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	at = at.Add(f.Lifeless)
	if _, err := s.pass(t.Context()); err == nil || !strings.Contains(err.Error(), "process 7 on elsewhere has it") {
		t.Error(err)
	}
}

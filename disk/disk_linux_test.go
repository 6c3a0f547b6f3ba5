package disk

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestMain is the process that tests kill: it starts a file and a folder, reports it and waits.
func TestMain(m *testing.M) {
	dir := os.Getenv("STARLING_TEST_UNFINISHED")
	if dir == "" {
		os.Exit(m.Run())
	}
	f, err := NewFolder(filepath.Join(dir, "folder"))
	g, err2 := Create(filepath.Join(dir, "file"))
	if err != nil || err2 != nil {
		panic(fmt.Sprint(err, err2))
	}
	fmt.Println(f.Tmp)
	fmt.Println(g.Name())
	os.Stdin.Read(make([]byte, 1))
}

// TestLeftBehind: what a killed process has left is removed when the next one writes there;
// what a process is still writing is not.
func TestLeftBehind(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // then the process is killed, and its output ends
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0])
	c.Env = append(os.Environ(), "STARLING_TEST_UNFINISHED="+dir)
	in, err := c.StdinPipe()
	must(t, err)
	defer in.Close()
	out, err := c.StdoutPipe()
	must(t, err, c.Start())
	lines := bufio.NewScanner(out)
	var unfinished []string
	for len(unfinished) < 2 && lines.Scan() {
		unfinished = append(unfinished, filepath.Base(lines.Text()))
	}
	theirs := []string{".file.tmp-copy", ".folder.tmp-1 of mine"} // a user may have such files
	for _, name := range theirs {
		must(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	write := func() {
		must(t, fill(t, filepath.Join(dir, "folder"), "x").Commit(),
			Write(filepath.Join(dir, "file"), writing("x", nil)))
	}
	write()
	finished := append(theirs, "folder", "file")
	has(t, dir, append(unfinished, finished...)...)
	must(t, c.Process.Kill())
	c.Wait()
	has(t, dir, append(unfinished, finished...)...)
	write()
	has(t, dir, finished...)
}

// TestReplaceInOneStep: while a folder is replaced, a reader always finds the old or the new one.
func TestReplaceInOneStep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	must(t, fill(t, dir, "x").Commit())
	if other := dir + "2"; os.Mkdir(other, 0o700) != nil || exchange(dir, other) != nil || exchange(dir, other) != nil {
		t.Skip("this file system cannot exchange two names")
	}
	stop, over := make(chan struct{}), make(chan int)
	go func() {
		missing := 0
		for {
			select {
			case <-stop:
				over <- missing
				return
			default:
			}
			if _, err := os.Stat(filepath.Join(dir, "x")); err != nil {
				missing++
			}
		}
	}()
	for range 300 {
		must(t, fill(t, dir, "x").Commit())
	}
	close(stop)
	if missing := <-over; missing > 0 {
		t.Errorf("it was missing %d times", missing)
	}
}

// TestModes: permissions follow the umask.
func TestModes(t *testing.T) {
	before := syscall.Umask(0o027)
	defer syscall.Umask(before)
	dir := t.TempDir()
	must(t, Write(filepath.Join(dir, "f"), writing("", nil)), fill(t, filepath.Join(dir, "d"), "x").Commit())
	for name, want := range map[string]os.FileMode{"f": 0o640, "d": os.ModeDir | 0o750} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v %v, want %v", name, info.Mode(), err, want)
		}
	}
}

// TestOpenElsewhere: a file that another process has opened, as the shell does for
// /dev/stdout, is written to and not replaced.
func TestOpenElsewhere(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	f, err := os.Create(path)
	must(t, err)
	defer f.Close()
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()), link))
	must(t, Write(link, writing("x", nil)))
	holds(t, path, "x")
	was, _ := f.Stat()
	if is, err := os.Stat(path); err != nil || !os.SameFile(was, is) {
		t.Error("the file was replaced", err)
	}
}

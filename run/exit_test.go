package run

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"starling/graph"
)

// The system names a file and what is wrong with it; what to do about it is added, and
// whose mistake it is.
func TestMessagesOfTheSystem(t *testing.T) {
	dir := t.TempDir()
	loop, file := filepath.Join(dir, "loop"), filepath.Join(dir, "file")
	if err := errors.Join(os.Symlink("loop", loop), os.WriteFile(file, nil, 0o644)); err != nil {
		t.Fatal(err)
	}
	open := func(path string) error { _, err := os.Open(path); return err }
	for _, c := range []struct {
		err    error
		status int
		says   string
	}{
		{&fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}, Failure,
			"x: no space left on device; the disk is full: "},
		{fmt.Errorf("checkpoint: %w", &fs.PathError{Op: "open", Path: "x", Err: syscall.EACCES}), Mistake,
			"; change its permissions"},
		{open(loop), Mistake, "; links form a cycle"},
		{open(filepath.Join(file, "x")), Mistake, "; a part of the path is a file"},
		{open(filepath.Join(dir, strings.Repeat("x", 5000))), Mistake, "; choose a shorter name"},
		{syscall.EACCES, Failure, "permission denied"}, // a socket's, say
		{errors.Join(errors.New("one"), errors.New("two")), Failure, "one; two"},
		{&graph.InputError{Field: "--json", Found: "x: permission denied", Fix: "choose another"}, Mistake,
			"--json: found x: permission denied; choose another"},
	} {
		if got := Message(c.err); !strings.Contains(got, c.says) || strings.Count(got, "; ") > 1 ||
			Status(c.err) != c.status {
			t.Errorf("%q with status %d, want %q with %d", got, Status(c.err), c.says, c.status)
		}
	}
}

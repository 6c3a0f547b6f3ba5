package disk

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// writing returns a function that writes a text and returns err.
func writing(text string, err error) func(io.Writer) error {
	return func(w io.Writer) error {
		io.WriteString(w, text)
		return err
	}
}

// holds checks the text of a file, and the names in its folder.
func holds(t *testing.T, path, text string, beside ...string) {
	t.Helper()
	if b, err := os.ReadFile(path); err != nil || string(b) != text {
		t.Errorf("%s says %q (%v), want %q", path, b, err, text)
	}
	has(t, filepath.Dir(path), append(beside, filepath.Base(path))...)
}

func has(t *testing.T, dir string, want ...string) {
	t.Helper()
	entries, _ := os.ReadDir(dir)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("%s has %v, want %v", dir, got, want)
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestWrite(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	must(t, Write(path, writing("one", nil)))
	if err := Write(path, writing("two", io.ErrShortWrite)); err == nil {
		t.Error("the error was swallowed")
	}
	holds(t, path, "one")
	must(t, os.Chmod(path, 0o640), Write(path, writing("three", nil)))
	holds(t, path, "three")
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("permissions have changed: %v %v", info.Mode(), err)
	}
}

// A link stays one, and its target is replaced atomically.
func TestWriteThroughLinks(t *testing.T) {
	dir, links := t.TempDir(), t.TempDir()
	path, link, second := filepath.Join(dir, "f"), filepath.Join(links, "link"), filepath.Join(links, "second")
	must(t, os.Symlink(path, link), os.Symlink("link", second))
	must(t, Write(second, writing("one", nil))) // where there was nothing
	holds(t, path, "one")
	if err := Write(second, writing("half", io.ErrShortWrite)); err == nil {
		t.Error("the error was swallowed")
	}
	holds(t, path, "one")
	must(t, Write(link, writing("two", nil)))
	holds(t, path, "two")
	has(t, links, "link", "second")
	if _, err := os.Readlink(second); err != nil {
		t.Error(err)
	}
}

// fill makes a folder of one file.
func fill(t *testing.T, dir, name string) *Folder {
	t.Helper()
	f, err := NewFolder(dir)
	must(t, err)
	must(t, os.WriteFile(filepath.Join(f.Tmp, name), nil, 0o600))
	return f
}

// TestReplace: a folder replaces another, also through a link and without exchange of names.
func TestReplace(t *testing.T) {
	for name, with := range map[string]func(a, b string) error{"exchange": exchange,
		"two renames": func(string, string) error { return errors.ErrUnsupported }} {
		t.Run(name, func(t *testing.T) {
			swap = with
			t.Cleanup(func() { swap = exchange })
			parent := t.TempDir()
			dir, link := filepath.Join(parent, "d"), filepath.Join(t.TempDir(), "link")
			must(t, os.Symlink(dir, link))
			must(t, fill(t, dir, "one").Commit(), fill(t, dir, "two").Commit())
			has(t, dir, "two")
			must(t, fill(t, link, "three").Commit())
			has(t, dir, "three")
			fill(t, dir, "four").Abort()
			has(t, dir, "three")
			has(t, parent, "d")
			f := fill(t, dir, "five")
			Discard(link)
			if err := f.Commit(); !errors.Is(err, errDiscarded) {
				t.Error(err)
			}
			has(t, dir, "three")
			has(t, parent, "d")
		})
	}
}

// TestAside: a folder that was moved aside is found, and kept, until another takes its place.
func TestAside(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "d [1]")
	must(t, fill(t, dir, "old").Commit())
	if got := Aside(dir); got != "" {
		t.Error(got)
	}
	old := filepath.Join(parent, ".d [1].tmp-7.old")
	must(t, os.Rename(dir, old))
	if got := Aside(dir); got != old {
		t.Errorf("%q", got)
	}
	must(t, fill(t, dir, "new").Commit())
	has(t, old, "old")
	must(t, fill(t, dir, "newer").Commit())
	has(t, parent, "d [1]")
	if aside := Aside(filepath.Join(parent, "never")); strings.Contains(aside, "d [1]") {
		t.Error(aside)
	}
}

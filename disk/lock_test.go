package disk

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// Folders of ended processes are removed; folders that are held, or never were, and files
// are not.
func TestSweep(t *testing.T) {
	tmp := t.TempDir()
	folder := func(name string) string {
		dir := filepath.Join(tmp, name)
		if err := os.MkdirAll(filepath.Join(dir, "parts"), 0o700); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	hold := func(dir string) func() {
		release, err := Hold(dir)
		if err != nil {
			t.Fatal(err)
		}
		return release
	}
	left, held, never := folder("x-left"), folder("x-held"), folder("x-never")
	hold(left)()
	release := hold(held)
	elsewhere := folder("elsewhere")
	hold(elsewhere)()
	if err := os.Symlink(elsewhere, filepath.Join(tmp, "x-link")); err != nil {
		t.Fatal(err)
	}
	os.WriteFile(filepath.Join(tmp, "x-file"), nil, 0o600)
	if got := Sweep(filepath.Join(tmp, "x-*")); !slices.Equal(got, []string{left}) {
		t.Error(got)
	}
	release()
	if got := Sweep(filepath.Join(tmp, "x-*")); !slices.Equal(got, []string{held}) {
		t.Error(got)
	}
	for _, dir := range []string{never, elsewhere} {
		if _, err := os.Stat(dir); err != nil {
			t.Error(err)
		}
	}
	if _, err := Hold(filepath.Join(tmp, "absent")); err == nil {
		t.Error("a folder that is not there was held")
	}
}

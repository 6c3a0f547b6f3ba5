package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func TestNameless(t *testing.T) {
	dir := t.TempDir()
	for _, make := range []func(string) (*os.File, error){
		func(dir string) (*os.File, error) { return Nameless(dir, "rows", 0) }, unlinked,
	} {
		f, err := make(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
			t.Errorf("%v (%v)", entries, err)
		}
		b := []byte("abc")
		if _, err := f.WriteAt(b, 5); err != nil {
			t.Error(err)
		}
		if _, err := f.ReadAt(b, 4); err != nil || string(b) != "\x00ab" {
			t.Errorf("%q (%v)", b, err)
		}
		if _, err := make(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
	}
}

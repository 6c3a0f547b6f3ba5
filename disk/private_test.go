package disk

import (
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Files of secrets are for their owner alone.
func TestSecretsThatOthersCanReadAreRefused(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("files have no such bits there")
	}
	path := filepath.Join(t.TempDir(), "token")
	if err := CheckPrivate(path); err != nil {
		t.Errorf("no file: %v", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, refused := range map[os.FileMode]bool{0o600: false, 0o400: false, 0o644: true, 0o640: true, 0o620: true,
		0o602: true} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if err := CheckPrivate(path); refused != (err != nil) {
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
}

package cluster

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// TestLocalSecret: processes of a user that need the secret at the same time all get the same, in a
// file of that user alone; one that others can read is refused.
func TestLocalSecret(t *testing.T) {
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	t.Setenv("HOME", home)
	secrets := make([]string, 8)
	var wg sync.WaitGroup
	for i := range secrets {
		wg.Go(func() {
			b, err := LocalSecret()
			if err != nil {
				t.Error(err)
			}
			secrets[i] = string(b)
		})
	}
	wg.Wait()
	for _, s := range secrets {
		if len(s) < 16 || s != secrets[0] {
			t.Fatalf("secrets %q", secrets)
		}
	}
	path, err := LocalSecretFile()
	if err != nil {
		t.Fatal(err)
	}
	left, _ := os.ReadDir(filepath.Dir(path))
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 || len(left) != 1 {
		t.Errorf("%v, %v; %d files", info, err, len(left))
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := LocalSecret(); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("a secret that others can read: %v", err)
	}
}

// TestLocalSecretWithoutHome: a user without a home has it in a temporary folder.
func TestLocalSecretWithoutHome(t *testing.T) {
	tmp := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", "")
	t.Setenv("HOME", "")
	t.Setenv("TMPDIR", tmp)
	first, err := LocalSecret()
	if err != nil {
		t.Fatal(err)
	}
	second, err := LocalSecret()
	path, _ := LocalSecretFile()
	if err != nil || string(first) != string(second) || !strings.HasPrefix(path, tmp) {
		t.Errorf("%q, then %q in %s: %v", first, second, path, err)
	}
}

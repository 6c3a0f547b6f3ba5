package spec

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"starling/graph"
)

// TestTokenFileOfOthers: a token file that other users can read or write is refused.
func TestTokenFileOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("a-secret-of-many-words\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for mode, private := range map[os.FileMode]bool{0o600: true, 0o400: true, 0o700: true,
		0o640: false, 0o604: false, 0o620: false, 0o602: false, 0o601: false, 0o644: false, 0o666: false} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := ReadToken(path)
		switch {
		case private && err != nil:
			t.Errorf("mode %04o: %v", mode, err)
		case !private && (!errors.Is(err, graph.ErrInput) || !strings.Contains(err.Error(), "chmod 600")):
			t.Errorf("mode %04o: %v", mode, err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	os.Chmod(path, 0o644)
	if _, err := ReadToken(link); err == nil {
		t.Error("a link hides the mode")
	}
}

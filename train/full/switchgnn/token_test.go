package switchgnn

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A token of the switch that others can read is refused before anything starts.
func TestSwitchTokenThatOthersCanRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(path, []byte("a secret of the switch"), 0o644); err != nil {
		t.Fatal(err)
	}
	o := options{SwitchMemory: "100MiB", SwitchUnits: 8, SwitchOrder: "bfs", SwitchBlocks: "auto",
		SwitchTokenFile: path}
	_, read := o.token()
	for _, err := range []error{o.Validate(), read} {
		if err == nil || !strings.Contains(err.Error(), "chmod 600 "+path) {
			t.Error(err)
		}
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if token, err := o.token(); o.Validate() != nil || err != nil || string(token) != "a secret of the switch" {
		t.Error(token, err)
	}
}

package dataset

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestEdgeListsDoNotGuess: of a table with more columns than an edge list has, neither ends nor labels are guessed.
func TestEdgeListsDoNotGuess(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	payments := write("pay.csv", "tx_id,from_user,to_user,amount\nt1,ann,bob,10.5\nt2,bob,cleo,7\n")
	users := write("users.csv", "user,age,city,fraud\nann,34,Oslo,no\nbob,29,Rome,yes\n")
	plain := write("plain.csv", "source,target\nann,bob\nbob,cleo\n")
	for name, c := range map[string]struct {
		src  string
		opt  ImportOptions
		want []string
	}{
		"ends":   {payments, ImportOptions{}, []string{"pay.csv", "from_user", "none of them source or target", "import table"}},
		"labels": {plain, ImportOptions{Labels: users}, []string{"users.csv", "none of them called label", "import table"}},
	} {
		out := filepath.Join(dir, name)
		_, err := Import("edgelist", c.src, c.opt, out)
		if err == nil {
			t.Errorf("%s: imported", name)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: no %q in %v", name, want, err)
			}
		}
		if _, err := os.Stat(out); err == nil {
			t.Errorf("%s: left %s", name, out)
		}
	}
	if _, err := Import("edgelist", write("amount.csv", "a,b,amount\nann,bob,10.5\nbob,cleo,7\n"), ImportOptions{}, filepath.Join(dir, "g")); err == nil ||
		!strings.Contains(err.Error(), "a, b, amount") {
		t.Error(err)
	}
}

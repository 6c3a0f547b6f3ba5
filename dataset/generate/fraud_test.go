package generate

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"testing"
)

// TestFraudTables: the same seed gives the same tables; one account in fifty is fraudulent; refunds come after
// decisions.
func TestFraudTables(t *testing.T) {
	read := func(seed uint64) (files [2][]byte) {
		p := DefaultParams()
		p.Nodes, p.Seed = 3000, seed
		out := filepath.Join(t.TempDir(), "bank")
		if _, _, err := FraudTables(p, out); err != nil {
			t.Fatal(err)
		}
		if _, _, err := FraudTables(p, out); err == nil {
			t.Error("tables replaced others")
		}
		for i, name := range []string{accountsFile, paymentsFile} {
			b, err := os.ReadFile(filepath.Join(out, name))
			if err != nil {
				t.Fatal(err)
			}
			files[i] = b
		}
		return files
	}
	a, b, c := read(4), read(4), read(5)
	if !bytes.Equal(a[0], b[0]) || !bytes.Equal(a[1], b[1]) || bytes.Equal(a[1], c[1]) {
		t.Error("tables are not a function of the seed")
	}
	accounts, err := csv.NewReader(bytes.NewReader(a[0])).ReadAll()
	if err != nil || len(accounts) != 3001 {
		t.Fatal(len(accounts), err)
	}
	decided, frauds := map[string]string{}, 0
	for _, r := range accounts[1:] {
		decided[r[0]] = r[6]
		if r[7] == "yes" {
			frauds++
		}
	}
	if frauds < 35 || frauds > 90 {
		t.Error(frauds, "fraudulent accounts of 3000")
	}
	payments, err := csv.NewReader(bytes.NewReader(a[1])).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	refunds := 0
	for _, r := range payments[1:] {
		if decided[r[0]] == "" || decided[r[1]] == "" || r[0] == r[1] {
			t.Fatal(r)
		}
		if r[3] == "refund" {
			refunds++
			if r[4] <= decided[r[1]] {
				t.Error("a refund before the decision", r)
			}
		}
	}
	if refunds == 0 {
		t.Error("no refunds")
	}
	for _, p := range []Params{{Nodes: 99}, {Nodes: 1e8}} {
		if _, _, err := FraudTables(p, filepath.Join(t.TempDir(), "x")); err == nil {
			t.Error(p.Nodes, "accounts")
		}
	}
}

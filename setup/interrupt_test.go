package setup

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"starling/graph"
)

// TestInterruptedReplacing: who is interrupted while a folder is replaced has the old one or
// the new one, whole, and nothing else.
func TestInterruptedReplacing(t *testing.T) {
	const files = 20
	parent := t.TempDir()
	out := filepath.Join(parent, "out")
	write := func(about func()) error {
		folder, err := graph.NewFolder(out)
		if err != nil {
			return err
		}
		for i := range files {
			if err := os.WriteFile(filepath.Join(folder.Tmp, strconv.Itoa(i)), nil, 0o644); err != nil {
				return err
			}
		}
		about()
		return folder.Commit()
	}
	if err := write(func() {}); err != nil {
		t.Fatal(err)
	}
	for round := range 200 {
		ctx, stop := context.WithCancel(t.Context())
		over := make(chan struct{})
		UntilInterrupted(ctx, out, func() (any, error) {
			defer close(over)
			return nil, write(stop)
		})
		<-over
		there, err := os.ReadDir(out)
		if all, _ := os.ReadDir(parent); err != nil || len(there) != files || len(all) != 1 {
			t.Fatalf("round %d: %d of %d files are there, among %v (%v)", round, len(there), files, all, err)
		}
	}
}

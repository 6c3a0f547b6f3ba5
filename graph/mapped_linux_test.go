package graph

import (
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// Faults that do not end the process reach Go as before, and a file that is cut off is named. That faults do
// end it is a test of cmd/starling.
func TestFaultsReachGo(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	n := 1 << 16
	d := &Dataset{Graph: &CSR{Indptr: make([]int64, n+1)}}
	if err := Save(dir, d, WriterOptions{}); err != nil {
		t.Fatal(err)
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	ExitOnFault()() // Go's handler is behind ours now
	path := filepath.Join(dir, "indptr.npy")
	if err := Shrunk(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 4096); err != nil {
		t.Fatal(err)
	}
	if err := Shrunk(); err == nil || !strings.Contains(err.Error(), path+": the file was cut off") {
		t.Error(err)
	}
	if !faults(func() int64 { return d.Graph.Indptr[n] }) {
		t.Error("reading what is gone is no fault")
	}
	d.Close()
	if err := Shrunk(); err != nil {
		t.Errorf("a closed dataset: %v", err)
	}
}

func faults(read func() int64) (fault bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { fault = recover() != nil }()
	return read() < 0
}

// A file that was replaced by another does not count as truncated.
func TestReplacedIsNotShrunk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	write(t, dir, small(Dense), nil)
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	short := filepath.Join(dir, "other")
	if err := os.WriteFile(short, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(short, filepath.Join(dir, "labels.npy")); err != nil {
		t.Fatal(err)
	}
	if err := Shrunk(); err != nil {
		t.Error(err)
	}
}

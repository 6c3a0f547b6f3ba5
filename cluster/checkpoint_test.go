package cluster

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"starling/nn"
)

func sample(epoch int) *Checkpoint {
	return &Checkpoint{Position: Position{Epoch: epoch}, Steps: 2 * epoch,
		Spec:    json.RawMessage(`{"model":"gcn","note":"00000000"}`),
		History: json.RawMessage(`{"loss":[0.1,null]}`), Groups: map[string][]nn.Tensor{
			"model": {{Name: "w", Shape: []int{2}, Data: []float64{1, float64(epoch)}}},
			"best":  {{Name: "v", Shape: []int{1}, F64: true, Data: []float64{0.1}}},
		}, Files: map[string][]byte{"caches-0": []byte("rows"), "caches-12": {byte(epoch), 2}}}
}

func save(t *testing.T, dir string, epoch, keep int) string {
	t.Helper()
	path, size, err := Save(dir, sample(epoch), keep)
	if err != nil || size == 0 {
		t.Fatal(size, err)
	}
	return path
}

func TestCheckpointRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	for _, n := range []int{0, 7, 1234567} {
		if got, err := Load(save(t, dir, n, 0)); err != nil || !reflect.DeepEqual(got, sample(n)) {
			t.Fatalf("%v %v", got, err)
		}
	}
	save(t, dir, 7, 0) // again, over the old one
	got, err := Latest(dir, nil, func(s string) { t.Error(s) })
	if err != nil || got.Epoch != 1234567 {
		t.Fatal(got, err)
	}
	hidden(t, dir)
}

// hidden fails if anything half-written is left.
func hidden(t *testing.T, dir string) {
	t.Helper()
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") {
			t.Errorf("%s was left behind", e.Name())
		}
	}
}

func TestCheckpointsKept(t *testing.T) {
	dir := t.TempDir()
	os.Mkdir(filepath.Join(dir, ".epoch-000001.tmp-1"), 0o755) // as a crash leaves it
	os.WriteFile(filepath.Join(dir, "notes.txt"), nil, 0o644)
	for n := range 10 {
		save(t, dir, n, 3)
	}
	if got, _ := Checkpoints(dir); !slices.Equal(got, []Position{{7, 0}, {8, 0}, {9, 0}}) {
		t.Fatal(got)
	}
	hidden(t, dir)
	if _, err := os.Stat(filepath.Join(dir, "notes.txt")); err != nil {
		t.Error("a file of another program was removed")
	}
}

// Checkpoints inside an epoch lie between those of its ends, in the order of steps.
func TestCheckpointsInsideAnEpoch(t *testing.T) {
	dir := t.TempDir()
	os.Mkdir(filepath.Join(dir, ".epoch-000001-step-000003.tmp-1"), 0o755) // as a crash leaves it
	for _, p := range []Position{{2, 0}, {1, 1200000}, {1, 0}, {1, 7}, {0, 9}} {
		c := sample(3)
		c.Position = p
		path, _, err := Save(dir, c, 3)
		if got, _ := Load(path); err != nil || len(path) > 0 && got != nil && got.Position != p {
			t.Fatal(got, err)
		}
	}
	if got, _ := Checkpoints(dir); !slices.Equal(got, []Position{{1, 7}, {1, 1200000}, {2, 0}}) {
		t.Fatal(got)
	}
	hidden(t, dir)
	os.RemoveAll(filepath.Join(dir, "epoch-000002"))
	os.Truncate(filepath.Join(dir, "epoch-000001-step-1200000", "model.safetensors"), 1)
	if c, err := Latest(dir, nil, nil); err != nil || c.Position != (Position{1, 7}) {
		t.Fatal(c, err)
	}
}

// Every file cut off at every length, and with every byte changed: always found,
// and the checkpoint before serves.
func TestDamagedCheckpoint(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, 1, 0)
	path := save(t, dir, 2, 0)
	for _, name := range []string{"state.json", "model.safetensors", "best.safetensors", "caches-0.safetensors"} {
		file := filepath.Join(path, name)
		whole, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		try := func(b []byte) {
			os.WriteFile(file, b, 0o644)
			var warned string
			c, err := Latest(dir, nil, func(s string) { warned += s })
			if err != nil || c.Epoch != 1 || !strings.Contains(warned, name) {
				t.Fatalf("%s damaged: %v %v, warned %q", name, c, err, warned)
			}
		}
		for i := range whole {
			try(whole[:i])
			b := slices.Clone(whole)
			b[i] ^= 1
			try(b)
		}
		os.Remove(file)
		if c, err := Latest(dir, nil, nil); err != nil || c.Epoch != 1 {
			t.Fatal(c, err)
		}
		os.WriteFile(file, whole, 0o644)
	}
	if c, err := Latest(dir, nil, nil); err != nil || c.Epoch != 2 {
		t.Fatal(c, err)
	}
}

func TestNoCheckpoint(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Join(dir, "absent")} {
		if _, err := Latest(d, nil, nil); !errors.Is(err, ErrNoCheckpoint) {
			t.Error(err)
		}
	}
	os.Mkdir(filepath.Join(dir, "epoch-000003"), 0o755)
	if _, err := Latest(dir, nil, nil); !errors.Is(err, ErrNoCheckpoint) {
		t.Error(err)
	}
}

func TestSaver(t *testing.T) {
	dir := t.TempDir()
	var told []int
	s := NewSaver(dir, 2, &Position{1, 0}, func(_ string, at Position, _ int64) { told = append(told, at.Epoch) })
	for _, n := range []int{1, 2, 3, 4, 4} {
		if err := s.Save(sample(n)); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Wait(); err != nil || !slices.Equal(told, []int{2, 3, 4}) {
		t.Fatal(told, err)
	}
	file := filepath.Join(dir, "file")
	os.WriteFile(file, nil, 0o644)
	s = NewSaver(file, 2, nil, nil)
	if err := s.Save(sample(1)); err != nil {
		t.Fatal(err)
	}
	if err := s.Wait(); err == nil {
		t.Error("a folder that is a file was written to")
	}
}

// Two runs that write to one folder, where no lock keeps them apart, are noticed by both.
func TestTwoRunsInOneCheckpointDir(t *testing.T) {
	dir := t.TempDir()
	one, two := NewSaver(dir, 3, nil, nil), NewSaver(dir, 3, nil, nil)
	if err := errors.Join(one.Save(sample(1)), one.Wait()); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{1, 2} {
		if err := errors.Join(two.Save(sample(n)), two.Wait()); err == nil ||
			!strings.Contains(err.Error(), "epoch-000001, which another run has written") {
			t.Errorf("epoch %d: %v", n, err)
		}
	}
	three := NewSaver(dir, 3, &Position{Epoch: 1}, nil) // as a run that is resumed
	if err := errors.Join(three.Save(sample(2)), three.Wait(), three.Save(sample(3)), three.Wait()); err != nil {
		t.Error(err)
	}
}

func FuzzState(f *testing.F) {
	s := state{Format: checkpointFormat, Version: checkpointVersion, Spec: json.RawMessage("{}"),
		History: json.RawMessage("{}"),
		Groups:  map[string]fileMark{"model": {Bytes: 3, CRC32C: "01234567"}}, CRC32C: noSum}
	b, err := s.encode()
	if err != nil {
		f.Fatal(err)
	}
	if _, err := decodeState(b); err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) { decodeState(b) })
}

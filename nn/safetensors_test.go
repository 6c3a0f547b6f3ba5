package nn

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"starling/graph"
)

func someTensors() []Tensor {
	return []Tensor{
		{Name: "convs.0.weight", Shape: []int{2, 3}, Data: []float64{1, -2, 0.5, float64(float32(0.1)), math.Inf(1),
			0}},
		{Name: "norms.0.running_var", Shape: []int{2}, F64: true, Data: []float64{math.Pi, 1e-300}},
		{Name: "eps", Shape: []int{}, Data: []float64{3}},
		{Name: "a \"name\" with\nlines", Shape: []int{0, 7}, Data: []float64{}},
		{Name: "last", Shape: []int{1, 1, 3}, F64: true, Data: []float64{-0.1, 2, 3}},
	}
}

func encode(t testing.TB, state []Tensor, meta map[string]string) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := WriteSafetensors(&b, state, meta); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSafetensorsRoundTrip(t *testing.T) {
	for _, meta := range []map[string]string{nil, {"format": "pt", "epoch": "7"}} {
		b := encode(t, someTensors(), meta)
		got, gotMeta, err := ReadSafetensors(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(got, someTensors()) || !reflect.DeepEqual(gotMeta, meta) {
			t.Fatalf("got %v %v", got, gotMeta)
		}
	}
	b := encode(t, nil, nil)
	if got, _, err := ReadSafetensors(bytes.NewReader(b), int64(len(b))); err != nil || len(got) != 0 {
		t.Fatal(got, err)
	}
}

// TestSafetensorsInPieces: arrays that lie elsewhere are written as those that do not, and
// read from the file as they were.
func TestSafetensorsInPieces(t *testing.T) {
	state := someTensors()
	large := make([]float64, 7*pieceNumbers)
	for i := range large {
		large[i] = float64(float32(i) / 3)
	}
	state = append(state, Tensor{Name: "large", Shape: []int{len(large) / 14, 14}, Data: large},
		Tensor{Name: "wide", Shape: []int{1, len(large)}, F64: true, Data: large}, Tensor{Name: "tall",
			Shape: []int{len(large), 1}, Data: large})
	want := encode(t, state, nil)
	if n, err := SafetensorsSize(state, nil); err != nil || n != int64(len(want)) {
		t.Errorf("%d bytes, %v; it was to be %d", len(want), err, n)
	}
	elsewhere := make([]Tensor, len(state))
	for i, from := range state {
		elsewhere[i] = Tensor{Name: from.Name, Shape: from.Shape, F64: from.F64, Read: func(into []float64, row int) {
			copy(into, from.Data[row*from.width():])
		}}
	}
	if !bytes.Equal(encode(t, elsewhere, nil), want) {
		t.Error("written in pieces it differs")
	}
	opened, err := OpenSafetensors(want)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(encode(t, opened, nil), want) {
		t.Error("opened and written again it differs")
	}
	for i := range opened {
		if got := opened[i].Numbers(); !reflect.DeepEqual(got, state[i].Data) {
			t.Errorf("%s differs", opened[i].Name)
		}
	}
}

func TestSafetensorsRefusesToWrite(t *testing.T) {
	for _, state := range [][]Tensor{
		{{Name: "a", Shape: []int{2}, Data: []float64{1}}},
		{{Name: "a", Shape: []int{1}, Data: []float64{1}}, {Name: "a", Shape: []int{1}, Data: []float64{1}}},
		{{Name: metadataKey, Shape: []int{1}, Data: []float64{1}}},
	} {
		if err := WriteSafetensors(&bytes.Buffer{}, state, nil); err == nil {
			t.Errorf("%v was written", state)
		}
	}
}

// withHeader is a file of a header written by hand.
func withHeader(header string, data int) []byte {
	b := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(b, header...), make([]byte, data)...)
}

func TestSafetensorsDamaged(t *testing.T) {
	whole := encode(t, someTensors(), nil)
	bad := map[string][]byte{
		"empty":       {},
		"truncated":   whole[:len(whole)-1],
		"longer":      append(bytes.Clone(whole), 0),
		"huge header": append(bytes.Repeat([]byte{0xff}, 8), whole[8:]...),
		"no object":   withHeader(`[]`, 0),
		"text after":  withHeader(`{} x`, 0),
		"twice":       withHeader(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8),
		"overlap":     withHeader(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}`, 4),
		"gap":         withHeader(`{"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}`, 8),
		"shape":       withHeader(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}}`, 4),
		"overflow":    withHeader(`{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}`, 0),
		"negative":    withHeader(`{"a":{"dtype":"F32","shape":[-1,-1],"data_offsets":[0,4]}}`, 4),
		"dtype":       withHeader(`{"a":{"dtype":"I64","shape":[1],"data_offsets":[0,8]}}`, 8),
		"metadata":    withHeader(`{"__metadata__":{"a":1}}`, 0),
	}
	for name, b := range bad {
		if _, _, err := ReadSafetensors(bytes.NewReader(b), int64(len(b))); !errors.Is(err, graph.ErrInput) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzSafetensors(f *testing.F) {
	f.Add(encode(f, someTensors(), map[string]string{"a": "b"}))
	f.Add(withHeader(`{"a":{"dtype":"F32","shape":[0],"data_offsets":[0,0]}}`, 0))
	f.Fuzz(func(t *testing.T, b []byte) {
		state, meta, err := ReadSafetensors(bytes.NewReader(b), int64(len(b)))
		opened, again := OpenSafetensors(b)
		if (err == nil) != (again == nil) {
			t.Fatalf("read: %v; opened: %v", err, again)
		}
		if err != nil {
			return
		}
		if !bytes.Equal(encode(t, opened, meta), encode(t, state, meta)) {
			t.Fatal("opened it is another than read")
		}
		// What was read can be written, and is then read back the same to the byte.
		first := encode(t, state, meta)
		twice, meta2, err := ReadSafetensors(bytes.NewReader(first), int64(len(first)))
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(first, encode(t, twice, meta2)) {
			t.Fatal("a second round differs")
		}
	})
}

// Python's own package reads what we write and the other way round.
func TestSafetensorsPython(t *testing.T) {
	python := cmp.Or(os.Getenv("STARLING_PYTHON"), "python3")
	if err := exec.Command(python, "-c", "import safetensors.numpy").Run(); err != nil {
		t.Skipf("%s has no safetensors package, so Python's reader was not tried; make test makes one that has it",
			python)
	}
	dir := t.TempDir()
	in, out := filepath.Join(dir, "in.safetensors"), filepath.Join(dir, "out.safetensors")
	if err := SaveSafetensors(in, someTensors(), map[string]string{"model": "gcn"}); err != nil {
		t.Fatal(err)
	}
	script := `
import sys
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
a = load_file(sys.argv[1])
print(sorted((k, str(v.dtype), v.shape, v.ravel().tolist()) for k, v in a.items()))
print(safe_open(sys.argv[1], "numpy").metadata())
save_file(a, sys.argv[2])`
	text, err := exec.Command(python, "-c", script, in, out).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, want := range []string{"('norms.0.running_var', 'float64', (2,), [3.141592653589793, 1e-300])",
		"('eps', 'float32', (), [3.0])", "{'model': 'gcn'}"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("Python read\n%s\nwithout %s", text, want)
		}
	}
	got, _, err := LoadSafetensors(out)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]Tensor{}
	for _, x := range got {
		named[x.Name] = x
	}
	for _, want := range someTensors() {
		if !reflect.DeepEqual(named[want.Name], want) {
			t.Errorf("Python wrote %v, want %v", named[want.Name], want)
		}
	}
}

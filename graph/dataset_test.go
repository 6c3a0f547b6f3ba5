package graph

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// small is a dataset with every kind of array; form picks the features.
func small(form FeatureKind) *Dataset {
	g, _ := FromEdges(4, []uint32{0, 1, 2}, []uint32{1, 2, 0}, []float32{1, 2, 3}, BuildOptions{Symmetrize: true})
	f := &Features{Rows: 4, Cols: 3}
	switch form {
	case Dense:
		f.F32 = []float32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	case BFloat16:
		f.BF16 = []uint16{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}
	case Sparse:
		f.Indptr, f.Indices, f.Values = []int64{0, 1, 1, 3, 3}, []uint32{2, 0, 1}, []float32{5, 6, 7}
	}
	return &Dataset{
		Meta: Meta{Name: "small", Source: "test", Notes: []string{"a note"}}, Graph: g, Features: f,
		Labels: &Labels{Classes: 2, Class: []int32{0, 1, 1, -1}},
		Splits: Splits{Train: []uint32{0}, Val: []uint32{1}, Test: []uint32{2}},
	}
}

func write(t *testing.T, dir string, d *Dataset, ids any) {
	t.Helper()
	w, err := Create(dir, WriterOptions{Overwrite: true})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort()
	err = errors.Join(w.Graph(d.Graph), w.Features(d.Features), w.Labels(d.Labels), w.Splits(d.Splits))
	switch ids := ids.(type) {
	case []int64:
		err = errors.Join(err, w.IntIDs(ids))
	case []string:
		err = errors.Join(err, w.TextIDs(ids))
	}
	if err := errors.Join(err, w.Commit()); err != nil {
		t.Fatal(err)
	}
}

func TestFolderRoundTrip(t *testing.T) {
	for _, form := range []FeatureKind{Dense, BFloat16, Sparse} {
		dir := filepath.Join(t.TempDir(), "d")
		want := small(form)
		if err := Save(dir, want, WriterOptions{}); err != nil {
			t.Fatal(err)
		}
		got, err := OpenWith(dir, OpenOptions{Verify: true})
		if err != nil {
			t.Fatal(err)
		}
		f, wf := got.Features, want.Features
		if !equalRows(rowsOf(got.Graph), rowsOf(want.Graph)) || !slices.Equal(f.F32, wf.F32) ||
			!slices.Equal(f.BF16, wf.BF16) ||
			!slices.Equal(f.Indices, wf.Indices) || !slices.Equal(f.Values, wf.Values) ||
			!slices.Equal(f.Indptr, wf.Indptr) ||
			!slices.Equal(got.Labels.Class, want.Labels.Class) || !slices.Equal(got.Splits.Test, want.Splits.Test) {
			t.Fatalf("%s: %+v", form, got)
		}
		if m := got.Meta; m.Name != "small" || !m.Symmetric || m.Classes != 2 || m.Notes[0] != "a note" ||
			m.Features.Kind != form {
			t.Fatalf("meta %+v", m)
		}
		if got.HasIDs() || got.ID(3) != "3" {
			t.Fatal("ids out of nowhere")
		}
		got.AdviseFeatures(Random)
		if err := errors.Join(got.checkContents(true, true), got.Close()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOriginalIDs(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	write(t, dir, small(Dense), []int64{10, -7, 30, 1 << 40})
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !d.HasIDs() || d.ID(1) != "-7" || d.ID(3) != "1099511627776" {
		t.Fatal(d.ID(1), d.ID(3))
	}
	d.Close()
	write(t, dir, small(Dense), []string{"anna", "", "ćirilo", "d d"})
	if d, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if d.ID(0) != "anna" || d.ID(1) != "" || d.ID(2) != "ćirilo" || d.ID(3) != "d d" {
		t.Fatal(d.ID(0), d.ID(1), d.ID(2), d.ID(3))
	}
}

// Every cut and every changed byte of every file must be an input error.
func TestDamageIsAlwaysFound(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	for _, form := range []FeatureKind{Dense, Sparse} {
		dir := filepath.Join(t.TempDir(), "d")
		write(t, dir, small(form), []string{"a", "b", "c", "d"})
		files, _ := os.ReadDir(dir)
		for _, file := range files {
			path := filepath.Join(dir, file.Name())
			whole, _ := os.ReadFile(path)
			for range 60 {
				bad := slices.Clone(whole)
				at := r.IntN(len(bad))
				what := fmt.Sprintf("%s %s cut at %d", form, file.Name(), at)
				if r.IntN(2) == 0 {
					bad = bad[:at]
				} else {
					bad[at] ^= byte(1 + r.IntN(255))
					what = fmt.Sprintf("%s %s changed at %d", form, file.Name(), at)
				}
				os.WriteFile(path, bad, 0o644)
				if d, err := Open(dir); !errors.Is(err, ErrInput) {
					t.Errorf("%s: %v %v", what, d != nil, err)
				} else if !strings.Contains(err.Error(), dir) {
					t.Errorf("%s: the message names no file: %v", what, err)
				}
			}
			os.WriteFile(path, whole, 0o644)
		}
		if d, err := Open(dir); err != nil {
			t.Fatal("undamaged:", err)
		} else {
			d.Close()
		}
		for _, file := range files {
			path := filepath.Join(dir, file.Name())
			whole, _ := os.ReadFile(path)
			os.Remove(path)
			if _, err := Open(dir); !errors.Is(err, ErrInput) {
				t.Errorf("without %s: %v", file.Name(), err)
			}
			os.WriteFile(path, whole, 0o644)
		}
	}
}

// A checksum that fits wrong contents: the contents themselves are checked.
func TestWrongContentsWithRightChecksum(t *testing.T) {
	for name, edit := range map[string]struct {
		file string
		data []byte
	}{
		"absent vertex": {"indices.npy", asBytes([]uint32{1, 2, 0, 2, 0, 9})},
		"offsets":       {"indptr.npy", asBytes([]int64{0, 4, 2, 6, 6})},
		"label":         {"labels.npy", asBytes([]int32{0, 1, 2, -1})},
		"overlap":       {"val.npy", asBytes([]uint32{0})},
		"column":        {"features_indices.npy", asBytes([]uint32{2, 0, 3})},
		"nan":           {"features_values.npy", asBytes([]float32{2, nan, 3})},
	} {
		dir := filepath.Join(t.TempDir(), "d")
		write(t, dir, small(Sparse), nil)
		forge(t, dir, edit.file, edit.data)
		_, err := OpenWith(dir, OpenOptions{CheckFeatures: true})
		if !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), edit.file) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What only a reading of everything can find.
func TestSymmetricThatIsNot(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	write(t, dir, small(Dense), nil)
	forge(t, dir, "indices.npy", asBytes([]uint32{1, 2, 0, 2, 0, 0}))
	if _, err := OpenWith(dir, OpenOptions{Verify: true}); !errors.Is(err, ErrInput) ||
		!strings.Contains(err.Error(), "symmetric") {
		t.Error(err)
	}
	if _, err := Open(filepath.Join(dir, metaFile)); !errors.Is(err, ErrInput) ||
		!strings.Contains(err.Error(), "name the folder") {
		t.Error(err)
	}
}

// forge replaces the array in a file and mends all checksums.
func forge(t *testing.T, dir, file string, data []byte) {
	t.Helper()
	m, err := ReadMeta(dir)
	if err != nil {
		t.Fatal(err)
	}
	a := m.Arrays[file]
	b := append(npyHeader(a.DType, a.Shape), data...)
	a.Bytes, a.CRC32C = int64(len(b)), fmt.Sprintf("%08x", crc32.Checksum(b, castagnoli))
	m.Arrays[file] = a
	text, _ := m.encode()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, file), b, 0o644),
		os.WriteFile(filepath.Join(dir, metaFile), text, 0o644)); err != nil {
		t.Fatal(err)
	}
}

func TestFolderWrittenByHand(t *testing.T) {
	dir := t.TempDir()
	put := func(name string, b []byte) { os.WriteFile(filepath.Join(dir, name), b, 0o644) }
	put("meta.json", []byte(`{"format":"starling-dataset","version":1,"nodes":2,"edges":1,"features":{"kind":"float32","dim":1},"task":"single-label","classes":1}`))
	put("indptr.npy", append(npyHeader("<i8", []int64{3}), asBytes([]int64{0, 1, 1})...))
	put("indices.npy", append(npyHeader("<u4", []int64{1}), asBytes([]uint32{1})...))
	put("features.npy", append(npyHeader("<f4", []int64{2, 1}), asBytes([]float32{1, 2})...))
	put("labels.npy", append(npyHeader("<i4", []int64{2}), asBytes([]int32{0, 0})...))
	put("train.npy", append(npyHeader("<u4", []int64{1}), asBytes([]uint32{1})...))
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Splits.Train) != 1 || d.Features.F32[1] != 2 {
		t.Fatalf("%+v", d)
	}
	d.Close()
	put("labels.npy", append(npyHeader("<i8", []int64{2}), asBytes([]int64{0, 0})...))
	if _, err := Open(dir); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), "astype") {
		t.Fatal(err)
	}
}

func TestTargetIsGuarded(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "d")
	os.Mkdir(dir, 0o755)
	if _, err := Create(dir, WriterOptions{Overwrite: true}); !errors.Is(err, ErrInput) {
		t.Fatal("a foreign folder was accepted:", err)
	}
	os.Remove(dir)
	write(t, dir, small(Dense), nil)
	if _, err := Create(dir, WriterOptions{}); !errors.Is(err, ErrInput) {
		t.Fatal("an existing dataset was accepted:", err)
	}
	write(t, dir, small(Sparse), nil)
	d, err := Open(dir)
	if err != nil || d.Features.Kind() != Sparse {
		t.Fatal(err)
	}
	d.Close()
	os.Mkdir(filepath.Join(dir, "run"), 0o755)
	if _, err := Create(dir, WriterOptions{Overwrite: true}); !errors.Is(err, ErrInput) ||
		!strings.Contains(err.Error(), "run in it") {
		t.Fatal("a dataset with a run in it was replaced:", err)
	}
	os.Remove(filepath.Join(dir, "run"))
	if _, err := Create(filepath.Join(parent, "no", "d"), WriterOptions{}); !errors.Is(err, ErrInput) {
		t.Fatal(err)
	}
	onlyChild(t, parent, "d")
}

func onlyChild(t *testing.T, parent string, names ...string) {
	t.Helper()
	entries, _ := os.ReadDir(parent)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if !slices.Equal(got, names) {
		t.Errorf("%s holds %v, want %v", parent, got, names)
	}
}

func TestFailedWriteLeavesNothing(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "d")
	write(t, dir, small(Dense), nil)
	bad := small(Dense)
	bad.Labels.Class[0] = 7
	if err := Save(dir, bad, WriterOptions{Overwrite: true}); !errors.Is(err, ErrInput) {
		t.Fatal(err)
	}
	bad = small(Dense)
	bad.Features.F32[0] = nan
	if err := Save(dir, bad, WriterOptions{Overwrite: true}); !errors.Is(err, ErrInput) {
		t.Fatal(err)
	}
	w, _ := Create(dir, WriterOptions{Overwrite: true})
	a, err := w.DenseFeatures(Dense, 4, 3)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(WriteSlice(a, []float32{1}), a.Close()); err == nil {
		t.Fatal("a short array was accepted")
	}
	w.Abort()
	onlyChild(t, parent, "d")
	d, err := Open(dir)
	if err != nil {
		t.Fatal("the old dataset is gone:", err)
	}
	d.Close()
}

func TestBadMeta(t *testing.T) {
	for text, want := range map[string]string{
		`"version":4,"nodes":2,"edges":1,"colour":"red"`:                                  "a newer starling",
		`"version":0,"nodes":2,"edges":1`:                                                 "version: found 0, want 1, 2 with a schema, or 3 with arrays in pieces; the file is damaged",
		`"version":1,"nodes":2,"edges":1,"task":"single-label","classes":1000000000`:      "classes: found 1000000000",
		`"version":1,"nodes":2,"edges":1,"name":"\u001b[31mred"`:                          `name: found "\x1b[31mred"`,
		`"version":1,"nodes":4611686018427387904,"edges":1`:                               "nodes: found 4611686018427387904",
		`"version":1,"nodes":2,"edges":1,"features":{"kind":"float32","dim":99999999999}`: "features.dim",
	} {
		if _, err := decodeMeta([]byte(`{"format":"starling-dataset",` + text + `}`)); !errors.Is(err, ErrInput) ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzMeta(f *testing.F) {
	m := Meta{Format: formatName, Version: 1, Nodes: 3, Checksum: "crc32c",
		Arrays: map[string]ArrayMeta{"indptr.npy": {DType: "<i8", Shape: []int64{4}, Bytes: 160}}}
	b, _ := m.encode()
	f.Add(b)
	f.Add([]byte(`{"format":"starling-dataset","version":1,"nodes":2,"edges":1}`))
	f.Add([]byte(`{"crc32c":"00"}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if m, err := decodeMeta(b); err == nil && (m.Nodes < 1 || m.Edges < 0) {
			t.Fatalf("%+v", m)
		} else if err != nil && !errors.Is(err, ErrInput) {
			t.Fatal(err)
		}
	})
}

// Any file of a folder written by hand, without checksums: what opens is sound.
func FuzzFolder(f *testing.F) {
	dir := filepath.Join(f.TempDir(), "d")
	d := small(Sparse)
	if err := Save(dir, d, WriterOptions{}); err != nil {
		f.Fatal(err)
	}
	meta := `{"format":"starling-dataset","version":1,"nodes":4,"edges":6,"features":{"kind":"sparse","dim":3},"task":"single-label","classes":2}`
	whole := map[string][]byte{"ids.txt": []byte("a\nb\nc\nd\n")}
	for _, name := range folderFiles[1:] {
		if b, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			whole[name] = b
		}
	}
	names := slices.Sorted(maps.Keys(whole))
	os.WriteFile(filepath.Join(dir, metaFile), []byte(meta), 0o644)
	for i, name := range names {
		f.Add(byte(i), whole[name])
	}
	f.Fuzz(func(t *testing.T, which byte, b []byte) {
		for i, name := range names {
			now := whole[name]
			if i == int(which)%len(names) {
				now = b
			}
			if err := os.WriteFile(filepath.Join(dir, name), now, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		d, err := OpenWith(dir, OpenOptions{Verify: true})
		if err != nil {
			if !errors.Is(err, ErrInput) {
				t.Fatal(err)
			}
			return
		}
		defer d.Close()
		for v := range uint32(d.Graph.Nodes()) {
			d.ID(v)
			d.Features.CopyRow(make([]float32, d.Features.Cols), v)
		}
	})
}

func TestNumpyReadsTheFolder(t *testing.T) {
	python := cmp.Or(os.Getenv("STARLING_PYTHON"), "python3")
	if err := exec.Command(python, "-c", "import numpy").Run(); err != nil {
		t.Skip(python, "has no numpy, so this is not checked here; make test makes one that has:", err)
	}
	dir := filepath.Join(t.TempDir(), "d")
	for _, form := range []FeatureKind{Dense, Sparse} {
		write(t, dir, small(form), []int64{1, 2, 3, 4})
		script := `
import json, sys, numpy as np
meta = json.load(open(sys.argv[1] + "/meta.json"))
for name, a in meta["arrays"].items():
    x = np.load(sys.argv[1] + "/" + name, mmap_mode="r")
    assert x.dtype.str == a["dtype"] and list(x.shape) == a["shape"], name
print(np.load(sys.argv[1] + "/indices.npy", mmap_mode="r").tolist())`
		out, err := exec.Command(python, "-c", script, dir).CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != "[1, 2, 0, 2, 0, 1]" {
			t.Fatalf("%v: %s", err, out)
		}
	}
}

// TestMovedAside: a dataset that is hidden, since a process was killed while replacing it where
// names cannot be exchanged, is named.
func TestMovedAside(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	write(t, dir, small(Dense), nil)
	aside := filepath.Join(filepath.Dir(dir), ".d.tmp-7.old")
	if err := os.Rename(dir, aside); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); !errors.Is(err, ErrInput) || !strings.Contains(err.Error(), aside) {
		t.Error(err)
	}
}

package graph

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestNPYHeaderRoundTrip(t *testing.T) {
	for _, shape := range [][]int64{{}, {0}, {3}, {2, 3}, {1 << 40, 7}, {1, 2, 3}} {
		b := npyHeader("<f4", shape)
		if len(b)%64 != 0 {
			t.Errorf("shape %v: header of %d bytes", shape, len(b))
		}
		h, err := ReadNPYHeader(bytes.NewReader(b))
		if err != nil || h.Descr != "<f4" || h.Fortran || !slices.Equal(h.Shape, shape) || h.Offset != int64(len(b)) {
			t.Errorf("shape %v: %+v %v", shape, h, err)
		}
	}
}

func header(version byte, dict string) []byte {
	b := []byte(npyMagic)
	b = append(b, version, 0, byte(len(dict)), byte(len(dict)>>8))
	if version > 1 {
		b = append(b, 0, 0)
	}
	return append(b, dict...)
}

func TestNPYVersionsAndSpellings(t *testing.T) {
	for _, c := range []struct {
		version byte
		dict    string
	}{
		{1, "{'descr': '<i8', 'fortran_order': True, 'shape': (4, 2), }    \n"},
		{2, `{"descr": "<i8", "fortran_order": True, "shape": (4L, 2L)}`},
		{3, "{'shape':(4,2,),'descr':'<i8','fortran_order':True}"},
	} {
		h, err := ReadNPYHeader(bytes.NewReader(header(c.version, c.dict)))
		if err != nil || h.Descr != "<i8" || !h.Fortran || !slices.Equal(h.Shape, []int64{4, 2}) ||
			h.DataBytes() != 64 {
			t.Errorf("%q: %+v %v", c.dict, h, err)
		}
	}
}

func TestBadNPYHeaders(t *testing.T) {
	good := "{'descr': '<i8', 'fortran_order': True, 'shape': (4, 2), }"
	for name, b := range map[string][]byte{
		"empty":      nil,
		"magic":      []byte("PK\x03\x04 and more"),
		"version":    header(9, good),
		"cut":        header(1, good)[:30],
		"long":       append([]byte(npyMagic), 2, 0, 255, 255, 255, 127),
		"record":     header(1, "{'descr': [('a', '<i8')], 'fortran_order': True, 'shape': (4, 2), }"),
		"overflow":   header(1, "{'descr': '<i8', 'fortran_order': True, 'shape': (9223372036854775807, 2), }"),
		"beyond":     header(1, "{'descr': '<i8', 'fortran_order': True, 'shape': (99999999999999999999, 2), }"),
		"negative":   header(1, "{'descr': '<i8', 'fortran_order': True, 'shape': (-1, 2), }"),
		"twice":      header(1, "{'descr': '<i8', 'descr': '<i8', 'shape': (4, 2), }"),
		"other key":  header(1, "{'descr': '<i8', 'order': '<i8', 'shape': (4, 2), }"),
		"missing":    header(1, "{'descr': '<i8', 'shape': (4, 2), }"),
		"after":      header(1, good+" or else"),
		"dimensions": header(1, "{'descr': '<i8', 'fortran_order': True, 'shape': ("+strings.Repeat("1,", 99)+"), }"),
	} {
		if h, err := ReadNPYHeader(bytes.NewReader(b)); !errors.Is(err, ErrInput) {
			t.Errorf("%s: %+v %v", name, h, err)
		}
	}
}

func FuzzNPYHeader(f *testing.F) {
	f.Add(npyHeader("<f4", []int64{3, 4}))
	f.Add(header(2, `{"descr": "<i8", "fortran_order": True, "shape": (4L, 2L)}`))
	f.Add(header(1, "{'descr': '|O', 'fortran_order': False, 'shape': (), }"))
	f.Fuzz(func(t *testing.T, b []byte) {
		h, err := ReadNPYHeader(bytes.NewReader(b))
		if err != nil {
			return
		}
		if h.DataBytes() < 0 || h.Elements() < 0 || h.Offset > int64(len(b)) {
			t.Fatalf("%+v", h)
		}
	})
}

func TestUnalignedArraysAreCopied(t *testing.T) {
	raw := asBytes([]int64{1, 2, 3, 0})
	shifted := append(make([]byte, 0, 64), 0)
	shifted = append(shifted, raw...)
	for off := range 2 {
		if got := fromBytes[int64](shifted[off : off+24]); off == 1 && !slices.Equal(got, []int64{1, 2, 3}) {
			t.Fatal(got)
		}
	}
}

// A link stays one, and what it leads to is written; a new file appears whole.
func TestWriteNPYThroughALink(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "a.npy"), filepath.Join(dir, "link.npy")
	if err := WriteNPY(file, []uint32{9, 9, 9, 9}); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(file, link); err != nil {
		t.Skip("no symbolic links can be made here: ", err)
	}
	if err := WriteNPY(link, []int32{1, 2, 3, 4, 5, 6}, 3, 2); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced: %v, %v", info, err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	h, err := ReadNPYHeader(bytes.NewReader(b))
	if err != nil || !slices.Equal(h.Shape, []int64{3, 2}) ||
		!slices.Equal(fromBytes[int32](b[len(b)-24:]), []int32{1, 2, 3, 4, 5, 6}) {
		t.Errorf("%+v, %v", h, err)
	}
}

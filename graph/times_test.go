package graph

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// timed is a graph of 3 vertices and 3 edges, all with times.
func timed() *Dataset {
	return &Dataset{Meta: Meta{Name: "timed", Dates: true},
		Graph: &CSR{Indptr: []int64{0, 1, 2, 3}, Indices: []uint32{1, 2, 0}, EdgeTimes: []int64{-5, 0, 1 << 40}},
		Times: []int64{NoTime, 7, -1}}
}

// TestTimesInAFolder: they are written, read, part of the contents, and may be added later.
func TestTimesInAFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	if err := Save(dir, timed(), WriterOptions{}); err != nil {
		t.Fatal(err)
	}
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	want := timed()
	if !slices.Equal(d.Graph.EdgeTimes, want.Graph.EdgeTimes) || !slices.Equal(d.Times, want.Times) || !d.Meta.Dates ||
		d.VertexTime(0) != NoTime || d.VertexTime(2) != -1 {
		t.Fatal(d.Graph.EdgeTimes, d.Times, d.Meta)
	}
	plain := timed()
	plain.Graph.EdgeTimes, plain.Times = nil, nil
	bare := filepath.Join(t.TempDir(), "bare")
	if err := Save(bare, plain, WriterOptions{}); err != nil {
		t.Fatal(err)
	}
	other, err := Open(bare)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if diff := d.Contents().Differences(other.Contents()); !slices.Equal(diff, []string{"times"}) || other.VertexTime(1) != NoTime {
		t.Error(diff, other.Times)
	}
	for _, name := range []string{"times.npy", "edge_times.npy"} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bare, name), b, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	added, err := Open(bare)
	if err != nil {
		t.Fatal(err)
	}
	defer added.Close()
	if !slices.Equal(added.Graph.EdgeTimes, want.Graph.EdgeTimes) || !slices.Equal(added.Times, want.Times) {
		t.Error(added.Graph.EdgeTimes, added.Times)
	}
}

// TestBadTimesAreRefused on writing, and in a folder that has them.
func TestBadTimesAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		change func(d *Dataset)
		want   string
	}{
		"no time of an edge": {func(d *Dataset) { d.Graph.EdgeTimes[1] = NoTime }, "edge_times: found no time at position 1"},
		"far edge":           {func(d *Dataset) { d.Graph.EdgeTimes[2] = MaxTime + 1 }, "edge_times: found 4611686018427387905 at position 2"},
		"far vertex":         {func(d *Dataset) { d.Times[0] = -MaxTime - 1 }, "times: found -4611686018427387905 at position 0"},
		"few vertices":       {func(d *Dataset) { d.Times = d.Times[:2] }, "times.npy: found 2 rows, want 3"},
		"few edges":          {func(d *Dataset) { d.Graph.EdgeTimes = d.Graph.EdgeTimes[:1] }, "edge_times: found 1 time, want one per edge (3)"},
	} {
		d, dir := timed(), filepath.Join(t.TempDir(), "data")
		c.change(d)
		if err := Save(dir, d, WriterOptions{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for file, b := range map[string]string{"edge_times.npy": npyOf([]int64{1, NoTime, 3}), "times.npy": npyOf([]int64{1, 2}),
		"edge_times.npy ": npyOf([]float32{1, 2, 3})} {
		dir := filepath.Join(t.TempDir(), "data")
		plain := timed()
		plain.Graph.EdgeTimes, plain.Times = nil, nil
		if err := Save(dir, plain, WriterOptions{}); err != nil {
			t.Fatal(err)
		}
		file = strings.TrimSpace(file)
		if err := os.WriteFile(filepath.Join(dir, file), []byte(b), 0o644); err != nil {
			t.Fatal(err)
		}
		if d, err := Open(dir); err == nil || !strings.Contains(err.Error(), file) {
			d.Close()
			t.Errorf("%s: %v", file, err)
		}
	}
}

func npyOf[T element](s []T) string {
	return string(npyHeader(descrOf[T](), []int64{int64(len(s))})) + string(asBytes(s))
}

func TestTimesAreWrittenForPeople(t *testing.T) {
	dates, plain := Meta{Dates: true}, Meta{}
	for _, c := range []struct {
		m    *Meta
		t    int64
		want string
	}{{&dates, 0, "1970-01-01"}, {&dates, 86400*365 + 61, "1971-01-01T00:01:01Z"}, {&plain, 2019, "2019"},
		{&dates, NoTime, "no time"}, {&dates, 1 << 50, "1125899906842624"}, {&dates, -86400, "1969-12-31"}} {
		if got := c.m.TimeText(c.t); got != c.want {
			t.Errorf("%d: %s, want %s", c.t, got, c.want)
		}
	}
}

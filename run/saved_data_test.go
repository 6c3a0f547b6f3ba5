package run

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"starling/event"
	"starling/graph"
	"starling/spec"
)

// cutIn2 makes a partition of two parts.
func cutIn2(t *testing.T, dir, method string) string {
	t.Helper()
	cut := spec.DefaultPartition()
	cut.Parts, cut.Method, cut.Out = 2, method, filepath.Join(t.TempDir(), "parts")
	if _, err := Partition(context.Background(), dir, cut, event.All()); err != nil {
		t.Fatal(err)
	}
	return cut.Out
}

// changed is a copy of a dataset with other features, labels or splits, and without checksums, as
// a script would write it. The numbers of vertices and edges stay.
func changed(t *testing.T, dir, kind string) string {
	t.Helper()
	out := copied(t, dir)
	meta, err := graph.ReadMeta(out)
	if err != nil {
		t.Fatal(err)
	}
	path := func(name string) string { return filepath.Join(out, name+".npy") }
	if kind == "splits" {
		a := meta.Arrays
		a["val.npy"], a["test.npy"] = a["test.npy"], a["val.npy"]
		err = errors.Join(os.Rename(path("val"), path("was")), os.Rename(path("test"), path("val")),
			os.Rename(path("was"), path("test")))
	} else {
		b, _ := os.ReadFile(path(kind))
		b[len(b)-4] ^= 1
		err = os.WriteFile(path(kind), b, 0o644)
	}
	for name, a := range meta.Arrays {
		a.CRC32C = ""
		meta.Arrays[name] = a
	}
	meta.CRC32C = ""
	text, wrong := json.Marshal(meta)
	if err := errors.Join(err, wrong, os.WriteFile(filepath.Join(out, "meta.json"), text, 0o644)); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestResumeOnOtherData: whether a run was given a dataset or a partition, and is continued on a
// dataset or a partition, other data are refused, and the kind that differs is named. Another cut
// of the same data, or the dataset itself, continues the run.
func TestResumeOnOtherData(t *testing.T) {
	data := block(t, nil)
	workers := func(dir string, n int) spec.Spec {
		s := quick(dir)
		s.Cluster.Workers, s.Cluster.InProcess, s.Output.Quiet, s.Training.Epochs = n, n > 1, true, 2
		return s
	}
	sources := map[string]spec.Spec{"dataset": workers(data, 1), "partition": workers(cutIn2(t, data, "hash"), 2)}
	for source, s := range sources {
		s.Checkpoints.Dir = filepath.Join(t.TempDir(), "checkpoints")
		trained(t, s, nil)
		resumed := func(dir string, n int) error {
			c := workers(dir, n)
			c.Checkpoints.Dir, c.Checkpoints.Resume, c.Training.Epochs = copied(t, s.Checkpoints.Dir), true, 3
			_, err := Train(context.Background(), c, nil)
			return err
		}
		for _, kind := range []string{"features", "labels", "splits"} {
			other := changed(t, data, kind)
			for where, err := range map[string]error{"dataset": resumed(other, 1),
				"partition": resumed(cutIn2(t, other, "hash"), 2)} {
				if !isMistake(err, "its "+kind+" differ") {
					t.Errorf("of a %s, on a %s with other %s: %v", source, where, kind, err)
				}
			}
		}
		for where, err := range map[string]error{"dataset": resumed(data, 1),
			"other cut": resumed(cutIn2(t, data, "chunk"), 2)} {
			if err != nil {
				t.Errorf("of a %s, on the same data as %s: %v", source, where, err)
			}
		}
	}
}

// TestPartitionOfOtherData: --partition with a dataset that it was not made from.
func TestPartitionOfOtherData(t *testing.T) {
	data := block(t, nil)
	s := quick(changed(t, data, "labels"))
	s.Cluster.Partition, s.Cluster.Workers, s.Cluster.InProcess, s.Output.Quiet = cutIn2(t, data, "hash"), 2, true, true
	if _, err := Train(context.Background(), s, nil); !isMistake(err, "of a dataset with other labels") {
		t.Error(err)
	}
}

// TestDataOfEarlierVersions: what such checkpoints and partitions know is compared; where they
// know nothing in common, the data count as different.
func TestDataOfEarlierVersions(t *testing.T) {
	mark := func(meta, graphSum, cut string) savedData {
		return savedData{dataMark{3, 4, meta, graph.Contents{Graph: graphSum}}, cut}
	}
	for _, c := range []struct {
		one, other savedData
		same       bool
	}{
		{mark("a", "", ""), mark("a", "g", ""), true},
		{mark("a", "", ""), mark("b", "g", ""), false},
		{mark("a", "g", ""), mark("b", "g", "x"), true},
		{mark("", "", "x"), mark("", "g", "x"), true},
		{mark("", "", "x"), mark("", "g", "y"), false},
		{mark("", "", ""), mark("", "", ""), false},
	} {
		if got := c.one.sameAs(c.other) == nil; got != c.same {
			t.Errorf("%v and %v: same %v", c.one, c.other, got)
		}
	}
}

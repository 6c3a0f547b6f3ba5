package run

import (
	"context"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"starling/dataset/generate"
	"starling/event"
	"starling/setup/setuptest"
	"starling/spec"
)

// TestTrainCutsAsPartition: starling partition and train --workers, both without other flags, make
// the same parts: losses, planned and counted bytes are equal to the bit.
func TestTrainCutsAsPartition(t *testing.T) {
	dir := powerLaw(t, 600, 6000)
	for _, servers := range []int{1, 2} {
		for _, partitioner := range []string{"multilevel", "g3", "fennel", "bytegnn"} {
			s := setuptest.Quick(dir)
			s.Cluster.Workers, s.Cluster.Servers, s.Cluster.InProcess, s.Cluster.Partitioner, s.Output.Quiet = 4,
				servers, true, partitioner, true
			direct := trained(t, onFewThreads(s), event.All())

			cut := spec.DefaultPartition()
			cut.Parts, cut.Servers, cut.Method, cut.Out = 4, servers, partitioner, filepath.Join(t.TempDir(), "parts")
			if _, err := Partition(context.Background(), dir, cut, event.All()); err != nil {
				t.Fatal(err)
			}
			s.Dataset, s.Cluster.Partitioner = cut.Out, spec.Default().Cluster.Partitioner
			folder := trained(t, onFewThreads(s), event.All())
			if !slices.Equal(direct.Loss, folder.Loss) {
				t.Errorf("%s, %d servers: losses %v, on the parts %v", partitioner, servers, direct.Loss, folder.Loss)
			}
			if direct.Bytes.Total == 0 || !reflect.DeepEqual(direct.Bytes, folder.Bytes) {
				t.Errorf("%s, %d servers: bytes %+v, on the parts %+v", partitioner, servers, direct.Bytes, folder.Bytes)
			}
		}
	}
}

// TestTrainNamesItsPartition: the note of train --workers is the command that gives the same parts,
// and its doubts about them are shown.
func TestTrainNamesItsPartition(t *testing.T) {
	dir := powerLaw(t, 12, 60)
	s := setuptest.Quick(dir)
	s.Cluster.Workers, s.Cluster.Servers, s.Cluster.InProcess, s.Cluster.Partitioner, s.Seed = 12, 2, true, "fennel", 7
	var notes []event.Note
	trained(t, onFewThreads(s), event.Func(func(e event.Event) {
		if n, ok := e.(event.Note); ok {
			notes = append(notes, n)
		}
	}))
	named := func(text string) bool {
		return slices.ContainsFunc(notes, func(n event.Note) bool { return strings.Contains(n.Text, text) })
	}
	for _, text := range []string{"starling partition " + dir + " --parts 12 --servers 2 --method fennel --seed 7 --out PARTS",
		"small parts: 12 of 12"} {
		if !named(text) {
			t.Errorf("no note has %q: %v", text, notes)
		}
	}
}

// powerLaw is a dataset whose degrees vary much: by vertices alone its parts would differ.
func powerLaw(t *testing.T, nodes, edges int64) string {
	t.Helper()
	p := generate.DefaultParams()
	p.Nodes, p.Edges, p.Features, p.Classes = nodes, edges, 12, 4
	dir := filepath.Join(t.TempDir(), "rmat")
	if _, err := generate.Dataset("rmat", p, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestPartitionPlansAsTheDryRun: the bytes of an epoch that starling partition prints equal train --dry-run's on the same
// parts with the same settings, and both say which these are.
func TestPartitionPlansAsTheDryRun(t *testing.T) {
	dir := setuptest.Block(t, nil)
	for _, model := range []string{"gcn", "sage", "gat"} {
		cut := spec.DefaultPartition()
		cut.Parts, cut.Out, cut.Model, cut.Layers, cut.Hidden, cut.Heads = 3, filepath.Join(t.TempDir(), "parts"), model, 2,
			16, 4
		r, err := Partition(context.Background(), dir, cut, event.All())
		if err != nil {
			t.Fatal(err)
		}
		s := spec.Default()
		s.Dataset, s.Model.Name, s.Model.Layers, s.Model.Hidden = cut.Out, model, 2, 16
		if model == "gat" {
			s.Model.Heads = 4
		}
		done, p, err := DryRun(s, event.All())
		if err != nil {
			t.Fatal(err)
		}
		if r.Plan.EpochBytes != p.SentEpoch || r.Plan.FeatureBytes != p.SentOnce || p.SentEpoch == 0 {
			t.Errorf("%s: partition plans %d bytes and %d once, train %d and %d", model, r.Plan.EpochBytes,
				r.Plan.FeatureBytes, p.SentEpoch, p.SentOnce)
		}
		if want := done.Trained(); !strings.Contains(r.String(), want) || !strings.Contains(p.String(), want) {
			t.Errorf("no %q in\n%s%s", want, r, p)
		}
	}
}

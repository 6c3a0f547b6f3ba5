package run

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"starling/event"
	"starling/graph"
	"starling/partition"
	"starling/predict"
	"starling/setup/setuptest"
	"starling/spec"
)

// npyBody is an array of 4-byte elements without its header.
func npyBody(t *testing.T, file string) []uint32 {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	b = b[10+int(binary.LittleEndian.Uint16(b[8:])):]
	out := make([]uint32, len(b)/4)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return out
}

// TestPredictInShards: a file per part has the bits of the joined file, at the vertices that the other names.
func TestPredictInShards(t *testing.T) {
	dir, parts := setuptest.Block(t, nil), filepath.Join(t.TempDir(), "parts")
	cut := spec.DefaultPartition()
	cut.Parts, cut.Out, cut.Method = 3, parts, "hash"
	if _, err := Partition(context.Background(), dir, cut, event.All()); err != nil {
		t.Fatal(err)
	}
	s := setuptest.Quick(dir)
	s.Training.Epochs, s.Output.Dir = 3, filepath.Join(t.TempDir(), "run")
	trained(t, s, nil)
	for _, what := range []string{"labels", "probabilities", "embeddings"} {
		o := predict.Options{Run: s.Output.Dir, Dataset: parts, What: what, Out: filepath.Join(t.TempDir(), "rows.npy"), InProcess: true}
		joined, err := predict.Run(context.Background(), o)
		if err != nil {
			t.Fatal(err)
		}
		whole := npyBody(t, o.Out)
		o.Shards = true
		p, err := predict.Run(context.Background(), o)
		if err != nil || p.Shards != 3 || p.Vertices != joined.Vertices || p.Width != joined.Width {
			t.Fatalf("%v: %+v, joined %+v", err, p, joined)
		}
		seen := map[uint32]bool{}
		for k := range 3 {
			prefix := fmt.Sprintf("%s-%d", strings.TrimSuffix(o.Out, ".npy"), k)
			rows, ids := npyBody(t, prefix+".npy"), npyBody(t, prefix+".ids.npy")
			book, err := partition.OpenPart(parts, k)
			if err != nil || len(ids) != book.Core() || len(rows) != len(ids)*p.Width {
				t.Fatalf("%s, part %d: %d rows of %d vertices (%v)", what, k, len(rows), len(ids), err)
			}
			book.Close()
			for i, v := range ids {
				for j := range p.Width {
					if rows[i*p.Width+j] != whole[int(v)*p.Width+j] {
						t.Fatalf("%s: vertex %d has another row in part %d", what, v, k)
					}
				}
				seen[v] = true
			}
		}
		if len(seen) != p.Vertices || !strings.Contains(p.String(), "rows-{K}.ids.npy") {
			t.Errorf("%d of %d vertices; %s", len(seen), p.Vertices, p)
		}
		if _, err := predict.Run(context.Background(), o); !errors.Is(err, graph.ErrInput) {
			t.Error("files were replaced:", err)
		}
		o.Dataset, o.Out = dir, filepath.Join(t.TempDir(), "other.npy")
		if _, err := predict.Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), "--shards") {
			t.Error(err)
		}
	}
}

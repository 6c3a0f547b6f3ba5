package shards

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"starling/dataset"
	"starling/disk/tasks"
	"starling/graph"
)

// web writes files of a folder of shards.
func web(t *testing.T, files map[string]string) (dir, out string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "web")
	must(t, os.Mkdir(dir, 0o777))
	for name, text := range files {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o666))
	}
	return dir, filepath.Join(filepath.Dir(dir), "out")
}

// refuses fails unless the error is a user's mistake of one sentence with these words.
func refuses(t *testing.T, err error, words ...string) {
	t.Helper()
	if !errors.Is(err, graph.ErrInput) || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%q is not in %q", w, err)
		}
	}
}

func TestWrongShards(t *testing.T) {
	for name, c := range map[string]struct {
		files map[string]string
		opt   Options
		words []string
	}{
		"types differ":   {map[string]string{"a.csv": "1,2\n2,3\n", "b.csv": "x,y\ny,z\n"}, Options{}, []string{"b.csv: ids: found names, want whole numbers, as in", "a.csv; write the ids", "--ids text"}},
		"leading zeros":  {map[string]string{"a.csv": "1,2\n2,3\n", "b.csv": "007,1\n008,2\n"}, Options{}, []string{"b.csv: ids: found names"}},
		"twice":          {map[string]string{"a.csv": "1,2\n2,3\n", "b.csv": "1,2\n2,3\n"}, Options{}, []string{"b.csv: found the same edges as in", "a.csv", "every shard once"}},
		"empty":          {map[string]string{"a.csv": "1,2\n", "b.csv": ""}, Options{}, []string{"b.csv: found an empty file", "cut off"}},
		"cut off":        {map[string]string{"a.csv": "1,2\n", "b.csv": "3,4\n5,"}, Options{}, []string{"b.csv: line 2: found \"5,\", want a source and a target"}},
		"packed, cut":    {map[string]string{"a.csv": "1,2\n", "b.csv.gz": "\x1f\x8b\x08\x00"}, Options{}, []string{"b.csv.gz: gzip", "a whole gzip file"}},
		"beyond nodes":   {map[string]string{"a.csv": "1,2\n", "b.csv": "3,11\n"}, Options{ImportOptions: dataset.ImportOptions{Nodes: 10}}, []string{"b.csv: ids: found 11, want 0 to 9"}},
		"names, numbers": {map[string]string{"a.csv": "x,y\n"}, Options{IDs: "numbers"}, []string{"a.csv: ids: found names, want whole numbers"}},
		"other files":    {map[string]string{"edges-1.csv": "1,2\n", "b.csv": "3,4\n"}, Options{}, []string{"found b.csv beside files called edges"}},
		"missing":        {map[string]string{"part-0.csv": "1,2\n", "part-2.csv": "3,4\n"}, Options{}, []string{"found no part-1.csv, beside part-2.csv", "add it; or"}},
		"no shard":       {map[string]string{"readme.md": "hello"}, Options{}, []string{"no table in the folder"}},
		"no effect":      {map[string]string{"a.csv": "1,2\n"}, Options{ImportOptions: dataset.ImportOptions{Labels: "x"}}, []string{"--labels", "without effect"}},
		"a hub":          {map[string]string{"a.csv": star(70_000)}, Options{Memory: LeastMemory}, []string{"--memory", "in-edges of vertices", "at least"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, out := web(t, c.files)
			_, err := Import(t.Context(), dir, c.opt, out)
			refuses(t, err, c.words...)
			if _, err := os.Stat(out); err == nil {
				t.Error("there is a dataset")
			}
		})
	}
}

// star has all edges end in vertex 0.
func star(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d,0\n", i+1)
	}
	return b.String()
}

// stopAt ends the context when a stage has done so much.
func stopAt(t *testing.T, stage string, opt Options) (context.Context, Options) {
	ctx, cancel := context.WithCancel(t.Context())
	opt.Progress = func(s string, done, total int64) {
		if s == stage {
			cancel()
		}
	}
	return ctx, opt
}

func random(n int, seed uint64) string {
	r := rand.New(rand.NewPCG(seed, 0))
	var b strings.Builder
	for range n {
		fmt.Fprintf(&b, "%d,%d\n", 3*r.IntN(2000), 3*r.IntN(2000))
	}
	return b.String()
}

// TestGoesOnOnlyWithTheSame: unfinished work goes on with the shards and settings that it began with, and no others.
func TestGoesOnOnlyWithTheSame(t *testing.T) {
	files := map[string]string{"a.csv": random(9000, 1), "b.csv": random(9000, 2), "c.csv": random(9000, 3)}
	dir, out := web(t, files)
	opt := Options{Memory: small}
	begin := func(stage string) {
		t.Helper()
		ctx, stopped := stopAt(t, stage, opt)
		if _, err := Import(ctx, dir, stopped, out); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	begin("read")
	path := filepath.Join(dir, "b.csv")
	info, err := os.Stat(path)
	must(t, err)
	must(t, os.Rename(path, path+".away"))
	_, err = Import(t.Context(), dir, opt, out)
	refuses(t, err, WorkFolder(out), "unfinished work of other shards or settings", "b.csv", "remove the folder")
	must(t, os.WriteFile(path, []byte(random(9000, 4)), 0o666))
	_, err = Import(t.Context(), dir, opt, out)
	refuses(t, err, "unfinished work of other shards")
	must(t, os.Rename(path+".away", path))
	must(t, os.Chtimes(path, info.ModTime(), info.ModTime()))
	other := opt
	other.Symmetrize = true
	_, err = Import(t.Context(), dir, other, out)
	refuses(t, err, "Symmetrize")
	begin("spread")
	cut, err := filepath.Glob(filepath.Join(WorkFolder(out), "spread", "*", "edges"))
	must(t, err)
	whole, err := os.ReadFile(cut[0])
	must(t, err)
	must(t, os.Truncate(cut[0], 100))
	_, err = Import(t.Context(), dir, opt, out)
	var damaged *tasks.Damaged
	if !errors.As(err, &damaged) || !strings.Contains(err.Error(), cut[0]+": the file was cut off or changed: found 100 bytes") ||
		!strings.HasSuffix(err.Error(), "remove "+WorkFolder(out)+" and start again") {
		t.Error(err)
	}
	must(t, os.WriteFile(cut[0], whole, 0o666))
	_, err = Import(t.Context(), dir, opt, out)
	must(t, err)
	fresh := filepath.Join(filepath.Dir(out), "fresh")
	_, err = Import(t.Context(), dir, opt, fresh)
	must(t, err)
	a, err := os.ReadFile(filepath.Join(out, "meta.json"))
	must(t, err)
	b, err := os.ReadFile(filepath.Join(fresh, "meta.json"))
	must(t, err)
	if string(a) != string(b) { // with the checksums of all files
		t.Errorf("%s\n%s", a, b)
	}
}

// TestLateHelper: one that joins when the import is over begins nothing, --overwrite or not.
func TestLateHelper(t *testing.T) {
	dir, out := web(t, map[string]string{"a.csv": random(900, 1)})
	opt := Options{Memory: small}
	_, err := Import(t.Context(), dir, opt, out)
	must(t, err)
	before, err := os.Stat(filepath.Join(out, "meta.json"))
	must(t, err)
	opt.Role.Helper = true
	for _, opt.Overwrite = range []bool{false, true} {
		_, err := Import(t.Context(), dir, opt, out)
		must(t, err)
	}
	opt.Role.Helper = false // this is the user, who wants it made again
	_, err = Import(t.Context(), dir, opt, out)
	must(t, err)
	after, err := os.Stat(filepath.Join(out, "meta.json"))
	must(t, err)
	if os.SameFile(before, after) {
		t.Error("it was not made again")
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(out), ".*")); left != nil {
		t.Error(left)
	}
}

// TestWrongPieces: a piece of the dataset that is missing, cut off, damaged or there twice is named.
func TestWrongPieces(t *testing.T) {
	dir, out := web(t, map[string]string{"a.csv": random(30_000, 1)})
	_, err := Import(t.Context(), dir, Options{Memory: small, ImportOptions: dataset.ImportOptions{Symmetrize: true}}, out)
	must(t, err)
	path := filepath.Join(out, "indices-00001.npy")
	whole, err := os.ReadFile(path)
	must(t, err)
	for name, c := range map[string]struct {
		do    func() error
		words []string
	}{
		"missing": {func() error { return os.Remove(path) }, []string{"indices-00001.npy: found no such file, want the piece of indices.npy"}},
		"cut off": {func() error { return os.WriteFile(path, whole[:len(whole)-4], 0o666) }, []string{"indices-00001.npy: size", "cut off or changed"}},
		"another": {func() error {
			b := append([]byte(nil), whole...)
			b[len(b)-1] ^= 1
			return os.WriteFile(path, b, 0o666)
		}, []string{"indices-00001.npy: checksum", "a piece of another dataset"}},
	} {
		must(t, c.do())
		_, err := graph.OpenWith(out, graph.OpenOptions{Verify: true})
		refuses(t, err, c.words...)
		must(t, os.WriteFile(path, whole, 0o666))
		_ = name
	}
	m, err := graph.ReadMeta(out)
	must(t, err)
	a := m.Arrays["indices.npy"]
	a.Pieces = append(a.Pieces, a.Pieces[1])
	m.Arrays["indices.npy"] = a
	refuses(t, graph.WriteMeta(out, m), "indices-00001.npy twice")
	a.Pieces = a.Pieces[:1]
	m.Arrays["indices.npy"] = a
	must(t, graph.WriteMeta(out, m))
	_, err = graph.Open(out)
	refuses(t, err, "arrays.indices.npy: found pieces of")
}

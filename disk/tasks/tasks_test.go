package tasks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// TestShared: several do a stage together, each task once, and each of them has all results in the end.
func TestShared(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "work")
	const n = 40
	var done [n]atomic.Int32
	var wg sync.WaitGroup
	var folders [5]*Folder // all before one has finished: who comes later begins again
	for i := range folders {
		var err error
		folders[i], err = Open(dir, "a plan")
		must(t, err)
	}
	for _, f := range folders {
		wg.Go(func() {
			err := f.Do(t.Context(), "one", n, func(k int, out *Out) (any, error) {
				done[k].Add(1)
				w, err := out.Create("text")
				if err == nil {
					_, err = fmt.Fprint(w, strings.Repeat("x", k))
				}
				return k, err
			})
			for k := range n {
				var got int
				if err == nil {
					err = f.Result("one", k, &got)
				}
				if err == nil && got != k {
					err = fmt.Errorf("result %d of task %d", got, k)
				}
			}
			if err == nil {
				err = f.Finish(t.Context(), func() error { return nil })
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for k := range done {
		if done[k].Load() != 1 {
			t.Errorf("task %d was done %d times", k, done[k].Load())
		}
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the folder is still there")
	}
}

// TestGoesOn: what is done stays done, and what was begun is begun again.
func TestGoesOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "work")
	stop := errors.New("stop")
	count := map[int]int{}
	work := func(failAt int) error {
		f, err := Open(dir, "a plan")
		must(t, err)
		return f.Do(t.Context(), "s", 4, func(k int, out *Out) (any, error) {
			if _, err := out.Create("f"); err != nil {
				return nil, err
			}
			if k == failAt {
				return nil, stop
			}
			count[k]++
			return nil, nil
		})
	}
	if err := work(2); err != stop {
		t.Fatal(err)
	}
	must(t, os.Mkdir(filepath.Join(dir, "s", "00002.tmp-99"), 0o777)) // of one that was killed
	must(t, work(-1), work(-1))
	if fmt.Sprint(count) != "map[0:1 1:1 2:1 3:1]" {
		t.Error(count)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "s", "*.tmp-*")); left != nil {
		t.Error(left)
	}
	var other *Other
	const both = `it has "a plan", this has "another plan"`
	if _, err := Open(dir, "another plan"); !errors.As(err, &other) || !strings.Contains(err.Error(), both) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	f, err := Open(dir, "a plan")
	must(t, err)
	if err := f.Do(ctx, "next", 1, func(int, *Out) (any, error) { return nil, nil }); err != context.Canceled {
		t.Error(err)
	}
}

// TestDamage: a file that is not as it was made is named.
func TestDamage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "work")
	f, err := Open(dir, "a plan")
	must(t, err)
	must(t, f.Do(t.Context(), "s", 1, func(_ int, out *Out) (any, error) {
		w, err := out.Create("f")
		fmt.Fprint(w, "hello")
		return nil, err
	}))
	path, err := f.Path("s", 0, "f")
	must(t, err)
	for text, want := range map[string]string{"hell": "cut off or changed: found 4 bytes, want 5",
		"hallo": "damaged: found checksum", "": "missing"} {
		must(t, os.WriteFile(path, []byte(text), 0o666))
		if text == "" {
			must(t, os.Remove(path))
		}
		r, err := f.Open("s", 0, "f")
		if err == nil {
			_, err = io.ReadAll(r)
			r.Close()
		}
		var damaged *Damaged
		if !errors.As(err, &damaged) || !strings.Contains(err.Error(), want) ||
			!strings.Contains(err.Error(), "remove "+dir) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestDifference: lists of shards that differ by one are told apart by its name.
func TestDifference(t *testing.T) {
	const one = "[\n  {\n    \"Path\": \"a\"\n  }\n]"
	const two = "[\n  {\n    \"Path\": \"a\"\n  },\n  {\n    \"Path\": \"b\"\n  }\n]"
	for _, c := range [][3]string{{two, one, `it has "Path": "b", this has nothing`},
		{one, two, `it has nothing, this has "Path": "b"`}} {
		if got := difference(c[0], c[1]); got != c[2] {
			t.Errorf("%q, want %q", got, c[2])
		}
	}
}

package rows

import (
	"bytes"
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

// written makes files of rows whose bytes tell which they are.
func written(t *testing.T, width, offset int, counts ...int) (files []File, row func(v uint32) []byte) {
	t.Helper()
	row = func(v uint32) []byte {
		b := make([]byte, width)
		for i := range b {
			b[i] = byte((v + 1) * 2654435761 >> (i % 25))
		}
		return b
	}
	first := 0
	for k, n := range counts {
		b := make([]byte, offset)
		for i := range n {
			b = append(b, row(uint32(first+i))...)
		}
		path := filepath.Join(t.TempDir(), string(rune('a'+k))+".npy")
		if err := os.WriteFile(path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		files = append(files, File{path, int64(offset), uint32(first), n})
		first += n
	}
	return files, row
}

// drawn are batches of rows in no order, some of them often.
func drawn(rows, batches, size int) [][]uint32 {
	r := rand.New(rand.NewPCG(7, uint64(rows)))
	out := make([][]uint32, batches)
	for k := range out {
		seen := map[uint32]bool{}
		for range r.IntN(size + 1) {
			v := uint32(r.IntN(rows))
			if r.IntN(2) == 0 {
				v = uint32(r.IntN(1 + rows/10))
			}
			if !seen[v] {
				seen[v] = true
				out[k] = append(out[k], v)
			}
		}
	}
	return out
}

// optionsOf are of batches that are drawn before.
func optionsOf(t *testing.T, files []File, width int, lists [][]uint32) Options {
	return Options{Width: width, Files: files, Memory: 24 << 20, Scratch: t.TempDir(), Packed: 1 << 30,
		Batches: int64(len(lists)), Held: 2, Threads: 2, Draw: func() func(int64) ([]uint32, error) {
			return func(k int64) ([]uint32, error) { return slices.Clone(lists[k]), nil }
		}}
}

// fed takes all batches by several goroutines and checks every row.
func fed(t *testing.T, o Options, lists [][]uint32, row func(v uint32) []byte) *Feed {
	t.Helper()
	f, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			for k := g; k < len(lists); k += 3 {
				b, err := f.Fill(context.Background(), int64(k), lists[k])
				if err != nil {
					t.Errorf("batch %d: %v", k, err)
					return
				}
				for i, v := range lists[k] {
					if !bytes.Equal(b[i*o.Width:(i+1)*o.Width], row(v)) {
						t.Errorf("batch %d: row %d differs", k, v)
						break
					}
				}
				f.Return(b)
			}
		})
	}
	wg.Wait()
	return f
}

// TestFeed: every row is as in its file, read directly or packed, by io_uring or threads, whatever memory there is
// for rows that are needed again.
func TestFeed(t *testing.T) {
	for _, c := range []struct {
		width, offset int
		counts        []int
		batches, size int
		packed        int64
		engine        func() engine
	}{
		{400, 128, []int{3000}, 40, 300, 0, nil}, {400, 128, []int{3000}, 40, 300, 1 << 30, newPool},
		{4096, 80, []int{100, 1, 800}, 30, 60, 0, newPool}, {4, 64, []int{5000, 200}, 60, 100, 1 << 30, nil},
		{9001, 96, []int{301}, 20, 50, 1 << 30, nil}, {2048, 128, []int{2000}, 1, 100, 0, nil},
	} {
		files, row := written(t, c.width, c.offset, c.counts...)
		rows := 0
		for _, n := range c.counts {
			rows += n
		}
		lists := drawn(rows, c.batches, c.size)
		o := optionsOf(t, files, c.width, lists)
		o.Packed, o.engine = c.packed, c.engine
		f := fed(t, o, lists, row)
		if n := f.Stats.Missed.Load(); n == 0 || n > int64(rows) {
			t.Errorf("%d of %d rows were read, in memory that holds all", n, rows)
		}
	}
}

// TestPackedOrDirect: what is planned for a window is read right either way, and the cheaper way is taken.
func TestPackedOrDirect(t *testing.T) {
	const width, rows = 512, 40_000
	if inMemory(t.TempDir()) {
		t.Skip("temporary folders are in memory")
	}
	files, row := written(t, width, 128, rows)
	lists := drawn(rows, 60, 600)
	o := optionsOf(t, files, width, lists)
	o.Memory = 5 << 20 // rows of few batches
	for _, packed := range []int64{0, 1 << 30} {
		o.Packed = packed
		f := fed(t, o, lists, row)
		if some := f.Stats.PackedWindows.Load() > 0; some != (packed > 0) {
			t.Errorf("windows packed: %v, packed files may have %d bytes", some, packed)
		}
		t.Logf("packed %d: read %d in %d, wrote %d, missed %d of %d", packed, f.Stats.Read.Load(),
			f.Stats.Reads.Load(), f.Stats.Packed.Load(), f.Stats.Missed.Load(), f.Stats.Rows.Load())
	}
	if left, err := os.ReadDir(o.Scratch); err != nil || len(left) > 0 {
		t.Errorf("scratch has %v, %v", left, err)
	}
}

// TestPlannerIsBelady: as few rows are read as by the rule done the slow way.
func TestPlannerIsBelady(t *testing.T) {
	for seed := range 20 {
		lists := drawn(60+seed, 30, 20)
		var window []encoded
		for _, l := range lists {
			window = append(window, encode(slices.Sorted(slices.Values(l))))
		}
		capacity := seed % 17
		got, want := 0, slowBelady(lists, capacity)
		for _, n := range newPlanner(100, capacity).plan(0, window) {
			got += len(n.read)
		}
		if got != want {
			t.Errorf("%d slots: %d rows are read, %d by the slow way", capacity, got, want)
		}
	}
}

// slowBelady counts the rows that are read when those that are needed last leave.
func slowBelady(lists [][]uint32, capacity int) (read int) {
	next := func(k int, v uint32) int {
		for j := k + 1; j < len(lists); j++ {
			if slices.Contains(lists[j], v) {
				return j
			}
		}
		return len(lists)
	}
	var kept []uint32
	for k, l := range lists {
		for _, v := range l {
			if !slices.Contains(kept, v) {
				read++
				kept = append(kept, v)
			}
		}
		slices.SortFunc(kept, func(a, b uint32) int { return next(k, a) - next(k, b) })
		kept = kept[:min(len(kept), capacity)]
	}
	return read
}

// TestFailures: each names the file and what is wrong.
func TestFailures(t *testing.T) {
	files, _ := written(t, 400, 128, 3000)
	lists := drawn(3000, 200, 300)
	fails := func(o Options, want string) {
		t.Helper()
		f, err := New(o)
		for k := 0; err == nil && k < len(lists); k++ {
			var b []byte
			if b, err = f.Fill(context.Background(), int64(k), lists[k]); err == nil {
				f.Return(b)
			}
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q", err, want)
		}
		if f != nil {
			f.Close()
		}
	}
	o := optionsOf(t, files, 400, lists)
	o.Memory = 100 << 10
	fails(o, "are too few")
	o.Grow = true
	if f, err := New(o); err != nil {
		t.Errorf("memory that may grow: %v", err)
	} else {
		f.Close()
	}
	o = optionsOf(t, files, 400, lists)
	o.Files = []File{{files[0].Path, 128, 0, 3001}}
	fails(o, files[0].Path+" has 1200128 bytes, and its rows end at byte 1200528")
	o = optionsOf(t, files, 400, lists)
	o.Memory, o.Packed = 3<<20, 0
	o.Draw = func() func(int64) ([]uint32, error) {
		return func(k int64) ([]uint32, error) {
			if k == 20 {
				_ = os.Truncate(files[0].Path, 5000)
			}
			return slices.Clone(lists[k]), nil
		}
	}
	fails(o, files[0].Path+": the file was cut off while it was in use")
}

// TestFullDisk: where packed rows do not fit the files are read, and that is said.
func TestFullDisk(t *testing.T) {
	files, row := written(t, 512, 128, 40_000)
	lists := drawn(40_000, 60, 600)
	o := optionsOf(t, files, 512, lists)
	said := ""
	o.Memory, o.Scratch, o.Note = 5<<20, filepath.Join(t.TempDir(), "absent"), func(text string) { said = text }
	f := fed(t, o, lists, row)
	if f.Stats.PackedWindows.Load() > 0 || !strings.Contains(said, "absent") {
		t.Errorf("said %q", said)
	}
}

// TestEnds: a feed that is left early ends what it does, and a wait ends with its context.
func TestEnds(t *testing.T) {
	files, _ := written(t, 400, 128, 3000)
	lists := drawn(3000, 200, 300)
	f, err := New(optionsOf(t, files, 400, lists))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := f.Fill(ctx, 5, lists[5]); err == nil {
		t.Error("a batch whose turn never comes was filled")
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

package partition

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"starling/disk"
	"starling/event"
	"starling/graph"
)

// WriteOptions says where a partition goes and what its book contains.
type WriteOptions struct {
	Dir string
	// PartDirs is where each part goes, if not Dir/partK: other disks, mounts of
	// other hosts. They are as atomic as Dir itself.
	PartDirs  []string
	Overwrite bool // replace an existing partition (never any other folder)
	Servers   int  // 0: one
	Threads   int
	Method    string
	Seed      uint64
	Progress  func(stage string, done, total int64)
}

// Write cuts the dataset as parts says and makes the partition folder. Parts are
// streamed: beside the halos, a few words a vertex are held, whatever the size of
// edges and features. On an error, a full disk say, nothing is left behind.
func Write(ctx context.Context, d *graph.Dataset, parts []uint32, k int, q *Quality, opt WriteOptions) (err error) {
	targets, err := reserve(opt, k)
	if err != nil {
		return err
	}
	defer func() {
		for _, t := range targets {
			t.abort()
		}
	}()
	w := newFolderWriter(d, parts, k, q, opt)
	if err := w.write(ctx, targets[1:], opt); err != nil {
		return err
	}
	if err := writeSealed(filepath.Join(targets[0].tmp, bookFile), &w.book, &w.book.CRC32C); err != nil {
		return err
	}
	return commit(targets)
}

// target is a folder on its way: filled under another name beside its own.
type target struct {
	dir, tmp string
	folder   *disk.Folder // nil: it is inside another target and moves with it
	done     bool
}

// reserve makes the temporary folders: the book's first, then one per part.
func reserve(opt WriteOptions, k int) (targets []*target, err error) {
	defer func() {
		if err != nil {
			for _, t := range targets {
				t.abort()
			}
		}
	}()
	if opt.PartDirs != nil && len(opt.PartDirs) != k {
		return nil, &graph.InputError{Field: "part-dir", Found: event.Tally(len(opt.PartDirs), "folder"),
			Want: fmt.Sprintf("one per part (%d)", k), Fix: "name a folder for every part"}
	}
	root, err := reserveOne(opt.Dir, bookFile, opt.Overwrite)
	if err != nil {
		return nil, err
	}
	targets = append(targets, root)
	for i := range k {
		name := fmt.Sprintf("part%d", i)
		t := &target{dir: filepath.Join(root.dir, name), tmp: filepath.Join(root.tmp, name)}
		if opt.PartDirs != nil {
			if t, err = reserveOne(opt.PartDirs[i], partFile, opt.Overwrite); err != nil {
				return targets, err
			}
			if at := slices.IndexFunc(targets,
				func(o *target) bool {
					return slices.Equal(absolute([]string{o.dir}), absolute([]string{t.dir}))
				}); at >= 0 {
				t.abort()
				return targets, &graph.InputError{File: t.dir, Found: "one folder for two",
					Want: "one for each part, and another for the book", Fix: "choose other names"}
			}
		} else if err = os.Mkdir(t.tmp, 0o755); err != nil {
			return targets, err
		}
		targets = append(targets, t)
	}
	return targets, nil
}

// holds is what is in a folder, by the file that marks it.
var holds = map[string][]string{bookFile: {bookFile, "part[0-9]*", settingsFile}, partFile: {partFile, "*.npy"}}

// free refuses to replace anything but a partition, and does that only with overwrite.
func free(dir, marker string, overwrite bool) error {
	dir = filepath.Clean(dir)
	if _, err := os.Lstat(dir); err == nil {
		switch {
		case !marked(dir, marker):
			return &graph.InputError{File: dir, Found: "something that is no partition",
				Want: "a new name or an existing partition",
				Fix:  "choose another output folder or remove this one yourself"}
		case !overwrite:
			return &graph.InputError{File: dir, Found: "an existing partition", Want: "a new name",
				Fix: "choose another folder, or replace this one with --overwrite"}
		}
		if err := graph.CheckReplaced(dir, "partition", holds[marker]...); err != nil {
			return err
		}
	} else if !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return graph.CheckParent(dir)
}

func reserveOne(dir, marker string, overwrite bool) (*target, error) {
	dir = filepath.Clean(dir)
	if err := free(dir, marker, overwrite); err != nil {
		return nil, err
	}
	folder, err := graph.NewFolder(dir)
	if err != nil {
		return nil, err
	}
	return &target{dir: dir, tmp: folder.Tmp, folder: folder}, nil
}

// marked reports whether a folder is a partition, or a part, damaged or not: other folders with a
// book.json must not be replaced.
func marked(dir, marker string) bool {
	format := map[string]string{bookFile: bookFormat, partFile: partFormat}[marker]
	f, err := os.Open(filepath.Join(dir, marker))
	if err != nil {
		return false
	}
	defer f.Close()
	head, _ := io.ReadAll(io.LimitReader(f, 1<<10)) // the format is the first field
	return bytes.Contains(head, []byte(`"`+format+`"`))
}

func (t *target) abort() {
	if t.folder != nil {
		t.folder.Abort()
	}
}

// commit renames all folders, the book's last: if the book is there, all
// parts are.
func commit(targets []*target) error {
	for i := len(targets) - 1; i >= 0; i-- {
		t := targets[i]
		if t.folder == nil {
			continue
		}
		if err := t.folder.Commit(); err != nil {
			for _, made := range targets[i+1:] {
				if made.done {
					os.RemoveAll(made.dir)
				}
			}
			return err
		}
		t.done = true
	}
	return nil
}

func writeSealed(path string, v any, crc *string) error {
	text, err := graph.SealJSON(v, crc)
	if err != nil {
		return err
	}
	return disk.Write(path, func(f io.Writer) error {
		_, err := f.Write(text)
		return err
	})
}

// folderWriter is what writing all parts shares; it is read by several threads.
type folderWriter struct {
	d      *graph.Dataset
	parts  []uint32
	book   Book
	order  []uint32   // original number of each new one
	number []uint32   // new number of each original one
	halos  [][]uint32 // of each part, new numbers, ascending
	gcn    []float64  // by original number; nil: as the in-degrees
	split  map[string]bitset
	seen   []int64 // when the dataset's edges can be seen; nil: it has no times
}

// trainClasses are how many training vertices have each of two classes; nil: there are not two.
func trainClasses(d *graph.Dataset) []float64 {
	if d.Labels == nil || d.Labels.Kind() != graph.SingleLabel || d.Labels.Classes != 2 {
		return nil
	}
	counts := make([]float64, 2)
	for _, v := range d.Splits.Train {
		if c := d.Labels.Class[v]; c >= 0 {
			counts[c]++
		}
	}
	return counts
}

// bookOf is the book without what names the parts and their order.
func bookOf(d *graph.Dataset, k int, q *Quality, opt WriteOptions) Book {
	b := Book{Format: bookFormat, Version: formatVersion, Dataset: d.Meta.Name,
		Nodes: int64(d.Graph.Nodes()), Edges: d.Graph.Edges(), Symmetric: d.Meta.Symmetric,
		Weighted: d.Graph.Weights != nil, EdgeDim: d.Graph.EdgeDim,
		Parts: k, Servers: max(opt.Servers, 1), Features: d.Meta.Features, Task: d.Meta.Task, Classes: d.Meta.Classes,
		ClassNames: d.Meta.ClassNames, Contents: d.Contents(), Preparation: d.Meta.Preparation,
		Train: int64(len(d.Splits.Train)), Val: int64(len(d.Splits.Val)), Test: int64(len(d.Splits.Test)),
		Method: opt.Method, Seed: opt.Seed, EdgeCut: q.EdgeCut, CommVolume: q.CommVolume, Dirs: absolute(opt.PartDirs)}
	b.TrainClasses = trainClasses(d)
	if s := d.Meta.Schema; s != nil {
		b.Schema, b.Target = s, d.Target
	}
	return b
}

func newFolderWriter(d *graph.Dataset, parts []uint32, k int, q *Quality, opt WriteOptions) *folderWriter {
	w := &folderWriter{d: d, parts: parts, halos: make([][]uint32, k), number: make([]uint32, len(parts))}
	w.book = bookOf(d, k, q, opt)
	w.book.ID = identify(d, parts, k)
	w.book.Offsets, w.order = order(d, parts, k)
	if w.book.Schema != nil {
		w.book.TypeRuns = runsOf(w.book.Schema, w.book.Offsets, w.order)
	}
	for i, v := range w.order {
		w.number[v] = uint32(i)
	}
	w.gcn, w.seen = gcnDegrees(d.Graph), d.SeenFrom()
	w.markSplits()
	return w
}

// markSplits makes sets of the splits.
func (w *folderWriter) markSplits() {
	d := w.d
	w.split = map[string]bitset{}
	for name, ids := range map[string][]uint32{"train": d.Splits.Train, "val": d.Splits.Val, "test": d.Splits.Test} {
		if len(ids) == 0 {
			continue
		}
		set := newBits(len(w.parts))
		for _, v := range ids {
			set.set(v)
		}
		w.split[name] = set
	}
}

func absolute(dirs []string) []string {
	var out []string
	for _, dir := range dirs {
		if a, err := filepath.Abs(dir); err == nil {
			dir = a
		}
		out = append(out, dir)
	}
	return out
}

// identify names a partition by its dataset and parts.
func identify(d *graph.Dataset, parts []uint32, k int) string {
	h := sha256.New()
	fmt.Fprintln(h, d.Meta.Name, d.Meta.CRC32C, k, "border first") // kept: part of the ID
	if d.Graph.EdgeDim > 0 {                                       // the file may have been added after meta.json was written
		fmt.Fprintln(h, "edge features", d.Graph.EdgeDim)
	}
	if d.HasTimes() { // likewise
		fmt.Fprintln(h, "times", d.Contents().Times)
	}
	buf := make([]byte, 0, 1<<16)
	for i, p := range parts {
		buf = append(buf, byte(p), byte(p>>8))
		if len(buf) == cap(buf) || i == len(parts)-1 {
			h.Write(buf)
			buf = buf[:0]
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// gcnDegrees is nil if they equal the in-degrees: an unweighted graph without self-loops.
func gcnDegrees(g *graph.CSR) []float64 {
	out := make([]float64, g.Nodes())
	differs := make([]bool, g.Nodes()/(1<<14)+1)
	graph.Parallel(int64(g.Nodes()), 1<<14, func(lo, hi int64) {
		for v := lo; v < hi; v++ {
			for e := g.Indptr[v]; e < g.Indptr[v+1]; e++ {
				switch {
				case int64(g.Indices[e]) == v:
					differs[lo>>14] = true
				case g.Weights != nil:
					out[v] += float64(g.Weights[e])
				default:
					out[v]++
				}
			}
		}
	})
	if g.Weights != nil {
		return out
	}
	for _, d := range differs {
		if d {
			return out
		}
	}
	return nil
}

// write makes the halos of all parts and then the parts, several at a time.
func (w *folderWriter) write(ctx context.Context, targets []*target, opt WriteOptions) error {
	n := len(w.parts)
	if err := w.each(ctx, "halos", opt, func() func(int) error {
		seen := newBits(n)
		return func(k int) error {
			w.halos[k] = w.halo(k, seen)
			return nil
		}
	}); err != nil {
		return err
	}
	return w.each(ctx, "write parts", opt, func() func(int) error {
		r := newRanks(n)
		return func(k int) error {
			r.of(w.halos[k])
			p := partWriter{all: w, k: k, ranks: r, out: graph.NewFolderWriter(targets[k].tmp)}
			return p.write(ctx, filepath.Join(targets[k].tmp, partFile))
		}
	})
}

// each runs work on all parts and returns the first error, by part.
func (w *folderWriter) each(ctx context.Context, stage string, opt WriteOptions, start func() func(int) error) error {
	var mu sync.Mutex
	done := 0
	errs := make([]error, w.book.Parts)
	eachPart(w.book.Parts, opt.Threads, func() func(int) {
		work := start()
		return func(k int) {
			if errs[k] = ctx.Err(); errs[k] == nil {
				errs[k] = work(k)
			}
			mu.Lock()
			defer mu.Unlock()
			done++
			if opt.Progress != nil {
				opt.Progress(stage, int64(done), int64(w.book.Parts))
			}
		}
	})
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// halo lists the remote in-neighbours of a part by new number, ascending.
func (w *folderWriter) halo(k int, seen bitset) []uint32 {
	seen.clear()
	n := 0
	for _, v := range w.core(k) {
		for _, u := range w.d.Graph.Neighbors(v) {
			if int(w.parts[u]) != k && seen.set(w.number[u]) {
				n++
			}
		}
	}
	return seen.list(make([]uint32, 0, n))
}

// core lists the vertices of a part by original number.
func (w *folderWriter) core(k int) []uint32 { return w.order[w.book.Offsets[k]:w.book.Offsets[k+1]] }

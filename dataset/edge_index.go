package dataset

import (
	"cmp"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"runtime"
	"sync"

	"github.com/klauspost/compress/zip"

	"starling/dataset/table"
	"starling/graph"
)

// addPairs adds the edges whose sources and targets come from two streams of
// pieces, distributed to buckets on all cores.
func addPairs(s *graph.Sorter, src, dst *pieces) error {
	defer src.done()
	defer dst.done()
	var mu sync.Mutex
	var seq int64
	next := func() (k int64, x, y []uint32, err error) {
		mu.Lock()
		defer mu.Unlock()
		x, err = src.next()
		y, err2 := dst.next()
		k = seq
		seq++
		return k, x, y, errors.Join(err, err2)
	}
	return onAllCores(s, func() (bool, error) {
		k, x, y, err := next()
		if err == nil && len(x) != len(y) {
			err = fmt.Errorf("as many sources as targets are missing")
		}
		if err != nil || len(x) == 0 {
			return false, err
		}
		err = s.Add(k, x, y, nil)
		src.free <- x
		dst.free <- y
		return true, err
	})
}

// onAllCores calls step from several goroutines until it returns false or fails.
// A failure stops those that wait in the sorter.
func onAllCores(s *graph.Sorter, step func() (more bool, err error)) error {
	var wg sync.WaitGroup
	errs := make([]error, runtime.GOMAXPROCS(0))
	for i := range errs {
		wg.Go(func() {
			for more := true; more && errs[i] == nil; {
				if more, errs[i] = step(); errs[i] != nil {
					s.Fail(errs[i])
				}
			}
		})
	}
	wg.Wait()
	return cmp.Or(errs...)
}

// edgeIndex streams an array [2, edges]: all sources, then all targets. If it is
// not deflated, both rows are read at the same time.
func (z *npz) edgeIndex(name string, opt ImportOptions) (fill func(*graph.Sorter) error, edges int64, err error) {
	a, err := z.stream(name)
	if err != nil {
		return nil, 0, err
	}
	a.Close()
	if len(a.Shape) != 2 || a.Shape[0] != 2 || a.Shape[1] > graph.MaxEdges {
		return nil, 0, z.bad(name, fmt.Sprintf("shape %v", a.Shape), "[2, edges]")
	}
	edges = a.Shape[1]
	if z.find(name).Method == zip.Store {
		return func(s *graph.Sorter) error { return z.named(name, z.twoRows(s, name, edges)) }, edges, nil
	}
	return func(s *graph.Sorter) error { return z.named(name, z.packedRows(s, name, edges, opt)) }, edges, nil
}

// packedRows decompresses the sources, spills them as four bytes each, and adds the
// edges when their targets are decompressed.
func (z *npz) packedRows(s *graph.Sorter, name string, edges int64, opt ImportOptions) error {
	a, err := z.stream(name)
	if err != nil {
		return err
	}
	defer a.Close()
	aside, err := opt.newScratch()
	if err != nil {
		return err
	}
	defer aside.Close()
	sources := prefetch(a, edges, false)
	for left := edges; left > 0; {
		x, err := sources.next()
		if err == nil {
			_, err = aside.Write(table.BytesOf(x))
		}
		if err != nil {
			sources.done()
			return err
		}
		left -= int64(len(x))
		sources.free <- x
		opt.report("read sources", edges-left, edges)
	}
	sources.done()
	if _, err := aside.Seek(0, io.SeekStart); err != nil {
		return err
	}
	back := &table.Array{R: aside, Descr: "u4", Left: edges}
	return addPairs(s, prefetch(back, edges, false), prefetch(a, edges, true))
}

// twoRows reads both rows of an array that is stored uncompressed. Their checksums are
// joined to the whole's.
func (z *npz) twoRows(s *graph.Sorter, name string, edges int64) error {
	f := z.find(name)
	at, err := f.DataOffset()
	if err != nil {
		return err
	}
	file, err := os.Open(z.path)
	if err != nil {
		return err
	}
	defer file.Close()
	size := int64(f.UncompressedSize64)
	first := &summing{r: io.NewSectionReader(file, at, size)}
	src, err := table.NewArray(first, size)
	if err != nil {
		return err
	}
	head := size - 2*edges*int64(table.ItemSizes[src.Descr])
	row := (size - head) / 2
	second := &summing{r: io.NewSectionReader(file, at+head+row, row)}
	dst := &table.Array{R: second, Descr: src.Descr, Left: edges}
	if err := addPairs(s, prefetch(src, edges, false), prefetch(dst, edges, false)); err != nil {
		return err
	}
	if graph.JoinCRC(crc32.IEEE, first.sum, second.sum, row) != f.CRC32 {
		return zip.ErrChecksum
	}
	return nil
}

// summing keeps the CRC-32 of what is read through it.
type summing struct {
	r   io.Reader
	sum uint32
}

func (s *summing) Read(b []byte) (int, error) {
	n, err := s.r.Read(b)
	s.sum = crc32.Update(s.sum, crc32.IEEETable, b[:n])
	return n, err
}

// named adds the name of an array to an error that does not name a file.
func (z *npz) named(name string, err error) error {
	var in *graph.InputError
	var disk *os.PathError
	if errors.As(err, &disk) {
		return err
	}
	if err == nil || errors.As(err, &in) {
		if in != nil && in.File == "" {
			in.File = z.path
		}
		return err
	}
	return z.bad(name, graph.Sentence(err.Error()), "a whole array of vertices")
}

func (o ImportOptions) report(stage string, done, total int64) {
	if o.Progress != nil {
		o.Progress(stage, done, total)
	}
}

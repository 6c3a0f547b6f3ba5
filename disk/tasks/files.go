package tasks

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"starling/disk"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Sum is the size and the checksum of a file.
type Sum struct {
	Bytes  int64  `json:"bytes"`
	CRC32C string `json:"crc32c"`
}

// result is result.json.
type result struct {
	Files  map[string]Sum  `json:"files,omitempty"`
	Result json.RawMessage `json:"result"`
}

// Out is what a task makes: files in a folder.
type Out struct {
	Dir string
	// Last says that the files are the last of their kind, and are to outlive a power failure. Others need not: their
	// sizes and checksums tell what it did to them.
	Last  bool
	files map[string]Sum
	open  []*Writer
}

// Writer writes one file of a task.
type Writer struct {
	*bufio.Writer
	out  *Out
	name string
	f    *os.File
	sum  uint32
	n    int64
}

const bufferBytes = 1 << 18

// Create starts a file.
func (o *Out) Create(name string) (*Writer, error) {
	f, err := os.OpenFile(filepath.Join(o.Dir, name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, err
	}
	w := &Writer{out: o, name: name, f: f}
	w.Writer = bufio.NewWriterSize(summed{w}, bufferBytes)
	o.open = append(o.open, w)
	return w, nil
}

// summed is the file below the buffer.
type summed struct{ w *Writer }

func (s summed) Write(b []byte) (int, error) {
	n, err := s.w.f.Write(b)
	s.w.sum = crc32.Update(s.w.sum, castagnoli, b[:n])
	s.w.n += int64(n)
	return n, err
}

// Bytes is how much was written.
func (w *Writer) Bytes() int64 { return w.n + int64(w.Buffered()) }

// Sum is the checksum of what was written; the writer is flushed.
func (w *Writer) Sum() (uint32, error) {
	err := w.Flush()
	return w.sum, err
}

// Close completes the file. A task need not call it: all its files are closed in the end.
func (w *Writer) Close() error {
	if w.f == nil {
		return nil
	}
	err := w.Flush()
	if err == nil && w.out.Last {
		err = w.f.Sync()
	}
	err = errors.Join(err, w.f.Close())
	w.f = nil
	if w.out.files == nil {
		w.out.files = map[string]Sum{}
	}
	w.out.files[w.name] = Sum{w.n, fmt.Sprintf("%08x", w.sum)}
	return err
}

// seal completes the files and the result, and renames the folder to dir.
func (o *Out) seal(v any, dir string) error {
	for _, w := range o.open {
		if err := w.Close(); err != nil {
			return err
		}
	}
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	if text, err = json.Marshal(result{o.files, text}); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.Dir, resultFile), text, 0o666); err != nil {
		return err
	}
	if err := os.Rename(o.Dir, dir); err != nil {
		if exists(dir) { // on systems without locks, another process may have been faster
			o.abort()
			return nil
		}
		return err
	}
	if !o.Last {
		return nil
	}
	return disk.Sync(filepath.Dir(dir))
}

// Clear removes what was written so far, for a task that begins again.
func (o *Out) Clear() error {
	for _, w := range o.open {
		if w.f != nil {
			w.f.Close()
		}
		if err := os.Remove(filepath.Join(o.Dir, w.name)); err != nil {
			return err
		}
	}
	o.open, o.files = nil, nil
	return nil
}

func (o *Out) abort() {
	for _, w := range o.open {
		if w.f != nil {
			w.f.Close()
			w.f = nil
		}
	}
	os.RemoveAll(o.Dir)
}

// Result reads the result of a task that is done.
func (f *Folder) Result(stage string, k int, into any) error {
	r, err := f.result(stage, k)
	if err == nil && into != nil {
		err = json.Unmarshal(r.Result, into)
	}
	if err != nil {
		return f.damaged(stage, k, err)
	}
	return nil
}

func (f *Folder) result(stage string, k int) (r result, err error) {
	text, err := os.ReadFile(filepath.Join(f.taskDir(stage, k), resultFile))
	if err == nil {
		err = json.Unmarshal(text, &r)
	}
	return r, err
}

// Sums are the sizes and checksums of the files of a task that is done.
func (f *Folder) Sums(stage string, k int) (map[string]Sum, error) {
	r, err := f.result(stage, k)
	if err != nil {
		return nil, f.damaged(stage, k, err)
	}
	return r.Files, nil
}

// Damaged is the error of a file of a task that is not as it was made.
type Damaged struct {
	Dir string // the folder of the work
	err error
}

func (e *Damaged) Error() string {
	return fmt.Sprintf("%v; remove %s and start again", e.err, e.Dir)
}

func (e *Damaged) Unwrap() error { return e.err }

func (f *Folder) damaged(stage string, k int, err error) error {
	return &Damaged{f.Dir, fmt.Errorf("task %d of stage %s: %w", k, stage, err)}
}

// Path is a file of a task that is done, after its size was compared.
func (f *Folder) Path(stage string, k int, name string) (string, error) {
	path, _, err := f.check(stage, k, name)
	return path, err
}

func (f *Folder) check(stage string, k int, name string) (path string, sum Sum, err error) {
	r, err := f.result(stage, k)
	if err != nil {
		return "", sum, f.damaged(stage, k, err)
	}
	sum, ok := r.Files[name]
	path = filepath.Join(f.taskDir(stage, k), name)
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && !ok:
		return path, sum, f.damaged(stage, k, fmt.Errorf("%s: the file is missing", path))
	case err != nil:
		return path, sum, err
	case info.Size() != sum.Bytes:
		return path, sum, f.damaged(stage, k, fmt.Errorf("%s: the file was cut off or changed: found %d bytes, "+
			"want %d", path, info.Size(), sum.Bytes))
	}
	return path, sum, nil
}

// Reader reads a file of a task from its beginning to its end, where its checksum is compared.
type Reader struct {
	*bufio.Reader
	f    *os.File
	path string
	want Sum
	sum  uint32
	n    int64
	bad  func(error) error
}

// Open opens a file of a task that is done.
func (f *Folder) Open(stage string, k int, name string) (*Reader, error) {
	path, sum, err := f.check(stage, k, name)
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := &Reader{f: file, path: path, want: sum, bad: func(err error) error { return f.damaged(stage, k, err) }}
	r.Reader = bufio.NewReaderSize(checked{r}, bufferBytes)
	return r, nil
}

// checked is the file below the buffer.
type checked struct{ r *Reader }

func (c checked) Read(b []byte) (int, error) {
	r := c.r
	n, err := r.f.Read(b)
	r.sum = crc32.Update(r.sum, castagnoli, b[:n])
	if r.n += int64(n); r.n == r.want.Bytes && n > 0 || err == io.EOF {
		if got := fmt.Sprintf("%08x", r.sum); got != r.want.CRC32C {
			return 0, r.bad(fmt.Errorf("%s: the file is damaged: found checksum %s, want %s", r.path, got,
				r.want.CRC32C))
		}
	}
	return n, err
}

// Close closes the file.
func (r *Reader) Close() error { return r.f.Close() }

// ReadAt reads a piece of the file; no checksum is compared.
func (r *Reader) ReadAt(b []byte, at int64) (int, error) { return r.f.ReadAt(b, at) }

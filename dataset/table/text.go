package table

import (
	"bufio"
	"errors"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/klauspost/compress/gzip"

	"starling/graph"
)

// ByteOrderMark begins UTF-8 files of some editors.
const ByteOrderMark = "\xef\xbb\xbf"

// TextFile is an open text file, decompressed if it is gzip.
type TextFile struct {
	io.Reader
	f *os.File
}

func (t *TextFile) Close() error { return t.f.Close() }

// OpenText opens a text file and detects gzip by its contents,
// whatever its name.
func OpenText(path string) (*TextFile, error) {
	info, err := os.Stat(path)
	switch {
	case os.IsNotExist(err) && path == "-":
		return nil, bad(path, "", "standard input", "a file, which is read more than once",
			"write it to a file first; gzip is unpacked on the way")
	case os.IsNotExist(err):
		return nil, bad(path, "", "no such file", "a file to read", "check the path")
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, bad(path, "", "a folder", "a file to read", "name the file inside it")
	case !info.Mode().IsRegular(): // the lines read for detection would be lost
		return nil, bad(path, "", "a pipe or a device", "a file, which is read more than once",
			"write it to a file first; gzip is unpacked on the way")
	case info.Size() == 0: // even an empty gzip file is longer
		return nil, bad(path, "", "an empty file", "what was to be read",
			"it was cut off: download or write it again")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	r := bufio.NewReaderSize(f, 1<<16)
	if magic, _ := r.Peek(2); string(magic) == "\x1f\x8b" {
		z, err := gzip.NewReader(r)
		if err != nil {
			f.Close()
			return nil, bad(path, "gzip", graph.Sentence(err.Error()), "a whole gzip file", "download or pack it again")
		}
		r = bufio.NewReaderSize(gzipReader{path, z}, 1<<16)
	}
	head, _ := r.Peek(512)
	starts := func(with string) bool { return strings.HasPrefix(string(head), with) }
	switch {
	case starts(ByteOrderMark):
		r.Discard(len(ByteOrderMark))
	case starts("\xff\xfe") || starts("\xfe\xff"):
		f.Close()
		return nil, bad(path, "", "text in UTF-16", "UTF-8",
			"save it as UTF-8, for example with iconv -f UTF-16 -t UTF-8")
	case slices.Contains(head, 0) || starts("BZh91AY&SY"):
		f.Close()
		return nil, bad(path, "", "no text", "text, or text packed with gzip",
			"unpack archives (tar, zip, bzip2, xz) first")
	}
	return &TextFile{r, f}, nil
}

// gzipReader adds the file name to errors of decompression.
type gzipReader struct {
	path string
	io.Reader
}

func (g gzipReader) Read(b []byte) (int, error) {
	n, err := g.Reader.Read(b)
	if err != nil && err != io.EOF {
		err = bad(g.path, "gzip", graph.Sentence(err.Error()), "a whole gzip file", "download or pack it again")
	}
	return n, err
}

func bad(file, field, found, want, fix string) error {
	return &graph.InputError{File: file, Field: field, Found: found, Want: want, Fix: fix}
}

// Because is the error of a file that could not be read. An InputError with its own Want
// keeps it, and gets the file and the fix.
func Because(file, field string, err error, want, fix string) error {
	var in *graph.InputError
	if errors.As(err, &in) {
		return bad(file, strings.Trim(field+": "+in.Field, ": "), in.Found, in.Want, fix)
	}
	return bad(file, field, graph.Sentence(err.Error()), want, fix)
}

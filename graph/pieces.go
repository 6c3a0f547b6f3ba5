package graph

import (
	"bytes"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unsafe"

	"starling/disk"
	"starling/event"
)

// An array may be in pieces: files of consecutive rows, which an import in shards writes (version 3). Joined in their
// order, the pieces are the array; the size and checksum that meta.json gives it describe the joined npy file, so two
// datasets are equal whether or not they are in pieces.
//
// The pieces are mapped behind each other, so that readers see one array. A mapping begins at a page. PieceHeader
// therefore makes the header of a piece so long that its rows are as far behind a page in the file as they are in the
// joined one; the pages in which two pieces meet are copied. Pieces with other headers are copied into memory.

// Piece is one file of an array in pieces.
type Piece struct {
	File   string `json:"file"`
	Bytes  int64  `json:"bytes"`
	CRC32C string `json:"crc32c"`
}

// piecedVersion is of a graph without types, of which some arrays are in pieces.
const piecedVersion = 3

// pieceAlign is the size of a page on most machines.
const pieceAlign = 4096

// PieceName is the name of a piece of an array: indices-00007.npy.
func PieceName(array string, k int) string {
	return fmt.Sprintf("%s-%05d.npy", strings.TrimSuffix(array, ".npy"), k)
}

// JoinedHeader is the header of the joined array.
func JoinedHeader(descr string, shape ...int64) []byte { return npyHeader(descr, shape) }

// PieceHeader is the header of a piece, whose first byte of rows is at this place of the joined file.
func PieceHeader(descr string, at int64, shape ...int64) []byte {
	head := npyHeader(descr, shape)
	pad := int(((at-int64(len(head)))%pieceAlign + pieceAlign) % pieceAlign)
	head = append(head[:len(head)-1], bytes.Repeat([]byte{' '}, pad)...)
	head = append(head, '\n')
	n := len(head) - 10
	head[8], head[9] = byte(n), byte(n>>8)
	return head
}

// checkPieces refuses lists of pieces that cannot be.
func (m *Meta) checkPieces() error {
	for _, name := range sortedKeys(m.Arrays) {
		a := m.Arrays[name]
		if a.Pieces == nil {
			continue
		}
		if m.Version != piecedVersion || a.DType == "" || len(a.Shape) == 0 {
			return badMeta("arrays."+name, "pieces", fmt.Sprintf("none but of npy arrays in version %d", piecedVersion))
		}
		seen := map[string]bool{}
		for _, p := range a.Pieces {
			if p.File != filepath.Base(p.File) || p.File == "." || p.File == ".." {
				return badMeta("arrays."+name+".pieces", fmt.Sprintf("%.60q", p.File), "the name of a file in the folder")
			}
			if seen[p.File] {
				return badMeta("arrays."+name+".pieces", p.File+" twice", "each piece once")
			}
			seen[p.File] = true
		}
	}
	return nil
}

// mapPieces maps the pieces of an array behind each other, as the joined file has them.
func (d *Dataset) mapPieces(name string, m ArrayMeta) (b []byte, err error) {
	h := NPYHeader{Descr: m.DType, Shape: m.Shape}
	if err := h.checkSize(); err != nil {
		return nil, inFile(filepath.Join(d.Dir, metaFile), err)
	}
	head := npyHeader(m.DType, m.Shape)
	total := int64(len(head)) + h.DataBytes()
	bad := func(found, want string) error {
		return &InputError{File: filepath.Join(d.Dir, metaFile), Field: "arrays." + name, Found: found, Want: want,
			Fix: "copy or make the dataset again"}
	}
	if m.Bytes != total {
		return nil, bad(event.Tally(m.Bytes, "byte"), fmt.Sprint(total))
	}
	if b, err = reserveMap(total); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			d.untrackPieces(name, b)
			unreserveMap(b)
		}
	}()
	copy(b, head)
	at, rows, files := int64(len(head)), int64(0), []RowsFile(nil)
	for _, p := range m.Pieces {
		f, n, err := d.mapPiece(name, p, &h, b, at)
		if err != nil {
			return nil, err
		}
		at, rows, files = at+n, rows+int64(f.Rows), append(files, f)
	}
	if rows != m.Shape[0] || at != total {
		return nil, bad("pieces of "+event.Tally(rows, "row"), fmt.Sprint(m.Shape[0]))
	}
	protectMap(b)
	trackRows(b[len(head):], files)
	d.maps[name] = b
	return b, nil
}

// mapPiece maps one piece to b[at:], of which it has n bytes.
func (d *Dataset) mapPiece(name string, p Piece, of *NPYHeader, b []byte, at int64) (rows RowsFile, n int64,
	err error) {
	path := filepath.Join(d.Dir, p.File)
	bad := func(field, found, want, fix string) error {
		return &InputError{File: path, Field: field, Found: found, Want: want, Fix: fix}
	}
	const again = "copy or make the dataset again"
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return rows, 0, bad("", "no such file", "the piece of "+name+" that meta.json announces", again)
	case err != nil:
		return rows, 0, err
	case !info.Mode().IsRegular():
		return rows, 0, bad("", info.Mode().Type().String(), "a regular file", again)
	case info.Size() != p.Bytes:
		return rows, 0, bad("size", event.Tally(info.Size(), "byte"), fmt.Sprint(p.Bytes),
			"the file was cut off or changed: "+again)
	}
	f, err := os.Open(path)
	if err != nil {
		return rows, 0, err
	}
	defer f.Close()
	h, err := ReadNPYHeader(f)
	if err != nil {
		return rows, 0, inFile(path, err)
	}
	if h.Descr != of.Descr || h.Fortran && len(h.Shape) > 1 || len(h.Shape) != len(of.Shape) || !slices.Equal(h.Shape[1:], of.Shape[1:]) {
		return rows, 0, bad("header", fmt.Sprint(h.Descr, h.Shape), fmt.Sprint(of.Descr, of.Shape)+" but for the number of rows", again)
	}
	n = h.DataBytes()
	if p.Bytes-h.Offset != n || at+n > int64(len(b)) {
		return rows, 0, bad("array", event.Tally(p.Bytes-h.Offset, "byte"), fmt.Sprintf("%d for shape %v, of an array of %v", n,
			h.Shape, of.Shape), again)
	}
	mapped, err := placeMap(f, h.Offset, b, at, n)
	if err != nil {
		return rows, 0, inFile(path, err)
	}
	if len(mapped) > 0 {
		track(mapped, path, info)
		if d.pieces == nil {
			d.pieces = map[string][][]byte{}
		}
		d.pieces[name] = append(d.pieces[name], mapped)
	}
	return RowsFile{Path: path, Offset: h.Offset, Rows: int(h.Shape[0])}, n, nil
}

// checkPieceSums names the pieces of a damaged array that are to blame.
func (d *Dataset) checkPieceSums(name string) error {
	for _, p := range d.Meta.Arrays[name].Pieces {
		path := filepath.Join(d.Dir, p.File)
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		sum := crc32.New(castagnoli)
		_, err = io.Copy(sum, f)
		f.Close()
		if err != nil {
			return err
		}
		if got := fmt.Sprintf("%08x", sum.Sum32()); got != p.CRC32C {
			return &InputError{File: path, Field: "checksum", Found: got, Want: p.CRC32C,
				Fix: "the file is damaged, or a piece of another dataset: copy or make the dataset again"}
		}
	}
	return nil
}

func (d *Dataset) untrackPieces(name string, joined []byte) {
	untrackRows(joined)
	for _, b := range d.pieces[name] {
		untrack(b)
	}
	delete(d.pieces, name)
}

// unmap unmaps an array.
func (d *Dataset) unmap(name string, b []byte) error {
	if _, listed := d.Meta.Arrays[name]; listed && d.Meta.Arrays[name].Pieces != nil {
		d.untrackPieces(name, b)
		return unreserveMap(b)
	}
	untrack(b)
	return unmapFile(b)
}

// piecePatterns are the names of pieces.
var piecePatterns = []string{"indptr-[0-9]*.npy", "indices-[0-9]*.npy", "weights-[0-9]*.npy", "features-[0-9]*.npy",
	"labels-[0-9]*.npy", "ids-[0-9]*.npy"}

// WriteMeta completes a folder of arrays with its meta.json, for a writer that is not a Writer.
func WriteMeta(dir string, m *Meta) error {
	m.Format, m.Version, m.Checksum = formatName, formatVersion, "crc32c"
	for _, a := range m.Arrays {
		if a.Pieces != nil {
			m.Version = piecedVersion
		}
	}
	if err := m.validate(); err != nil {
		return inFile(dir, err)
	}
	text, err := m.encode()
	if err != nil {
		return err
	}
	f, err := disk.Create(filepath.Join(dir, metaFile))
	if err != nil {
		return err
	}
	if _, err := f.Write(text); err != nil {
		f.Abort()
		return err
	}
	return f.Commit()
}

// CheckTarget refuses to replace anything but a dataset, and that without overwrite.
func CheckTarget(dir string, overwrite bool) error {
	if err := checkTarget(filepath.Clean(dir), overwrite); err != nil {
		return err
	}
	return CheckParent(dir)
}

// ReleaseEdges takes the pages of edges that were read out of this process's memory; they are read again where they are
// needed. It is for passes over graphs that are larger than memory, which tell how far they are.
func (d *Dataset) ReleaseEdges(from, to int64) {
	for _, name := range []string{"indices.npy", "weights.npy"} {
		if b := d.maps[name]; b != nil {
			releaseRange(b, 128+4*from, 128+4*to)
		}
	}
}

// releaseRange advises on the whole pages of a range.
func releaseRange(b []byte, from, to int64) {
	page := int64(os.Getpagesize())
	base := int64(uintptr(unsafe.Pointer(unsafe.SliceData(b))))
	from = max((base+from)/page*page-base, 0)
	to = min((base+to)/page*page-base, int64(len(b)))
	if from < to {
		advise(b[from:to], Release)
	}
}

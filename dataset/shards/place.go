package shards

import (
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"starling/disk"
	"starling/disk/tasks"
	"starling/event"
	"starling/graph"
)

// placed is what stage place has made of a piece: its file of every array.
type placed map[string]placedFile

type placedFile struct {
	Rows    int64
	Bytes   int64  // of the file
	CRC32C  string // of the file
	DataSum uint32 // of its rows alone
	Data    int64  // bytes of rows
}

// arrayOf is an array of the dataset that is made in pieces.
type arrayOf struct {
	name, descr string
	shape       []int64
}

// place is stage place.
func (j *job) place() error {
	if err := j.f.Do(j.ctx, "place", len(j.pieces), j.placePiece); err != nil {
		return err
	}
	if err := j.f.Drop("sort", 0, len(j.pieces)); err != nil {
		return err
	}
	return j.f.Do(j.ctx, "names", 1, func(_ int, out *tasks.Out) (any, error) {
		if j.numbers.identity || !j.text {
			return nil, nil
		}
		return j.writeNames(out)
	})
}

// arrays lists the arrays of the dataset that are in pieces.
func (j *job) arrays() []arrayOf {
	var edges int64
	for _, s := range j.sorted {
		edges += s.Edges
	}
	list := []arrayOf{{"indptr.npy", "<i8", []int64{j.numbers.n + 1}}, {"indices.npy", "<u4", []int64{edges}}}
	if j.opt.Weights {
		list = append(list, arrayOf{"weights.npy", "<f4", []int64{edges}})
	}
	if !j.numbers.identity && !j.text {
		list = append(list, arrayOf{"ids.npy", "<i8", []int64{j.numbers.n}})
	}
	return append(list, j.vertexArrays()...)
}

// pieceWriter writes the file of a piece of an array.
type pieceWriter struct {
	*tasks.Writer
	sum uint32
	n   int64
}

func (w *pieceWriter) Write(b []byte) (int, error) {
	w.sum = crc32.Update(w.sum, castagnoli, b)
	w.n += int64(len(b))
	return w.Writer.Write(b)
}

// startPiece writes the header of a piece with rows rows, before which there are some.
func startPiece(out *tasks.Out, a arrayOf, before, rows, rowBytes int64) (*pieceWriter, error) {
	w, err := out.Create(a.name)
	if err != nil {
		return nil, err
	}
	at := int64(len(graph.JoinedHeader(a.descr, a.shape...))) + before*rowBytes
	_, err = w.Write(graph.PieceHeader(a.descr, at, append([]int64{rows}, a.shape[1:]...)...))
	return &pieceWriter{Writer: w}, err
}

func (w *pieceWriter) done(rows int64) (placedFile, error) {
	sum, err := w.Sum()
	return placedFile{Rows: rows, Bytes: w.Bytes(), CRC32C: fmt.Sprintf("%08x", sum), DataSum: w.sum, Data: w.n}, err
}

// placePiece writes the files of a piece.
func (j *job) placePiece(k int, out *tasks.Out) (any, error) {
	p, made := j.pieces[k], placed{}
	out.Last = true
	var base int64
	for _, s := range j.sorted[:k] {
		base += s.Edges
	}
	for _, a := range j.arrays() {
		before, rows, rowBytes := p.first, p.rows, int64(8)
		var fill func(w io.Writer) error
		switch a.name {
		case "indptr.npy":
			if k == len(j.pieces)-1 {
				rows++
			}
			fill = func(w io.Writer) error { return j.putOffsets(w, k, base) }
		case "indices.npy":
			before, rows, rowBytes = base, j.sorted[k].Edges, 4
			fill = func(w io.Writer) error { return j.copyFile(w, "sort", k, "sources") }
		case "weights.npy":
			before, rows, rowBytes = base, j.sorted[k].Edges, 4
			fill = func(w io.Writer) error { return j.copyFile(w, "sort", k, "weights") }
		case "ids.npy":
			fill = func(w io.Writer) error { return j.putIDs(w, p) }
		default:
			rowBytes = j.vertexRowBytes(a)
			fill = func(w io.Writer) error { return j.copyFile(w, "rows", k, a.name) }
		}
		w, err := startPiece(out, a, before, rows, rowBytes)
		if err != nil {
			return nil, err
		}
		if err := errors.Join(j.ctx.Err(), fill(w)); err != nil {
			return nil, err
		}
		if w.n != rows*rowBytes {
			return nil, fmt.Errorf("piece %d of %s: %d bytes, want %d", k, a.name, w.n, rows*rowBytes)
		}
		if made[a.name], err = w.done(rows); err != nil {
			return nil, err
		}
	}
	return made, nil
}

func (j *job) copyFile(w io.Writer, stage string, k int, name string) error {
	r, err := j.f.Open(stage, k, name)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(struct{ io.Writer }{w}, struct{ io.Reader }{r}) // neither knows a shorter way, which would pass the sums by
	return err
}

// putOffsets writes where the rows of a piece begin; the last piece has the end, too.
func (j *job) putOffsets(w io.Writer, k int, at int64) error {
	r, err := j.f.Open("sort", k, "degrees")
	if err != nil {
		return err
	}
	defer r.Close()
	degrees, offsets := make([]uint32, 1<<13), make([]int64, 0, 1<<13)
	for left := j.pieces[k].rows; left > 0; {
		n := min(left, int64(len(degrees)))
		if _, err := io.ReadFull(r, bytesOf(degrees[:n])); err != nil {
			return err
		}
		offsets = offsets[:0]
		for _, d := range degrees[:n] {
			offsets = append(offsets, at)
			at += int64(d)
		}
		if _, err := w.Write(bytesOf(offsets)); err != nil {
			return err
		}
		left -= n
	}
	if k < len(j.pieces)-1 {
		return nil
	}
	_, err = w.Write(bytesOf([]int64{at}))
	return err
}

// eachID passes the keys of a range of vertices.
func (j *job) eachID(from, to int64, put func(key []byte) error) error {
	first := int64(0)
	var key []byte
	for k, r := range j.numbers.ranges {
		lo, hi := max(from, first), min(to, first+r.Keys)
		first += r.Keys
		if lo >= hi {
			continue
		}
		f, err := j.f.Open("number", k, "keys")
		if err != nil {
			return err
		}
		for at := first - r.Keys; at < hi; at++ {
			if key, err = readKey(f.Reader, j.text, key); err == nil && at >= lo {
				err = put(key)
			}
			if err != nil {
				f.Close()
				return err
			}
		}
		f.Close()
	}
	return nil
}

func (j *job) putIDs(w io.Writer, p piece) error {
	var id [1]int64
	return j.eachID(p.first, p.first+p.rows, func(key []byte) error {
		id[0] = numberOf(key)
		_, err := w.Write(bytesOf(id[:]))
		return err
	})
}

// writeNames writes ids.txt.
func (j *job) writeNames(out *tasks.Out) (any, error) {
	out.Last = true
	w, err := out.Create("ids.txt")
	if err != nil {
		return nil, err
	}
	if err := j.eachID(0, j.numbers.n, func(key []byte) error {
		w.Write(key)
		return w.WriteByte('\n')
	}); err != nil {
		return nil, err
	}
	sum, err := w.Sum()
	return placedFile{Bytes: w.Bytes(), CRC32C: fmt.Sprintf("%08x", sum)}, err
}

// finish puts the dataset together: the files are there, and get their names.
func (j *job) finish(out string) error {
	dir := filepath.Join(j.f.Dir, "dataset")
	if err := j.f.Do(j.ctx, "finish", 1, func(int, *tasks.Out) (any, error) { return nil, j.assemble(dir) }); err != nil {
		return err
	}
	if j.opt.Role.Helper {
		return nil
	}
	return j.f.Finish(j.ctx, func() error { return j.publish(dir, filepath.Clean(out)) })
}

// publish renames the dataset.
func (j *job) publish(dir, out string) error {
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) { // a process that was killed has done it
		return nil
	}
	if _, err := os.Lstat(out); err == nil {
		made := j.made(out)
		if err := graph.CheckTarget(out, j.f.Overwrites() || made); err != nil {
			return err
		}
		if err := os.Rename(out, filepath.Join(j.f.Dir, "replaced")); err != nil {
			return err
		}
	}
	if err := os.Rename(dir, out); err != nil {
		return err
	}
	return disk.Sync(filepath.Dir(out))
}

// assemble links the files of all pieces into the folder of the dataset, and writes its meta.json.
func (j *job) assemble(dir string) error {
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	m := &graph.Meta{Name: j.plan.Name, Source: j.sourceLine(), Nodes: j.numbers.n, Arrays: map[string]graph.ArrayMeta{}}
	var asymmetry uint64
	for _, s := range j.sorted {
		m.Edges += s.Edges
		asymmetry += s.Asymmetry
	}
	m.Symmetric = asymmetry == 0
	m.Notes = j.notes(m.Edges)
	files := make([]placed, len(j.pieces))
	for k := range j.pieces {
		if err := j.f.Result("place", k, &files[k]); err != nil {
			return err
		}
	}
	for _, a := range j.arrays() {
		head := graph.JoinedHeader(a.descr, a.shape...)
		sum, size := crc32.Checksum(head, castagnoli), int64(len(head))
		meta := graph.ArrayMeta{DType: a.descr, Shape: a.shape}
		for k := range files {
			f := files[k][a.name]
			name := graph.PieceName(a.name, k)
			if err := j.link("place", k, a.name, filepath.Join(dir, name)); err != nil {
				return err
			}
			meta.Pieces = append(meta.Pieces, graph.Piece{File: name, Bytes: f.Bytes, CRC32C: f.CRC32C})
			sum = graph.JoinCRC(crc32.Castagnoli, sum, f.DataSum, f.Data)
			size += f.Data
		}
		meta.Bytes, meta.CRC32C = size, fmt.Sprintf("%08x", sum)
		m.Arrays[a.name] = meta
	}
	if j.text && !j.numbers.identity {
		var f placedFile
		if err := j.f.Result("names", 0, &f); err != nil {
			return err
		}
		if err := j.link("names", 0, "ids.txt", filepath.Join(dir, "ids.txt")); err != nil {
			return err
		}
		m.Arrays["ids.txt"] = graph.ArrayMeta{Bytes: f.Bytes, CRC32C: f.CRC32C}
	}
	if err := j.describeVertices(m, dir); err != nil {
		return err
	}
	return graph.WriteMeta(dir, m)
}

// link gives a file of a task its name in the dataset. On file systems without links it is copied.
func (j *job) link(stage string, k int, name, to string) error {
	path, err := j.f.Path(stage, k, name)
	if err != nil {
		return err
	}
	if os.Link(path, to) == nil {
		return nil
	}
	return disk.Write(to, func(w io.Writer) error { return j.copyFile(w, stage, k, name) })
}

// notes say what was made of the listed edges.
func (j *job) notes(stored int64) (notes []string) {
	note := fmt.Sprintf("edges: %d listed, %d stored", j.listed, stored)
	if j.opt.Symmetrize {
		note += ", the reverse of each among them"
	}
	if !j.opt.KeepDuplicates {
		note += "; repeats dropped"
	}
	if !j.opt.KeepSelfLoops {
		note += fmt.Sprintf("; %s dropped", event.Tally(j.loops, "self-loop"))
	}
	return append(notes, note)
}

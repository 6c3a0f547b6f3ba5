package graph

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
)

// Folders other than datasets (the parts of a partition) follow the same
// conventions: arrays listed with dtype, shape, bytes and checksum in a JSON file
// that carries its own checksum as its last field. This file is what they share.

// Folder maps arrays of a folder whose JSON file lists them. The arrays must not
// be written to, and must not be used after Close.
type Folder struct{ set Dataset }

// OpenFolder prepares to map the arrays of dir that are listed.
func OpenFolder(dir string, arrays map[string]ArrayMeta) (*Folder, error) {
	if !littleEndian {
		return nil, errors.New("arrays cannot be mapped on a big-endian machine")
	}
	return &Folder{Dataset{Dir: dir, Meta: Meta{Arrays: arrays}, maps: map[string][]byte{}}}, nil
}

// Has reports whether the folder lists the array.
func (f *Folder) Has(name string) bool {
	_, ok := f.set.Meta.Arrays[name]
	return ok
}

// MapArray maps a listed array; a -1 in shape fits any length.
func MapArray[T element](f *Folder, name string, shape ...int64) ([]T, error) {
	if !f.Has(name) {
		return nil, &InputError{File: f.set.Dir, Field: "arrays", Found: "no " + name, Want: "it to be listed",
			Fix: "copy or make the folder again"}
	}
	return array[T](&f.set, name, shape...)
}

// Verify compares the checksums of the mapped arrays up to limit bytes each, and
// reports arrays that are listed but were not mapped.
func (f *Folder) Verify(limit int64) error {
	for _, name := range sortedKeys(f.set.Meta.Arrays) {
		if f.set.maps[name] == nil {
			return &InputError{File: f.set.Dir, Field: "arrays", Found: name, Want: "only files this folder uses",
				Fix: "copy or make the folder again"}
		}
		if f.set.Meta.Arrays[name].Bytes <= limit {
			if err := f.set.checkSum(name); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close unmaps every array.
func (f *Folder) Close() error { return f.set.Close() }

// FolderWriter writes arrays into a folder that exists, and lists them.
type FolderWriter struct{ w Writer }

// NewFolderWriter writes into dir.
func NewFolderWriter(dir string) *FolderWriter {
	return &FolderWriter{Writer{dir: dir, tmp: dir, Meta: Meta{Arrays: map[string]ArrayMeta{}}}}
}

// Array starts an array, as Writer.Array does.
func (f *FolderWriter) Array(name, descr string, shape ...int64) (*ArrayWriter, error) {
	return f.w.Array(name, descr, shape...)
}

// PutArray writes a whole array; without a shape it has one dimension.
func PutArray[T element](f *FolderWriter, name string, s []T, shape ...int64) error {
	return writeArray(&f.w, name, s, shape...)
}

// Arrays lists what was written so far.
func (f *FolderWriter) Arrays() map[string]ArrayMeta { return f.w.Meta.Arrays }

// Abort closes an array that will not be completed.
func (a *ArrayWriter) Abort() { a.f.Close() }

// SealJSON encodes v, whose last field is the string crc, tagged "crc32c", and
// fills in that field: the CRC-32C of the text with the field's digits as zeros.
func SealJSON(v any, crc *string) ([]byte, error) {
	*crc = noCRC
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	b = append(b, '\n')
	*crc = fmt.Sprintf("%08x", crc32.Checksum(b, castagnoli))
	copy(b[bytes.LastIndex(b, []byte(noCRC)):], *crc)
	return b, nil
}

// UnsealJSON decodes what SealJSON wrote. Unknown fields, more than one object and
// a wrong checksum are errors; a missing checksum (a file written by hand) is not.
func UnsealJSON(b []byte, v any, crc *string) error {
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return &InputError{Field: "JSON", Found: Sentence(err.Error()), Want: "the fields of this format",
			Fix: "the file is damaged or of a newer starling"}
	}
	if _, err := dec.Token(); err != io.EOF {
		return &InputError{Field: "JSON", Found: "more text after the object", Want: "one object",
			Fix: "the file is damaged"}
	}
	if *crc == "" {
		return nil
	}
	return checkMetaSum(b, *crc)
}

// AdviseGraph advises the kernel how the edges will be read.
func (d *Dataset) AdviseGraph(a Access) {
	for _, name := range []string{"indptr.npy", "indices.npy", "weights.npy"} {
		advise(d.maps[name], a)
	}
}

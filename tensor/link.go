package tensor

import "errors"

// Linker is a device whose matrices the devices of other workers of the host can read where they are, without a way
// through the host's memory. Two devices meet once; then one lends matrices and the other fetches them:
//
//	lender                                      reader
//	m = Lend; compute m; Sync
//	ref = Refer(m)          ── over a wire ──▶  Fetch(dst, lender, ref)
//	                                            After(it was read)
//	Free(m)                 ◀─ over a wire ──
type Linker interface {
	// Hello is what another device must know to read this one's memory; nil where none can.
	Hello() []byte
	// Meet takes the hello of a worker and reads its memory once. An error says why rows of it cannot be fetched; it is
	// ErrElsewhere where that is as it should be.
	Meet(peer int, hello []byte) error
	// Part forgets a worker; Met reports whether rows can be fetched from it.
	Part(peer int)
	Met(peer int) bool

	// Lend is Scratch of memory that others can read.
	Lend(t DType, rows, cols int) Matrix
	// Refer is where a matrix of Lend is, or a slice of its rows, in ReferenceBytes.
	Refer(m Matrix) []byte
	// Fetch: dst = the matrix of a worker that was met, which must be computed, and stay until it was read.
	Fetch(dst Matrix, peer int, ref []byte) error
	// After calls f, from another goroutine, when all operations called before are done.
	After(f func())
}

// ReferenceBytes is what a reference to a matrix takes.
const ReferenceBytes = 96

// ErrElsewhere: a device is on another host.
var ErrElsewhere = errors.New("it is on another host")

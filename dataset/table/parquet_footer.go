package table

import (
	"encoding/binary"
	"errors"
	"fmt"

	"starling/event"
)

// thriftWalk walks over a Parquet footer, a struct in Thrift's compact encoding,
// without decoding it. The library allocates memory for as many elements as a
// list claims to have before it reads the first; every element takes a byte at least, so a
// list has no more of them than there are bytes left.
type thriftWalk struct {
	left  []byte
	depth int
}

// Types of the compact encoding. Those between are whole numbers of varying length.
const (
	thriftTrue = 1 + iota
	thriftFalse
	thriftByte
	thriftDouble = 4 + iota
	thriftBinary
	thriftList
	thriftSet
	thriftMap
	thriftStruct
)

// A footer nests four deep.
const thriftDeepest = 32

var errThriftEnds = errors.New("a footer that breaks off")

// fields skips a struct.
func (w *thriftWalk) fields() error {
	for {
		head, err := w.take(1)
		if err != nil || head[0] == 0 {
			return err
		}
		if head[0]>>4 == 0 { // the field's number follows
			if _, err := w.number(); err != nil {
				return err
			}
		}
		if kind := head[0] & 15; kind != thriftTrue && kind != thriftFalse { // these are the value
			if err := w.value(kind); err != nil {
				return err
			}
		}
	}
}

// value skips one value of a list, or of a field.
func (w *thriftWalk) value(kind byte) error {
	if w.depth++; w.depth > thriftDeepest {
		return errors.New("a footer of lists in lists without end")
	}
	defer func() { w.depth-- }()
	switch kind {
	case thriftTrue, thriftFalse, thriftByte:
		_, err := w.take(1)
		return err
	case thriftDouble:
		_, err := w.take(8)
		return err
	case thriftBinary:
		n, err := w.number()
		if err == nil {
			_, err = w.take(n)
		}
		return err
	case thriftList, thriftSet:
		return w.list()
	case thriftMap:
		return w.pairs()
	case thriftStruct:
		return w.fields()
	}
	if kind > thriftStruct {
		return fmt.Errorf("a footer with a value of the unknown type %d", kind)
	}
	_, err := w.number()
	return err
}

func (w *thriftWalk) list() error {
	head, err := w.take(1)
	if err != nil {
		return err
	}
	n := uint64(head[0] >> 4)
	if n == 15 {
		if n, err = w.number(); err != nil {
			return err
		}
	}
	return w.values(n, head[0]&15)
}

func (w *thriftWalk) pairs() error {
	n, err := w.number()
	if err != nil || n == 0 {
		return err
	}
	kinds, err := w.take(1)
	if err != nil {
		return err
	}
	return w.values(n, kinds[0]>>4, kinds[0]&15)
}

// values skips n times a value of each kind.
func (w *thriftWalk) values(n uint64, kinds ...byte) error {
	if n > uint64(len(w.left)) {
		return fmt.Errorf("a list of %d with %s of the footer left", n, event.Tally(len(w.left), "byte"))
	}
	for range n {
		for _, kind := range kinds {
			if err := w.value(kind); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *thriftWalk) number() (uint64, error) {
	x, n := binary.Uvarint(w.left)
	if n <= 0 {
		return 0, errThriftEnds
	}
	w.left = w.left[n:]
	return x, nil
}

func (w *thriftWalk) take(n uint64) ([]byte, error) {
	if n > uint64(len(w.left)) {
		return nil, errThriftEnds
	}
	taken := w.left[:n]
	w.left = w.left[n:]
	return taken, nil
}

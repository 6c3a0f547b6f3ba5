package graph

import (
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unsafe"

	"starling/event"
)

// The npy format, as numpy.lib.format documents it:
//
//	"\x93NUMPY" major minor | header length (2 bytes in version 1, 4 in 2 and 3)
//	| a Python dict literal: 'descr', 'fortran_order', 'shape' | spaces, '\n' | the array
//
// so that the array starts at a multiple of 64 bytes.

const (
	npyMagic     = "\x93NUMPY"
	npyMaxHeader = 64 << 10 // far above any plain dtype; bounds the memory a bad file can take
	npyMaxDims   = 32
)

// NPYHeader describes the array in an npy file.
type NPYHeader struct {
	Descr   string // dtype as numpy spells it: "<f4"
	Fortran bool   // column by column
	Shape   []int64
	Offset  int64 // bytes before the array
}

// Elements is the product of the shape.
func (h *NPYHeader) Elements() int64 {
	n := int64(1)
	for _, d := range h.Shape {
		n *= d
	}
	return n
}

// ItemSize is the bytes of one element; 0 for a dtype without a fixed size
// (Python objects, records).
func (h *NPYHeader) ItemSize() int64 {
	if len(h.Descr) < 3 {
		return 0
	}
	n, err := strconv.ParseInt(h.Descr[2:], 10, 32)
	if err != nil || n < 0 {
		return 0
	}
	switch h.Descr[1] {
	case 'f', 'i', 'u', 'b', 'c', 'S', 'V':
		return n
	case 'U':
		return 4 * n
	}
	return 0
}

// DataBytes is the size of the array.
func (h *NPYHeader) DataBytes() int64 { return h.Elements() * h.ItemSize() }

// ReadNPYHeader reads up to the first byte of the array. It allocates no memory
// before the stream has delivered as many bytes, and rejects shapes whose size
// overflows.
func ReadNPYHeader(r io.Reader) (*NPYHeader, error) {
	var pre [12]byte
	if _, err := io.ReadFull(r, pre[:10]); err != nil {
		return nil, npyReadError(err)
	}
	if string(pre[:6]) != npyMagic {
		return nil, badNPY("magic", fmt.Sprintf("%q", pre[:6]), "an npy file, which starts with \\x93NUMPY")
	}
	n, offset := int64(binary.LittleEndian.Uint16(pre[8:10])), int64(10)
	switch pre[6] {
	case 1:
	case 2, 3:
		if _, err := io.ReadFull(r, pre[10:12]); err != nil {
			return nil, npyReadError(err)
		}
		n, offset = int64(binary.LittleEndian.Uint32(pre[8:12])), 12
	default:
		return nil, badNPY("version", strconv.Itoa(int(pre[6])), "1, 2 or 3")
	}
	if n > npyMaxHeader {
		return nil, badNPY("header", event.Tally(n, "byte"), fmt.Sprintf("at most %d", npyMaxHeader))
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, npyReadError(err)
	}
	h, err := parseNPYDict(string(text))
	if err != nil {
		return nil, err
	}
	h.Offset = offset + n
	return h, h.checkSize()
}

func (h *NPYHeader) checkSize() error {
	bytes := max(h.ItemSize(), 1)
	for _, d := range h.Shape {
		if d != 0 && bytes > math.MaxInt64/2/d {
			return badNPY("shape", fmt.Sprint(h.Shape), "a size below 2^62 bytes")
		}
		bytes *= max(d, 1)
	}
	return nil
}

func npyReadError(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return badNPY("header", "the end of the file", "a whole npy header")
	}
	return err
}

func badNPY(field, found, want string) error {
	return &InputError{Field: field, Found: found, Want: want,
		Fix: "the file is damaged or not npy: write it again with numpy.save"}
}

// parseNPYDict reads the one dict that numpy writes: string keys; a string,
// True/False and a tuple of integers as values.
func parseNPYDict(s string) (*NPYHeader, error) {
	p := &literal{rest: s}
	h := &NPYHeader{}
	seen := map[string]bool{}
	p.want('{')
	for p.ok() && !p.take('}') {
		key := p.str()
		p.want(':')
		switch {
		case seen[key]:
			p.fail("the key %q twice", key)
		case key == "descr":
			h.Descr = p.descr()
		case key == "fortran_order":
			h.Fortran = p.boolean()
		case key == "shape":
			h.Shape = p.tuple()
		default:
			p.fail("the key %q", key)
		}
		seen[key] = true
		if !p.take(',') {
			p.want('}')
			break
		}
	}
	p.space()
	if p.ok() && p.rest != "" {
		p.fail("%q after the dict", p.rest[:min(len(p.rest), 20)])
	}
	if p.ok() && len(seen) != 3 {
		p.fail("only %s", event.Tally(len(seen), "key"))
	}
	if p.err != "" {
		return nil, badNPY("header", p.err, "{'descr': …, 'fortran_order': …, 'shape': …}")
	}
	return h, nil
}

// literal is a cursor over the Python literal; the first failure sticks.
type literal struct {
	rest string
	err  string
}

func (p *literal) ok() bool { return p.err == "" }

func (p *literal) fail(format string, args ...any) {
	if p.err == "" {
		p.err = fmt.Sprintf(format, args...)
	}
}

func (p *literal) space() { p.rest = strings.TrimLeft(p.rest, " \n\t") }

func (p *literal) take(c byte) bool {
	p.space()
	if p.ok() && p.rest != "" && p.rest[0] == c {
		p.rest = p.rest[1:]
		return true
	}
	return false
}

func (p *literal) want(c byte) {
	if !p.take(c) {
		p.fail("no %q where one belongs", c)
	}
}

func (p *literal) str() string {
	p.space()
	if p.rest == "" || (p.rest[0] != '\'' && p.rest[0] != '"') {
		p.fail("no string where one belongs")
		return ""
	}
	body, rest, closed := strings.Cut(p.rest[1:], p.rest[:1])
	if !closed || strings.ContainsAny(body, "\\\n") {
		p.fail("a string without end")
		return ""
	}
	p.rest = rest
	return body
}

func (p *literal) descr() string {
	p.space()
	if strings.HasPrefix(p.rest, "[") {
		p.fail("a record dtype, which is not supported")
		return ""
	}
	return p.str()
}

func (p *literal) boolean() bool {
	p.space()
	for _, v := range []string{"True", "False"} {
		if rest, ok := strings.CutPrefix(p.rest, v); ok {
			p.rest = rest
			return v == "True"
		}
	}
	p.fail("no True or False where one belongs")
	return false
}

func (p *literal) tuple() []int64 {
	shape := []int64{}
	p.want('(')
	for p.ok() && !p.take(')') {
		p.space()
		n := 0
		for n < len(p.rest) && p.rest[n] >= '0' && p.rest[n] <= '9' {
			n++
		}
		d, err := strconv.ParseInt(p.rest[:n], 10, 64)
		if err != nil || len(shape) == npyMaxDims {
			p.fail("a shape that is no tuple of at most %d sizes", npyMaxDims)
			break
		}
		shape = append(shape, d)
		p.rest = strings.TrimPrefix(p.rest[n:], "L") // Python 2 wrote long integers so
		if !p.take(',') {
			p.want(')')
			break
		}
	}
	return shape
}

// npyHeader writes a version 1 header padded so that the array starts at a
// multiple of 64 bytes.
func npyHeader(descr string, shape []int64) []byte {
	var dims strings.Builder
	for i, d := range shape {
		if i > 0 {
			dims.WriteString(", ")
		}
		fmt.Fprint(&dims, d)
	}
	if len(shape) == 1 {
		dims.WriteString(",")
	}
	text := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, dims.String())
	pad := 63 - (10+len(text))%64
	text += strings.Repeat(" ", pad) + "\n"
	out := append([]byte(npyMagic), 1, 0)
	out = binary.LittleEndian.AppendUint16(out, uint16(len(text)))
	return append(out, text...)
}

// element is what the arrays of a dataset hold.
type element interface {
	~int8 | ~uint8 | ~uint16 | ~int32 | ~uint32 | ~int64 | ~uint64 | ~float32 | ~float64
}

// descrOf is numpy's name for T.
func descrOf[T element]() string {
	var zero T
	switch any(zero).(type) {
	case int8:
		return "|i1"
	case uint8:
		return "|u1"
	case uint16:
		return "<u2"
	case int32:
		return "<i4"
	case uint32:
		return "<u4"
	case int64:
		return "<i8"
	case uint64:
		return "<u8"
	case float32:
		return "<f4"
	}
	return "<f8"
}

// asBytes views a slice as the bytes of a little-endian file.
func asBytes[T element](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

// fromBytes views bytes as elements, or copies them if they are unaligned
// (old numpy padded to 16 bytes only, and version 2 files may not pad at all).
func fromBytes[T element](b []byte) []T {
	size := int(unsafe.Sizeof(*new(T)))
	n := len(b) / size
	if n == 0 {
		return []T{}
	}
	if uintptr(unsafe.Pointer(&b[0]))%uintptr(size) == 0 {
		return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n)
	}
	out := make([]T, n)
	copy(asBytes(out), b)
	return out
}

// littleEndian is false on machines this format cannot be mapped on.
var littleEndian = binary.NativeEndian.Uint16([]byte{1, 0}) == 1

package dataset

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"starling/event"
)

// A pickle is a program for a small stack machine, and Python runs any function
// it names. This reader calls none: it knows the classes of the Planetoid files and
// refuses every other by name. It allocates memory only for what the file contains:
// strings stay slices of the file, and every opcode makes at most one value.
//
// Values: nil, bool, int64, float64, []byte (strings of any kind), tuple, *list,
// *dict, global, *object.

type (
	tuple  []any
	list   struct{ items []any }
	dict   struct{ keys, values []any }
	global string
	// object is a call that was not made: the function, its arguments, and the
	// state that would be set on the result.
	object struct {
		class global
		args  tuple
		state any
	}
	mark struct{}
)

// allowedGlobals are the names a Planetoid pickle may use, in the spellings of
// Python 2 and 3 and of old and new numpy and scipy.
var allowedGlobals = map[string]global{
	"numpy.core.multiarray _reconstruct":  "array",
	"numpy._core.multiarray _reconstruct": "array",
	"numpy.core.numeric _frombuffer":      "buffer",
	"numpy._core.numeric _frombuffer":     "buffer",
	"numpy ndarray":                       "ndarray",
	"numpy dtype":                         "dtype",
	"scipy.sparse.csr csr_matrix":         "csr",
	"scipy.sparse._csr csr_matrix":        "csr",
	"collections defaultdict":             "defaultdict",
	"__builtin__ list":                    "list",
	"builtins list":                       "list",
	"__builtin__ object":                  "object",
	"builtins object":                     "object",
	"copy_reg _reconstructor":             "new",
	"copyreg _reconstructor":              "new",
	"_codecs encode":                      "encode",
}

type unpickler struct {
	b     []byte
	at    int
	stack []any
	memo  map[uint64]any
}

// unpickle runs the program and returns the value it leaves.
func unpickle(b []byte) (v any, err error) {
	u := &unpickler{b: b, memo: map[uint64]any{}}
	defer func() {
		if r := recover(); r != nil {
			bad, ok := r.(pickleError)
			if !ok {
				panic(r)
			}
			err = fmt.Errorf("%w (at byte %d)", error(bad), u.at)
		}
	}()
	for {
		if op := u.byte(); op == '.' {
			return u.pop(), nil
		} else {
			u.step(op)
		}
	}
}

// pickleError is a panic of the steps that unpickle recovers: an opcode has no
// caller that could handle it.
type pickleError string

func (e pickleError) Error() string { return string(e) }

func fail(format string, args ...any) { panic(pickleError(fmt.Sprintf(format, args...))) }

func (u *unpickler) take(n uint64) []byte {
	if n > uint64(len(u.b)-u.at) {
		fail("the file ends too early")
	}
	s := u.b[u.at : u.at+int(n)]
	u.at += int(n)
	return s
}

func (u *unpickler) byte() byte { return u.take(1)[0] }

func (u *unpickler) line() string {
	n := bytes.IndexByte(u.b[u.at:], '\n')
	if n < 0 {
		fail("the file ends too early")
	}
	return string(u.take(uint64(n) + 1)[:n])
}

// uint reads a little-endian number of n bytes.
func (u *unpickler) uint(n uint64) (x uint64) {
	for i, c := range u.take(n) {
		x |= uint64(c) << (8 * i)
	}
	return x
}

func (u *unpickler) push(v any) { u.stack = append(u.stack, v) }

func (u *unpickler) pop() any {
	if len(u.stack) == 0 {
		fail("an empty stack")
	}
	v := u.stack[len(u.stack)-1]
	if _, isMark := v.(mark); isMark {
		fail("a mark where a value belongs")
	}
	u.stack = u.stack[:len(u.stack)-1]
	return v
}

// popMark takes everything above the last mark.
func (u *unpickler) popMark() []any {
	for i := len(u.stack) - 1; i >= 0; i-- {
		if _, isMark := u.stack[i].(mark); isMark {
			items := append([]any(nil), u.stack[i+1:]...)
			u.stack = u.stack[:i]
			return items
		}
	}
	fail("no mark on the stack")
	return nil
}

func (u *unpickler) popN(n int) tuple {
	t := make(tuple, n)
	for i := n - 1; i >= 0; i-- {
		t[i] = u.pop()
	}
	return t
}

// step runs one opcode. The letters are the opcodes of Python's pickle module.
func (u *unpickler) step(op byte) {
	switch op {
	case 0x80: // PROTO
		u.byte()
	case 0x95: // FRAME
		u.take(8)
	case '(':
		u.push(mark{})
	case '0':
		u.pop()
	case 'N':
		u.push(nil)
	case 0x88, 0x89: // NEWTRUE, NEWFALSE
		u.push(op == 0x88)
	case 'c', 0x93: // GLOBAL, STACK_GLOBAL
		u.global(op)
	case 'R', 0x81: // REDUCE, NEWOBJ
		u.call()
	case 'b':
		u.build()
	default:
		if !u.scalar(op) && !u.container(op) && !u.memoise(op) {
			fail("opcode %#x, which a Planetoid file has no use for", op)
		}
	}
}

func (u *unpickler) scalar(op byte) bool {
	switch op {
	case 'J':
		u.push(int64(int32(u.uint(4))))
	case 'K':
		u.push(int64(u.uint(1)))
	case 'M':
		u.push(int64(u.uint(2)))
	case 0x8a: // LONG1
		u.push(longInt(u.take(u.uint(1))))
	case 'I', 'L':
		u.push(decimal(u.line()))
	case 'G':
		u.push(float64frombe(u.take(8)))
	case 'U', 'C', 0x8c: // SHORT_BINSTRING, SHORT_BINBYTES, SHORT_BINUNICODE
		u.push(u.take(u.uint(1)))
	case 'T', 'X', 'B': // BINSTRING, BINUNICODE, BINBYTES
		u.push(u.take(u.uint(4)))
	case 0x8d, 0x8e, 0x96: // BINUNICODE8, BINBYTES8, BYTEARRAY8
		u.push(u.take(u.uint(8)))
	default:
		return false
	}
	return true
}

func (u *unpickler) container(op byte) bool {
	switch op {
	case ')':
		u.push(tuple{})
	case 't':
		u.push(tuple(u.popMark()))
	case 0x85, 0x86, 0x87: // TUPLE1 to TUPLE3
		u.push(u.popN(int(op-0x85) + 1))
	case ']':
		u.push(&list{})
	case 'l':
		u.push(&list{u.popMark()})
	case 'a':
		v := u.pop()
		l := top[*list](u)
		l.items = append(l.items, v)
	case 'e':
		v := u.popMark()
		l := top[*list](u)
		l.items = append(l.items, v...)
	case '}':
		u.push(&dict{})
	case 'd':
		v := u.popMark()
		d := &dict{}
		d.set(v)
		u.push(d)
	case 's':
		v := u.popN(2)
		top[*dict](u).set(v)
	case 'u':
		v := u.popMark()
		top[*dict](u).set(v)
	default:
		return false
	}
	return true
}

func (d *dict) set(pairs []any) {
	if len(pairs)%2 != 0 {
		fail("a key without a value")
	}
	for i := 0; i < len(pairs); i += 2 {
		d.keys, d.values = append(d.keys, pairs[i]), append(d.values, pairs[i+1])
	}
}

// top is the value that stays on the stack while it is added to.
func top[T any](u *unpickler) T {
	if len(u.stack) > 0 {
		if v, ok := u.stack[len(u.stack)-1].(T); ok {
			return v
		}
	}
	var want T
	fail("no %T on the stack where one belongs", want)
	return want
}

func (u *unpickler) memoise(op byte) bool {
	var at uint64
	switch op {
	case 'q', 'h':
		at = u.uint(1)
	case 'r', 'j':
		at = u.uint(4)
	case 'p', 'g':
		at = uint64(decimal(u.line()))
	case 0x94: // MEMOIZE
		at = uint64(len(u.memo))
	default:
		return false
	}
	switch op {
	case 'h', 'j', 'g':
		v, ok := u.memo[at]
		if !ok {
			fail("memo %d, which was never set", at)
		}
		u.push(v)
	default:
		v := u.pop()
		u.memo[at] = v
		u.push(v)
	}
	return true
}

func (u *unpickler) global(op byte) {
	var name string
	if op == 'c' {
		module := u.line()
		name = module + " " + u.line()
	} else {
		parts := u.popN(2)
		a, aok := parts[0].([]byte)
		b, bok := parts[1].([]byte)
		if !aok || !bok {
			fail("a class that has no name")
		}
		name = string(a) + " " + string(b)
	}
	g, ok := allowedGlobals[name]
	if !ok {
		fail("the class %q, which a Planetoid file has no use for and which is not run",
			strings.Replace(name, " ", ".", 1))
	}
	u.push(g)
}

// call records a call instead of making it, except for the two that are data.
func (u *unpickler) call() {
	args, ok := u.pop().(tuple)
	class, named := u.pop().(global)
	switch {
	case !ok || !named:
		fail("a call of something that is no class")
	case class == "defaultdict":
		u.push(&dict{})
	case class == "encode":
		u.push(latin1(args))
	case class == "new":
		if len(args) == 0 {
			fail("a call without a class")
		}
		if class, named = args[0].(global); !named {
			fail("a call of something that is no class")
		}
		u.push(&object{class: class})
	default:
		u.push(&object{class: class, args: args})
	}
}

func (u *unpickler) build() {
	state := u.pop()
	top[*object](u).state = state
}

// latin1 decodes bytes as Python 3 writes them in protocol 2: as text, encoded again.
func latin1(args tuple) []byte {
	var text []byte
	if len(args) > 0 {
		text, _ = args[0].([]byte)
	}
	out := make([]byte, 0, len(text))
	for _, r := range string(text) {
		if r > 255 {
			fail("text that is no latin-1")
		}
		out = append(out, byte(r))
	}
	return out
}

func longInt(b []byte) int64 {
	if len(b) > 8 {
		fail("an integer of %s", event.Tally(len(b), "byte"))
	}
	var x uint64
	for i, c := range b {
		x |= uint64(c) << (8 * i)
	}
	shift := 64 - 8*len(b)
	return int64(x<<shift) >> shift
}

func decimal(s string) int64 {
	x, err := strconv.ParseInt(strings.TrimSuffix(s, "L"), 10, 64)
	if err != nil {
		fail("%q where an integer belongs", s)
	}
	return x
}

func float64frombe(b []byte) float64 { return math.Float64frombits(binary.BigEndian.Uint64(b)) }

// errShape is the error of the functions below: the pickle is valid, but
// does not contain what the file should.
var errShape = errors.New("another kind of value")

// get is the value under a name, nil if there is none.
func (d *dict) get(name string) any {
	for i, k := range d.keys {
		if s, ok := k.([]byte); ok && string(s) == name {
			return d.values[i]
		}
	}
	return nil
}

// ndarray is a numpy array found in a pickle.
type ndarray struct {
	descr string
	shape []int64
	data  []byte
}

// asArray reads the state numpy gives an array: (version, shape, dtype, is
// column-major, bytes); or, in protocol 5, what it is made of: (bytes, dtype, shape, order).
func asArray(v any) (*ndarray, error) {
	o, ok := v.(*object)
	if !ok {
		return nil, errShape
	}
	var parts [4]any // shape, dtype, is column-major, bytes
	state, _ := o.state.(tuple)
	switch {
	case o.class == "array" && len(state) == 5:
		copy(parts[:], state[1:])
	case o.class == "buffer" && len(o.args) == 4:
		order, _ := o.args[3].([]byte)
		parts = [4]any{o.args[2], o.args[1], string(order) == "F", o.args[0]}
	}
	shape, ok1 := parts[0].(tuple)
	dtype, ok2 := parts[1].(*object)
	fortran, ok3 := parts[2].(bool)
	data, ok4 := parts[3].([]byte)
	if !ok1 || !ok2 || !ok3 || !ok4 || dtype.class != "dtype" || len(dtype.args) < 1 || len(shape) > 2 {
		return nil, errShape
	}
	a := &ndarray{data: data}
	for _, d := range shape {
		n, ok := d.(int64)
		if !ok || n < 0 || n > int64(len(data)) {
			return nil, errShape
		}
		a.shape = append(a.shape, n)
	}
	name, _ := dtype.args[0].([]byte)
	if order, ok := dtype.state.(tuple); ok && len(order) > 1 {
		if s, ok := order[1].([]byte); ok && string(s) == ">" {
			return nil, errors.New("a big-endian array")
		}
	}
	if fortran && len(shape) > 1 {
		return nil, errors.New("a column-major array")
	}
	a.descr = string(name)
	return a, nil
}

package nn

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"slices"

	"starling/disk"
	"starling/graph"
)

// A safetensors file is what Python's safetensors package reads and writes:
//
//	8 bytes    length of the header, little-endian
//	header     JSON: {"__metadata__": {text: text}, NAME: {"dtype", "shape", "data_offsets": [from, to]}, …}
//	data       the arrays, little-endian, without gaps or overlaps; offsets count from its start
//
// Only F32 and F64 occur here. Double-precision arrays come first in the data, so
// that with a header padded to eight bytes every number is aligned; the header
// keeps the order the arrays were given in.

const (
	maxSafetensorsHeader = 64 << 20
	metadataKey          = "__metadata__"
)

// safetensor is an entry of the header.
type safetensor struct {
	DType   string   `json:"dtype"`
	Shape   []int    `json:"shape"`
	Offsets [2]int64 `json:"data_offsets"`
}

// WriteSafetensors writes arrays, and texts about them, to w.
func WriteSafetensors(w io.Writer, state []Tensor, metadata map[string]string) error {
	header, order, err := safetensorsHeader(state, metadata)
	if err != nil {
		return err
	}
	b := bufio.NewWriterSize(w, 1<<16)
	var word [8]byte
	binary.LittleEndian.PutUint64(word[:], uint64(len(header)))
	b.Write(word[:])
	b.Write(header)
	for _, i := range order {
		writeNumbers(b, &state[i])
	}
	return b.Flush()
}

// SafetensorsSize is how many bytes WriteSafetensors will write.
func SafetensorsSize(state []Tensor, metadata map[string]string) (int64, error) {
	header, _, err := safetensorsHeader(state, metadata)
	n := 8 + int64(len(header))
	for i := range state {
		n += int64(state[i].size()) * state[i].count()
	}
	return n, err
}

// writeNumbers leaves errors to the buffer's Flush.
func writeNumbers(b *bufio.Writer, t *Tensor) {
	t.Pieces(func(numbers []float64, _ int) {
		var word [8]byte
		for _, x := range numbers {
			if t.F64 {
				binary.LittleEndian.PutUint64(word[:], math.Float64bits(x))
				b.Write(word[:8])
				continue
			}
			binary.LittleEndian.PutUint32(word[:], math.Float32bits(float32(x)))
			b.Write(word[:4])
		}
	})
}

// safetensorsHeader is the header and the order in which the data follows.
func safetensorsHeader(state []Tensor, metadata map[string]string) (header []byte, order []int, err error) {
	entries := make([]safetensor, len(state))
	seen := map[string]bool{metadataKey: true}
	for i, t := range state {
		if n, ok := elements(t.Shape); !ok || n != t.count() || seen[t.Name] {
			return nil, nil, fmt.Errorf("array %q of shape %v and %d numbers cannot be written: the name is taken "+
				"or the shape does not fit", t.Name, t.Shape, t.count())
		}
		seen[t.Name] = true
		order = append(order, i)
	}
	slices.SortStableFunc(order, func(i, j int) int { return state[j].size() - state[i].size() })
	at := int64(0)
	for _, i := range order {
		t := &state[i]
		end := at + int64(t.size())*t.count()
		entries[i] = safetensor{DType: map[int]string{4: "F32", 8: "F64"}[t.size()], Shape: t.Shape,
			Offsets: [2]int64{at, end}}
		if t.Shape == nil {
			entries[i].Shape = []int{}
		}
		at = end
	}
	var b bytes.Buffer
	b.WriteByte('{')
	if len(metadata) > 0 {
		appendJSON(&b, metadataKey, metadata)
	}
	for i := range state {
		appendJSON(&b, state[i].Name, entries[i])
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	return b.Bytes(), order, nil
}

// appendJSON adds "key":value to an open object. Neither can fail to encode.
func appendJSON(b *bytes.Buffer, key string, value any) {
	if b.Len() > 1 {
		b.WriteByte(',')
	}
	k, _ := json.Marshal(key)
	v, _ := json.Marshal(value)
	b.Write(k)
	b.WriteByte(':')
	b.Write(v)
}

// size is the number of bytes of one number.
func (t *Tensor) size() int {
	if t.F64 {
		return 8
	}
	return 4
}

// elements is the product of a shape, if it is a sensible one.
func elements(shape []int) (n int64, ok bool) {
	n = 1
	for _, d := range shape {
		if d < 0 || d > 0 && n > math.MaxInt64/8/int64(d) {
			return 0, false
		}
		n *= int64(d)
	}
	return n, true
}

// ReadSafetensors reads a file of the given size: its arrays in the order of the
// header, and its metadata. No length in it is believed before it was compared
// with size.
func ReadSafetensors(r io.Reader, size int64) ([]Tensor, map[string]string, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	f, err := readSafetensorsHeader(b, size)
	if err != nil {
		return nil, nil, err
	}
	for _, i := range f.order {
		if err := readNumbers(b, &f.state[i]); err != nil {
			return nil, nil, badSafetensors(f.state[i].Name, "the end of the file",
				fmt.Sprintf("shape %v", f.state[i].Shape))
		}
	}
	return f.state, f.metadata, nil
}

// OpenSafetensors is the arrays of a file that is in memory, and stays there: they are
// read from it when asked for.
func OpenSafetensors(file []byte) ([]Tensor, error) {
	f, err := readSafetensorsHeader(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	for i := range f.state {
		t := &f.state[i]
		at := f.entries[i].Offsets
		data := file[f.data+at[0] : f.data+at[1]]
		width, size, double := t.width(), t.size(), t.F64
		t.Read = func(into []float64, row int) {
			from := data[row*width*size:]
			for i := range into {
				if double {
					into[i] = math.Float64frombits(binary.LittleEndian.Uint64(from[i*8:]))
				} else {
					into[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(from[i*4:])))
				}
			}
		}
	}
	return f.state, nil
}

// safetensors is what the header of a file says.
type safetensors struct {
	state    []Tensor // without their numbers
	entries  []safetensor
	order    []int // of the arrays in the data
	metadata map[string]string
	data     int64 // where they begin
}

func readSafetensorsHeader(b io.Reader, size int64) (f *safetensors, err error) {
	var word [8]byte
	if _, err := io.ReadFull(b, word[:]); err != nil {
		return nil, badSafetensors("header length", fmt.Sprintf("%d bytes in all", size), "at least 8")
	}
	n := binary.LittleEndian.Uint64(word[:])
	if n > maxSafetensorsHeader || int64(n) > size-8 {
		return nil, badSafetensors("header length", fmt.Sprintf("%d in a file of %d bytes", n, size),
			fmt.Sprintf("what the file holds, and at most %d", maxSafetensorsHeader))
	}
	header := make([]byte, n)
	if _, err := io.ReadFull(b, header); err != nil {
		return nil, badSafetensors("header", "the end of the file", fmt.Sprintf("%d bytes", n))
	}
	f = &safetensors{data: 8 + int64(n)}
	if f.state, f.entries, f.metadata, err = parseSafetensorsHeader(header); err != nil {
		return nil, err
	}
	f.order, err = checkOffsets(f.state, f.entries, size-f.data)
	return f, err
}

// parseSafetensorsHeader goes through the object key by key, because a map would
// hide a name that occurs twice.
func parseSafetensorsHeader(header []byte) (state []Tensor, entries []safetensor, metadata map[string]string,
	err error) {
	bad := func(found string) error {
		return badSafetensors("header", found, "a JSON object of arrays")
	}
	dec := json.NewDecoder(bytes.NewReader(header))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, nil, nil, bad("no object")
	}
	seen := map[string]bool{}
	for dec.More() {
		t, err := dec.Token()
		if err != nil {
			return nil, nil, nil, bad(graph.Sentence(err.Error()))
		}
		name := t.(string) // keys of an object are strings
		if seen[name] {
			return nil, nil, nil, bad(fmt.Sprintf("the name %q twice", name))
		}
		seen[name] = true
		if name == metadataKey {
			if err := dec.Decode(&metadata); err != nil {
				return nil, nil, nil, bad("metadata that is not texts: " + err.Error())
			}
			continue
		}
		var e safetensor
		if err := dec.Decode(&e); err != nil {
			return nil, nil, nil, bad(fmt.Sprintf("entry %q: %v", name, err))
		}
		if e.DType != "F32" && e.DType != "F64" {
			return nil, nil, nil, badSafetensors(name, "dtype "+e.DType, "F32 or F64")
		}
		entries = append(entries, e)
		state = append(state, Tensor{Name: name, Shape: e.Shape, F64: e.DType == "F64"})
	}
	if _, err := dec.Token(); err != nil {
		return nil, nil, nil, bad(graph.Sentence(err.Error()))
	}
	if rest := bytes.TrimRight(header[dec.InputOffset():], " "); len(rest) > 0 {
		return nil, nil, nil, bad("more text after the object")
	}
	return state, entries, metadata, nil
}

// checkOffsets makes sure that the arrays cover the data without gaps or
// overlaps, and returns their order in it.
func checkOffsets(state []Tensor, entries []safetensor, data int64) ([]int, error) {
	order := make([]int, len(entries))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := entries[i].Offsets, entries[j].Offsets
		return slices.Compare(a[:], b[:])
	})
	at := int64(0)
	for _, i := range order {
		e, t := entries[i], &state[i]
		n, ok := elements(e.Shape)
		if !ok || e.Offsets[0] != at || e.Offsets[1] < at || e.Offsets[1] > data ||
			e.Offsets[1]-at != n*int64(t.size()) {
			return nil, badSafetensors(t.Name, fmt.Sprintf("shape %v at bytes %d to %d of %d", e.Shape, e.Offsets[0],
				e.Offsets[1], data),
				fmt.Sprintf("what follows byte %d and fits the shape", at))
		}
		at = e.Offsets[1]
	}
	if at != data {
		return nil, badSafetensors("data", fmt.Sprintf("%d bytes", data), fmt.Sprint(at))
	}
	return order, nil
}

// readNumbers fills t.Data. REQUIRES: the shape was checked against the size of the file.
func readNumbers(b *bufio.Reader, t *Tensor) error {
	n, _ := elements(t.Shape)
	t.Data = make([]float64, n)
	var word [8]byte
	for i := range t.Data {
		if _, err := io.ReadFull(b, word[:t.size()]); err != nil {
			return err
		}
		if t.F64 {
			t.Data[i] = math.Float64frombits(binary.LittleEndian.Uint64(word[:]))
		} else {
			t.Data[i] = float64(math.Float32frombits(binary.LittleEndian.Uint32(word[:])))
		}
	}
	return nil
}

func badSafetensors(field, found, want string) error {
	return &graph.InputError{Field: field, Found: found, Want: want,
		Fix: "the file is damaged or no safetensors file of float32 and float64 arrays"}
}

// SaveSafetensors writes a file that appears whole or not at all.
func SaveSafetensors(path string, state []Tensor, metadata map[string]string) error {
	return disk.Write(path, func(w io.Writer) error { return WriteSafetensors(w, state, metadata) })
}

// LoadSafetensors reads a file.
func LoadSafetensors(path string) ([]Tensor, map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, nil, err
	}
	state, metadata, err := ReadSafetensors(f, info.Size())
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	return state, metadata, nil
}

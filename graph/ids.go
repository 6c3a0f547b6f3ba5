package graph

import (
	"strconv"
	"sync"
)

// vertexIDs are what vertices were called before import: numbers, or text, or nothing.
type vertexIDs struct {
	numbers []int64
	text    *textIDs
}

// textIDs are lines, whose ends are found on first use.
type textIDs struct {
	raw  []byte
	once sync.Once
	ends []int64
}

// name is the name of vertex v; ok is false if it had none.
func (x *vertexIDs) name(v int64) (name string, ok bool) {
	switch {
	case x.numbers != nil:
		return strconv.FormatInt(x.numbers[v], 10), true
	case x.text == nil:
		return "", false
	}
	return x.text.line(v), true
}

func (t *textIDs) line(v int64) string {
	t.once.Do(t.index)
	start := int64(0)
	if v > 0 {
		start = t.ends[v-1] + 1
	}
	return string(t.raw[start:t.ends[v]])
}

func (t *textIDs) index() {
	for i, c := range t.raw {
		if c == '\n' {
			t.ends = append(t.ends, int64(i))
		}
	}
}

// ID is the name of vertex v before import; its number if it had none. In a typed graph both are within its type.
func (d *Dataset) ID(v uint32) string {
	ids, at := &d.ids, int64(v)
	if d.Typed() {
		k := d.Meta.Schema.TypeOf(v)
		ids, at = &d.typeIDs[k], at-d.Meta.Schema.Types[k].First
	}
	if name, ok := ids.name(at); ok {
		return name
	}
	return strconv.FormatInt(at, 10)
}

// HasIDs reports whether vertices had other names before import.
func (d *Dataset) HasIDs() bool {
	for i := range d.typeIDs {
		if d.typeIDs[i].numbers != nil || d.typeIDs[i].text != nil {
			return true
		}
	}
	return d.ids.numbers != nil || d.ids.text != nil
}

package graph

import "strconv"

// ID is the name of vertex v before import; its number if it had none.
func (d *Dataset) ID(v uint32) string {
	switch {
	case d.intIDs != nil:
		return strconv.FormatInt(d.intIDs[v], 10)
	case d.text.raw == nil:
		return strconv.FormatUint(uint64(v), 10)
	}
	d.text.once.Do(d.indexText)
	start := int64(0)
	if v > 0 {
		start = d.text.ends[v-1] + 1
	}
	return string(d.text.raw[start:d.text.ends[v]])
}

// indexText finds the ends of the lines of ids.txt, on first use.
func (d *Dataset) indexText() {
	d.text.ends = make([]int64, 0, d.Meta.Nodes)
	for i, c := range d.text.raw {
		if c == '\n' {
			d.text.ends = append(d.text.ends, int64(i))
		}
	}
}

// HasIDs reports whether vertices had other names before import.
func (d *Dataset) HasIDs() bool { return d.intIDs != nil || d.text.raw != nil }

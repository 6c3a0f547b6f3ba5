package dataset

import (
	"bytes"
	"fmt"

	"starling/dataset/table"
	"starling/event"
	"starling/graph"
)

// Labels of OGB datasets, text or binary.

// csvLabels reads a table of classes, one column, or of 0/1 marks, several.
func csvLabels(path string, n int, opt ImportOptions) (*graph.Labels, error) {
	type part struct {
		values []float32
		cols   int
	}
	var all labelRows
	all.file = path
	err := lineBlocks(path, maxRowBytes, opt, func(data []byte) (part, *lineError) {
		first, _, _ := bytes.Cut(data, newline)
		cols := bytes.Count(first, []byte{','}) + 1
		x, err := parseRows(data, cols, true)
		return part{x, cols}, err
	}, func(p part) error { return all.add(p.values, p.cols, n) })
	if err != nil {
		return nil, err
	}
	return all.labels(n)
}

// labelRows collects labels that are numbers, NaN for none: one per vertex is its
// class, several are marks.
type labelRows struct {
	file  string
	cols  int
	class []int32
	marks []uint8
	most  int32
	known bool
}

func (l *labelRows) bad(row int, found, want string) error {
	return badFile(l.file, fmt.Sprintf("row %d", row), found, want, "download the file again")
}

func (l *labelRows) rows() int {
	if l.cols > 1 {
		return len(l.marks) / l.cols
	}
	return len(l.class)
}

// add takes whole rows of cols numbers, in order.
func (l *labelRows) add(x []float32, cols, n int) error {
	if l.cols == 0 {
		l.cols = cols
	}
	if len(x) == 0 {
		return nil
	}
	if cols != l.cols || l.rows()+len(x)/cols > n {
		return l.bad(l.rows(), fmt.Sprintf("rows of %d, %d of them", cols, l.rows()+len(x)/cols),
			fmt.Sprintf("%s of %d", event.Tally(n, "row"), l.cols))
	}
	if cols > 1 {
		return l.addMarks(x)
	}
	for _, c := range x {
		switch {
		case c != c:
			l.class = append(l.class, -1)
			continue
		case c < -1 || c > maxClasses || c != float32(int32(c)):
			return l.bad(len(l.class), fmt.Sprint(c), "a class from 0")
		}
		l.class = append(l.class, int32(c))
		l.most = max(l.most, int32(c)+1)
	}
	return nil
}

func (l *labelRows) addMarks(x []float32) error {
	for ; len(x) > 0; x = x[l.cols:] {
		row := x[:l.cols]
		missing := 0
		for _, m := range row {
			switch {
			case m != m:
				missing++
				l.marks = append(l.marks, 0)
			case m == 0 || m == 1:
				l.marks = append(l.marks, uint8(m))
			default:
				return l.bad(l.rows(), fmt.Sprint(m), "0 or 1 for each class")
			}
		}
		if missing == l.cols {
			for i := len(l.marks) - l.cols; i < len(l.marks); i++ {
				l.marks[i] = graph.NoLabel
			}
		} else {
			l.known = true
		}
	}
	return nil
}

// labels is what was collected for n vertices; nil if no vertex has any.
func (l *labelRows) labels(n int) (*graph.Labels, error) {
	if l.rows() != n {
		return nil, l.bad(l.rows(), "the end", fmt.Sprintf("one row per vertex (%d)", n))
	}
	switch {
	case l.cols > 1 && l.known:
		return &graph.Labels{Classes: l.cols, Multi: l.marks}, nil
	case l.cols == 1 && l.most > 0:
		return &graph.Labels{Classes: int(l.most), Class: l.class}, nil
	}
	return nil, nil
}

// npzLabels reads [n], [n,1] or [n,classes] labels.
func npzLabels(path, name string, n int) (*graph.Labels, error) {
	a, err := openInNPZ(path, "OGB", name)
	if err != nil {
		return nil, err
	}
	defer a.Close()
	cols := int64(1)
	if len(a.Shape) == 2 {
		cols = a.Shape[1]
	}
	if len(a.Shape) < 1 || len(a.Shape) > 2 || a.Shape[0] != int64(n) || cols < 1 || cols > maxClasses {
		return nil, badFile(path, name, fmt.Sprintf("shape %v", a.Shape), fmt.Sprintf("one row per vertex (%d)", n),
			"download the file again")
	}
	l := labelRows{file: path}
	x := make([]float32, max(1, table.PieceNumbers/cols)*cols)
	for a.Left > 0 {
		x = x[:min(int64(len(x)), a.Left)]
		if err := a.Reals(x); err != nil {
			return nil, badFile(path, name, graph.Sentence(err.Error()), "a whole array of numbers", "download the file again")
		}
		if err := l.add(x, int(cols), n); err != nil {
			return nil, err
		}
	}
	if err := a.End(); err != nil {
		return nil, badFile(path, name, graph.Sentence(err.Error()), "a whole array of numbers", "download the file again")
	}
	return l.labels(n)
}

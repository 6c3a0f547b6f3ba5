package serve

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"starling/disk"
	"starling/graph"
)

// WriteCSV writes a table with the names of its columns on the first line:
//
//	id,label,probability   the most likely class, by its name where it has one
//	id,labels              those of a vertex that may have several, separated by ;
//	id,value,...           of regression
//	id,CLASS,...           the probability of every class
//	id,e0,e1,...           embeddings
//
// The file appears complete or not at all.
func (p *Predictions) WriteCSV(path string, d *graph.Dataset) error {
	return disk.Write(path, func(w io.Writer) error {
		b := bufio.NewWriterSize(w, 1<<20)
		out := csv.NewWriter(b)
		out.Write(append([]string{"id"}, p.columns()...)) // Flush and Error tell whether it worked
		record := make([]string, 0, p.Width+1)
		for v := range uint32(p.Vertices) {
			record = p.record(append(record[:0], d.ID(v)), v)
			out.Write(record)
		}
		out.Flush()
		if err := out.Error(); err != nil {
			return err
		}
		return b.Flush()
	})
}

// columns are the names of those behind the id.
func (p *Predictions) columns() (names []string) {
	switch {
	case p.Class != nil:
		return []string{"label", "probability"}
	case p.Marks != nil:
		return []string{"labels"}
	case p.What == Labels && p.Width == 1:
		return []string{"value"}
	}
	for c := range p.Width {
		switch p.What {
		case Probabilities:
			names = append(names, graph.ClassName(p.ClassNames, c))
		case Embeddings:
			names = append(names, fmt.Sprintf("e%d", c))
		default:
			names = append(names, fmt.Sprintf("value%d", c))
		}
	}
	return names
}

// record appends the columns of a vertex.
func (p *Predictions) record(to []string, v uint32) []string {
	switch {
	case p.Class != nil:
		return append(to, graph.ClassName(p.ClassNames, int(p.Class[v])), shortest(p.Probability[v]))
	case p.Marks != nil:
		var labels []string
		for c := range p.Width {
			if p.Marks[int(v)*p.Width+c] == 1 {
				labels = append(labels, graph.ClassName(p.ClassNames, c))
			}
		}
		return append(to, strings.Join(labels, ";"))
	}
	for _, x := range (rows{p.Width, p.Values}).of(v) {
		to = append(to, shortest(x))
	}
	return to
}

// shortest is the fewest digits that read back as the same float32.
func shortest(x float32) string { return strconv.FormatFloat(float64(x), 'g', -1, 32) }

package serve

import (
	"bufio"
	"io"
	"strconv"
	"strings"

	"github.com/parquet-go/parquet-go"

	"starling/disk"
	"starling/graph"
)

// WriteNPY writes the predictions as an array: row v is vertex v of the dataset.
// The file appears complete or not at all. Where classes have names, ClassesFile lists them.
func (p *Predictions) WriteNPY(path string) error {
	if file := p.ClassesFile(path); file != "" {
		if err := p.writeClasses(file); err != nil {
			return err
		}
	}
	n, wide := int64(p.Vertices), int64(p.Width)
	switch {
	case p.Class != nil:
		return graph.WriteNPY(path, p.Class)
	case p.Marks != nil:
		return graph.WriteNPY(path, p.Marks, n, wide)
	}
	return graph.WriteNPY(path, p.Values, n, wide)
}

// WritePage writes a page that appears complete or not at all.
func WritePage(path string, write func(io.Writer) error) error { return disk.Write(path, write) }

// ClassesFile is the file beside an array that names class c on line c, from 0; "": classes
// have no names.
func (p *Predictions) ClassesFile(path string) string {
	if len(p.ClassNames) == 0 {
		return ""
	}
	return strings.TrimSuffix(path, ".npy") + ".classes.txt"
}

func (p *Predictions) writeClasses(path string) error {
	return disk.Write(path, func(w io.Writer) error {
		_, err := io.WriteString(w, strings.Join(p.ClassNames, "\n")+"\n")
		return err
	})
}

// WriteParquet writes a table: id, the vertices' names before import (whole numbers, or text
// where they were that), and label with its probability (and class, its name, where classes
// have names), labels, value, values, probabilities or embedding. The file appears complete
// or not at all.
func (p *Predictions) WriteParquet(path string, d *graph.Dataset) error {
	return disk.Write(path, func(w io.Writer) error {
		if textIDs(d) {
			return writeTable(w, p, d.ID)
		}
		return writeTable(w, p, func(v uint32) int64 {
			id, _ := strconv.ParseInt(d.ID(v), 10, 64) // they were written from numbers
			return id
		})
	})
}

// textIDs reports whether vertices had names that are not numbers.
func textIDs(d *graph.Dataset) bool {
	return d.TextIDs()
}

type vertexID interface{ int64 | string }

// The rows of tables.
type labelRow[I vertexID] struct {
	ID          I       `parquet:"id"`
	Label       int32   `parquet:"label"`
	Probability float32 `parquet:"probability"`
}

type namedRow[I vertexID] struct {
	ID          I       `parquet:"id"`
	Label       int32   `parquet:"label"`
	Class       string  `parquet:"class,dict"`
	Probability float32 `parquet:"probability"`
}

type marksRow[I vertexID] struct {
	ID     I       `parquet:"id"`
	Labels []int32 `parquet:"labels,list"`
}

type probabilitiesRow[I vertexID] struct {
	ID            I         `parquet:"id"`
	Probabilities []float32 `parquet:"probabilities,list"`
}

type valueRow[I vertexID] struct {
	ID    I       `parquet:"id"`
	Value float32 `parquet:"value"`
}

type valuesRow[I vertexID] struct {
	ID     I         `parquet:"id"`
	Values []float32 `parquet:"values,list"`
}

type embeddingRow[I vertexID] struct {
	ID        I         `parquet:"id"`
	Embedding []float32 `parquet:"embedding,list"`
}

func writeTable[I vertexID](w io.Writer, p *Predictions, id func(v uint32) I) error {
	row := func(v uint32) []float32 { return rows{p.Width, p.Values}.of(v) }
	switch {
	case p.Class != nil && len(p.ClassNames) > 0:
		return writeRows(w, p.Vertices, func(v uint32) namedRow[I] {
			return namedRow[I]{id(v), p.Class[v], graph.ClassName(p.ClassNames, int(p.Class[v])), p.Probability[v]}
		})
	case p.Class != nil:
		return writeRows(w, p.Vertices, func(v uint32) labelRow[I] { return labelRow[I]{id(v), p.Class[v], p.Probability[v]} })
	case p.Marks != nil:
		return writeRows(w, p.Vertices, func(v uint32) marksRow[I] {
			marks := make([]int32, p.Width)
			for c := range marks {
				marks[c] = int32(p.Marks[int(v)*p.Width+c])
			}
			return marksRow[I]{id(v), marks}
		})
	case p.What == Labels && p.Width == 1:
		return writeRows(w, p.Vertices, func(v uint32) valueRow[I] { return valueRow[I]{id(v), p.Values[v]} })
	case p.What == Labels:
		return writeRows(w, p.Vertices, func(v uint32) valuesRow[I] { return valuesRow[I]{id(v), row(v)} })
	case p.What == Embeddings:
		return writeRows(w, p.Vertices, func(v uint32) embeddingRow[I] { return embeddingRow[I]{id(v), row(v)} })
	}
	return writeRows(w, p.Vertices, func(v uint32) probabilitiesRow[I] { return probabilitiesRow[I]{id(v), row(v)} })
}

// groupRows is the rows per row group: readers hold a whole group in memory.
const groupRows = 1 << 17

func writeRows[R any](w io.Writer, n int, row func(v uint32) R) error {
	b := bufio.NewWriterSize(w, 1<<20)
	t := parquet.NewGenericWriter[R](b, parquet.Compression(&parquet.Snappy), parquet.MaxRowsPerRowGroup(groupRows))
	batch := make([]R, 0, 1024)
	for v := range n {
		batch = append(batch, row(uint32(v)))
		if len(batch) < cap(batch) && v < n-1 {
			continue
		}
		if _, err := t.Write(batch); err != nil {
			return err
		}
		batch = batch[:0]
	}
	if err := t.Close(); err != nil {
		return err
	}
	return b.Flush()
}

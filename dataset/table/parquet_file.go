package table

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/parquet-go/parquet-go"

	"starling/event"
	"starling/graph"
)

// Parquet is an open table. The library panics on some damaged files; guarded
// turns that into an error that names the file.
type Parquet struct {
	Path string
	f    *os.File
	File *parquet.File
	Cols []ParquetColumn
}

func OpenParquet(path string) (p *Parquet, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, bad(path, "", "no such file", "a Parquet table", "check the path")
	}
	if err != nil {
		return nil, err
	}
	p = &Parquet{Path: path, f: f}
	err = p.guarded(func() error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if err := p.checkFooter(info.Size()); err != nil {
			return err
		}
		p.File, err = parquet.OpenFile(f, info.Size(), parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
		if err != nil {
			return p.Bad("", graph.Sentence(err.Error()), "a Parquet table")
		}
		p.columns()
		return nil
	})
	if err != nil {
		f.Close()
		return nil, err
	}
	return p, nil
}

// checkFooter checks the file's claims before the library uses them: the length of
// the footer in the last eight bytes, up to 4 GiB, and those of lists.
func (p *Parquet) checkFooter(size int64) error {
	var tail [8]byte
	if _, err := p.f.ReadAt(tail[:], max(size-8, 0)); err != nil || string(tail[4:]) != "PAR1" {
		return nil // not a table, which the library reports
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > size-12 { // between "PAR1" and the tail
		return p.Bad("", fmt.Sprintf("a footer of %s in a file of %d", event.Tally(n, "byte"), size),
			"a whole Parquet table")
	}
	footer := make([]byte, n)
	if _, err := p.f.ReadAt(footer, size-8-n); err != nil {
		return err
	}
	if err := (&thriftWalk{left: footer}).fields(); err != nil {
		return p.Bad("", graph.Sentence(err.Error()), "a whole Parquet table")
	}
	return nil
}

func (p *Parquet) Close() { p.f.Close() }

func (p *Parquet) Bad(field, found, want string) error {
	return bad(p.Path, field, found, want, "write the table again, for example with pyarrow.parquet.write_table")
}

// guarded runs f and turns a panic of the library into an error.
func (p *Parquet) guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = p.Bad("", fmt.Sprintf("a damaged table (%.100v)", r), "a whole Parquet table")
		}
	}()
	return f()
}

// columns lists the leaves that are plain, or the only one of a list.
func (p *Parquet) columns() {
	var half []bool // of all leaves; the library does not report it per column
	for _, e := range p.File.Metadata().Schema {
		if e.Type != nil {
			half = append(half, e.LogicalType != nil && e.LogicalType.Float16 != nil)
		}
	}
	for _, c := range p.File.Root().Columns() {
		leaf, list := c, false
		for !leaf.Leaf() && len(leaf.Columns()) == 1 {
			leaf = leaf.Columns()[0]
			list = true
		}
		if leaf.Leaf() {
			column := newParquetColumn(c.Name(), leaf, list || c.Repeated())
			column.half = column.leaf < len(half) && half[column.leaf]
			p.Cols = append(p.Cols, column)
		}
	}
}

// find is the first column that has one of the names.
func (p *Parquet) Find(names ...string) *ParquetColumn {
	for _, name := range names {
		for i := range p.Cols {
			if strings.EqualFold(p.Cols[i].Name, name) {
				return &p.Cols[i]
			}
		}
	}
	return nil
}

// ints reads the integers of a column in a row group, a page at a time. Those of
// unsigned columns that need all 64 bits are negative.
func (p *Parquet) Ints(group int, c *ParquetColumn, put func([]int64) error) error {
	var buf []int64
	return p.pages(group, c, func(page parquet.Page) error {
		if page.NumNulls() > 0 {
			return p.Bad(c.Name, "a missing value", "one in every row")
		}
		n := int(page.NumValues())
		buf = buf[:0]
		data := page.Data()
		switch dict := page.Dictionary(); {
		case dict != nil:
			table := make([]int64, dict.Len())
			for i := range table {
				if c.Kind == parquet.Int32 {
					table[i] = int64(dict.Index(int32(i)).Int32())
				} else {
					table[i] = dict.Index(int32(i)).Int64()
				}
			}
			for _, i := range data.Int32() {
				buf = append(buf, table[i])
			}
		case c.Kind == parquet.Int32:
			for _, x := range data.Int32() {
				buf = append(buf, int64(x))
			}
		default:
			buf = append(buf, data.Int64()...)
		}
		if len(buf) < n {
			return p.Bad(c.Name, fmt.Sprintf("a page of %s", event.Tally(len(buf), "value")), fmt.Sprint(n))
		}
		if c.unsigned && c.Kind == parquet.Int32 {
			for i, x := range buf {
				buf[i] = int64(uint32(x))
			}
		}
		return put(buf[:n])
	})
}

// cells reads any column value by value.
func (p *Parquet) Cells(group int, c *ParquetColumn, put func(Cell) error) error {
	var buf [1024]parquet.Value
	return p.pages(group, c, func(page parquet.Page) error {
		values := page.Values()
		for {
			n, err := values.ReadValues(buf[:])
			for _, v := range buf[:n] {
				if err := put(c.cell(v)); err != nil {
					return err
				}
			}
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return p.Bad(c.Name, graph.Sentence(err.Error()), "a whole column")
			}
			if n == 0 {
				return p.Bad(c.Name, "a page without end", "a whole column")
			}
		}
	})
}

// pages calls use with every page of a column in a row group.
func (p *Parquet) pages(group int, c *ParquetColumn, use func(parquet.Page) error) error {
	return p.guarded(func() error {
		chunks := p.File.RowGroups()[group].ColumnChunks()
		if c.leaf < 0 || c.leaf >= len(chunks) {
			return p.Bad(c.Name, "no such column in a row group", "the same columns in all")
		}
		pages := chunks[c.leaf].Pages()
		defer pages.Close()
		for {
			page, err := pages.ReadPage()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return p.Bad(c.Name, graph.Sentence(err.Error()), "a whole column")
			}
			err = use(page)
			parquet.Release(page)
			if err != nil {
				return err
			}
		}
	})
}

// Names lists the first columns, for messages.
func (p *Parquet) Names() string {
	var names []string
	for _, c := range p.Cols {
		names = append(names, c.Name)
	}
	return strings.Join(names[:min(len(names), 20)], ", ")
}

// Lists reads a column of rows lists of dim numbers each. If dim is 0 the first list
// sets it.
func (p *Parquet) Lists(g int, c *ParquetColumn, rows int, dim *int, values *[]float32,
	number func(row int, x Cell) (float32, error)) error {
	row, width := 0, 0
	end := func() error {
		if *dim == 0 {
			*dim = width
		}
		if width != *dim {
			return p.Bad(c.Name, fmt.Sprintf("a list of %d", width), fmt.Sprintf("%d, as in the first row", *dim))
		}
		width = 0
		return nil
	}
	err := p.Cells(g, c, func(x Cell) error {
		if x.First {
			if row++; row > 1 {
				if err := end(); err != nil {
					return err
				}
			}
		}
		width++
		y, err := number(row-1, x)
		*values = append(*values, y)
		return err
	})
	if err == nil && row > 0 {
		err = end()
	}
	if err == nil && row != rows {
		err = p.Bad(c.Name, event.Tally(row, "list"), fmt.Sprintf("one in each of %s", event.Tally(rows, "row")))
	}
	return err
}

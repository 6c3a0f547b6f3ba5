package dataset

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/parquet-go/parquet-go"

	"starling/graph"
)

// parquetFile is an open table. The library panics on some damaged files; guarded
// turns that into an error that names the file.
type parquetFile struct {
	path string
	f    *os.File
	pf   *parquet.File
	cols []parquetColumn
}

func openParquet(path string) (p *parquetFile, err error) {
	f, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, badFile(path, "", "no such file", "a Parquet table", "check the path")
	}
	if err != nil {
		return nil, err
	}
	p = &parquetFile{path: path, f: f}
	err = p.guarded(func() error {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		if err := p.checkFooter(info.Size()); err != nil {
			return err
		}
		p.pf, err = parquet.OpenFile(f, info.Size(), parquet.SkipBloomFilters(true), parquet.SkipPageIndex(true))
		if err != nil {
			return p.bad("", graph.Sentence(err.Error()), "a Parquet table")
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
func (p *parquetFile) checkFooter(size int64) error {
	var tail [8]byte
	if _, err := p.f.ReadAt(tail[:], max(size-8, 0)); err != nil || string(tail[4:]) != "PAR1" {
		return nil // not a table, which the library reports
	}
	n := int64(binary.LittleEndian.Uint32(tail[:]))
	if n > size-12 { // between "PAR1" and the tail
		return p.bad("", fmt.Sprintf("a footer of %d bytes in a file of %d", n, size), "a whole Parquet table")
	}
	footer := make([]byte, n)
	if _, err := p.f.ReadAt(footer, size-8-n); err != nil {
		return err
	}
	if err := (&thriftWalk{left: footer}).fields(); err != nil {
		return p.bad("", graph.Sentence(err.Error()), "a whole Parquet table")
	}
	return nil
}

func (p *parquetFile) Close() { p.f.Close() }

func (p *parquetFile) bad(field, found, want string) error {
	return badFile(p.path, field, found, want, "write the table again, for example with pyarrow.parquet.write_table")
}

// guarded runs f and turns a panic of the library into an error.
func (p *parquetFile) guarded(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = p.bad("", fmt.Sprintf("a damaged table (%.100v)", r), "a whole Parquet table")
		}
	}()
	return f()
}

// columns lists the leaves that are plain, or the only one of a list.
func (p *parquetFile) columns() {
	var half []bool // of all leaves; the library does not report it per column
	for _, e := range p.pf.Metadata().Schema {
		if e.Type != nil {
			half = append(half, e.LogicalType != nil && e.LogicalType.Float16 != nil)
		}
	}
	for _, c := range p.pf.Root().Columns() {
		leaf, list := c, false
		for !leaf.Leaf() && len(leaf.Columns()) == 1 {
			leaf = leaf.Columns()[0]
			list = true
		}
		if leaf.Leaf() {
			column := newParquetColumn(c.Name(), leaf, list || c.Repeated())
			column.half = column.leaf < len(half) && half[column.leaf]
			p.cols = append(p.cols, column)
		}
	}
}

// find is the first column that has one of the names.
func (p *parquetFile) find(names ...string) *parquetColumn {
	for _, name := range names {
		for i := range p.cols {
			if strings.EqualFold(p.cols[i].name, name) {
				return &p.cols[i]
			}
		}
	}
	return nil
}

// ints reads the integers of a column in a row group, a page at a time. Those of
// unsigned columns that need all 64 bits are negative.
func (p *parquetFile) ints(group int, c *parquetColumn, put func([]int64) error) error {
	var buf []int64
	return p.pages(group, c, func(page parquet.Page) error {
		if page.NumNulls() > 0 {
			return p.bad(c.name, "a missing value", "one in every row")
		}
		n := int(page.NumValues())
		buf = buf[:0]
		data := page.Data()
		switch dict := page.Dictionary(); {
		case dict != nil:
			table := make([]int64, dict.Len())
			for i := range table {
				if c.kind == parquet.Int32 {
					table[i] = int64(dict.Index(int32(i)).Int32())
				} else {
					table[i] = dict.Index(int32(i)).Int64()
				}
			}
			for _, i := range data.Int32() {
				buf = append(buf, table[i])
			}
		case c.kind == parquet.Int32:
			for _, x := range data.Int32() {
				buf = append(buf, int64(x))
			}
		default:
			buf = append(buf, data.Int64()...)
		}
		if len(buf) < n {
			return p.bad(c.name, fmt.Sprintf("a page of %d values", len(buf)), fmt.Sprint(n))
		}
		if c.unsigned && c.kind == parquet.Int32 {
			for i, x := range buf {
				buf[i] = int64(uint32(x))
			}
		}
		return put(buf[:n])
	})
}

// cells reads any column value by value.
func (p *parquetFile) cells(group int, c *parquetColumn, put func(parquetCell) error) error {
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
				return p.bad(c.name, graph.Sentence(err.Error()), "a whole column")
			}
			if n == 0 {
				return p.bad(c.name, "a page without end", "a whole column")
			}
		}
	})
}

// pages calls use with every page of a column in a row group.
func (p *parquetFile) pages(group int, c *parquetColumn, use func(parquet.Page) error) error {
	return p.guarded(func() error {
		chunks := p.pf.RowGroups()[group].ColumnChunks()
		if c.leaf < 0 || c.leaf >= len(chunks) {
			return p.bad(c.name, "no such column in a row group", "the same columns in all")
		}
		pages := chunks[c.leaf].Pages()
		defer pages.Close()
		for {
			page, err := pages.ReadPage()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return p.bad(c.name, graph.Sentence(err.Error()), "a whole column")
			}
			err = use(page)
			parquet.Release(page)
			if err != nil {
				return err
			}
		}
	})
}

package dataset

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/parquet-go/parquet-go"
)

// parquetColumn is a leaf at the top of the table, or inside one list there. Its
// physical type and its logical type may differ.
type parquetColumn struct {
	name     string
	leaf     int
	list     bool
	kind     parquet.Kind
	unsigned bool
	decimal  bool // a whole number, to be divided by unit
	unit     float64
	half     bool // a float of 16 bits
	time     bool // a date or a time of any kind
}

func newParquetColumn(name string, leaf *parquet.Column, list bool) parquetColumn {
	c := parquetColumn{name: name, leaf: leaf.Index(), list: list, kind: leaf.Type().Kind()}
	if t := leaf.Type().LogicalType(); t != nil {
		c.unsigned = t.Integer != nil && !t.Integer.IsSigned
		c.time = t.Date != nil || t.Time != nil || t.Timestamp != nil
		if t.Decimal != nil {
			c.decimal, c.unit = true, math.Pow10(int(t.Decimal.Scale))
		}
	}
	return c
}

// whole tells whether values are integers that can be ids.
func (c *parquetColumn) whole() bool {
	return !c.list && !c.decimal && !c.time && (c.kind == parquet.Int32 || c.kind == parquet.Int64)
}

func (c *parquetColumn) text() bool { return !c.list && !c.decimal && c.kind == parquet.ByteArray }

func (c *parquetColumn) number() bool {
	switch c.kind {
	case parquet.Int32, parquet.Int64, parquet.Float, parquet.Double, parquet.Boolean:
		return !c.time
	}
	return c.half || c.decimal
}

// id is the name of a whole number of ints.
func (c *parquetColumn) id(b []byte, x int64) []byte {
	if c.unsigned {
		return strconv.AppendUint(b, uint64(x), 10)
	}
	return strconv.AppendInt(b, x, 10)
}

// parquetCell is one value: a number or a text, or missing.
type parquetCell struct {
	real    float64
	text    []byte
	missing bool
	first   bool // the first of a row
}

func (c *parquetColumn) cell(v parquet.Value) parquetCell {
	x := parquetCell{first: v.RepetitionLevel() == 0, missing: v.IsNull()}
	if x.missing {
		return x
	}
	switch v.Kind() {
	case parquet.Boolean:
		if v.Boolean() {
			x.real = 1
		}
	case parquet.Int32:
		if x.real = float64(v.Int32()); c.unsigned {
			x.real = float64(v.Uint32())
		}
	case parquet.Int64:
		if x.real = float64(v.Int64()); c.unsigned {
			x.real = float64(v.Uint64())
		}
	case parquet.Float:
		x.real = float64(v.Float())
	case parquet.Double:
		x.real = v.Double()
	case parquet.ByteArray, parquet.FixedLenByteArray:
		switch b := v.ByteArray(); {
		case c.decimal:
			x.real = bigEndian(b)
		case c.half && len(b) == 2:
			x.real = float64(fromHalf(binary.LittleEndian.Uint16(b)))
		default:
			x.text = b
		}
	}
	if c.decimal {
		x.real /= c.unit
	}
	return x
}

// bigEndian is a number in two's complement, the highest byte first.
func bigEndian(b []byte) (x float64) {
	for i, c := range b {
		if x = 256*x + float64(c); i == 0 {
			x = float64(int8(c))
		}
	}
	return x
}

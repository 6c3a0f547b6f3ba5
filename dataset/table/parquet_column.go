package table

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
)

// ParquetColumn is a leaf at the top of the table, or inside one list there. Its
// physical type and its logical type may differ.
type ParquetColumn struct {
	Name     string
	leaf     int
	List     bool
	Kind     parquet.Kind
	unsigned bool
	decimal  bool // a whole number, to be divided by unit
	unit     float64
	half     bool // a float of 16 bits
	time     bool // a date or a time of any kind
	// of a time, how many units a second has; of a date, -1: it counts days
	perSecond int64
}

func newParquetColumn(name string, leaf *parquet.Column, list bool) ParquetColumn {
	c := ParquetColumn{Name: name, leaf: leaf.Index(), List: list, Kind: leaf.Type().Kind()}
	if t := leaf.Type().LogicalType(); t != nil {
		c.unsigned = t.Integer != nil && !t.Integer.IsSigned
		c.time = t.Date != nil || t.Time != nil || t.Timestamp != nil
		c.perSecond = unitsPerSecond(t)
		if t.Decimal != nil {
			c.decimal, c.unit = true, math.Pow10(int(t.Decimal.Scale))
		}
	}
	return c
}

// unitsPerSecond tells how a time is counted: in how many units a second, or -1, in days.
func unitsPerSecond(t *format.LogicalType) int64 {
	unit := func(u format.TimeUnit) int64 {
		switch {
		case u.Millis != nil:
			return 1e3
		case u.Micros != nil:
			return 1e6
		}
		return 1e9
	}
	switch {
	case t.Date != nil:
		return -1
	case t.Time != nil:
		return unit(t.Time.Unit)
	case t.Timestamp != nil:
		return unit(t.Timestamp.Unit)
	}
	return 0
}

// seconds are the seconds of a time that is counted in other units, rounded down.
func (c *ParquetColumn) seconds(n int64) int64 {
	switch {
	case c.perSecond < 0:
		return n * 86400
	case c.perSecond == 0:
		return n
	}
	s := n / c.perSecond
	if n%c.perSecond < 0 {
		s--
	}
	return s
}

// whole tells whether values are integers that can be ids.
func (c *ParquetColumn) Whole() bool {
	return !c.List && !c.decimal && !c.time && (c.Kind == parquet.Int32 || c.Kind == parquet.Int64)
}

func (c *ParquetColumn) Text() bool { return !c.List && !c.decimal && c.Kind == parquet.ByteArray }

func (c *ParquetColumn) Number() bool {
	switch c.Kind {
	case parquet.Int32, parquet.Int64, parquet.Float, parquet.Double, parquet.Boolean:
		return !c.time
	}
	return c.half || c.decimal
}

// id is the name of a whole number of ints.
func (c *ParquetColumn) ID(b []byte, x int64) []byte {
	if c.unsigned {
		return strconv.AppendUint(b, uint64(x), 10)
	}
	return strconv.AppendInt(b, x, 10)
}

// Cell is one value: a number or a text, or missing.
type Cell struct {
	Real    float64
	Text    []byte
	Missing bool
	First   bool // the first of a row
}

func (c *ParquetColumn) cell(v parquet.Value) Cell {
	x := Cell{First: v.RepetitionLevel() == 0, Missing: v.IsNull()}
	if x.Missing {
		return x
	}
	switch v.Kind() {
	case parquet.Boolean:
		if v.Boolean() {
			x.Real = 1
		}
	case parquet.Int32:
		if x.Real = float64(v.Int32()); c.unsigned {
			x.Real = float64(v.Uint32())
		}
	case parquet.Int64:
		if x.Real = float64(v.Int64()); c.unsigned {
			x.Real = float64(v.Uint64())
		}
	case parquet.Float:
		x.Real = float64(v.Float())
	case parquet.Double:
		x.Real = v.Double()
	case parquet.ByteArray, parquet.FixedLenByteArray:
		switch b := v.ByteArray(); {
		case c.decimal:
			x.Real = bigEndian(b)
		case c.half && len(b) == 2:
			x.Real = float64(fromHalf(binary.LittleEndian.Uint16(b)))
		default:
			x.Text = b
		}
	}
	if c.decimal {
		x.Real /= c.unit
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

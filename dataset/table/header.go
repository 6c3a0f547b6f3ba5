package table

import (
	"slices"
	"strconv"
	"strings"
)

// Whether the first row of a text file is a header is told by what it is, in this order:
//
//	the names that are expected      all or most of them are in it
//	a word above numbers             in as many columns at least as have a number in the first row, or in one
//	                                 whose word is usual: a header may be id, 2019, 2020
//	a value that comes again         a header's name is in no other row
//	usual words                      id, name, src, label, …
//	text that looks otherwise        a word without digits above words with digits, or above words that repeat

// isHeader tells whether the first row names the columns of the others.
func isHeader(first []string, rest [][]string, names []string) bool {
	if slices.Contains(first, "") && !slices.Contains(names, "") && len(first) > 1 && blank(first) > 1 {
		return false
	}
	if n := present(first, names); len(names) > 0 && 2*n >= len(names) {
		return true
	}
	if len(rest) == 0 {
		return usual(first)
	}
	above, numbers := 0, 0
	for c, name := range first {
		switch under := kindOf(rest, c); {
		case number(name):
			numbers++
		case !IsMissing(name) && (under == Whole || under == Real):
			above++
		}
	}
	switch {
	case above > 0 && above >= numbers, usual(first) && (above > 0 || numbers == 0):
		return true
	case numbers > 0 || repeats(first, rest):
		return false
	}
	return differs(first, rest)
}

func blank(row []string) (n int) {
	for _, s := range row {
		if s == "" {
			n++
		}
	}
	return n
}

// present counts the names that a row has.
func present(row, names []string) (n int) {
	for _, name := range names {
		if slices.Contains(row, name) {
			n++
		}
	}
	return n
}

// usualNames are names of columns that are hardly values.
var usualNames = []string{"id", "src", "dst", "source", "target", "from", "to", "label", "class", "name", "split",
	"weight",
	"node", "vertex", "type", "node_id", "source_id", "target_id", "dest", "src_id", "dst_id", "features", "feat",
	"time",
	"timestamp"}

func usual(row []string) bool {
	return slices.ContainsFunc(row, func(s string) bool {
		s = strings.ToLower(s)
		return slices.Contains(usualNames, s) || strings.HasSuffix(s, "_id")
	})
}

// repeats tells whether a cell of the first row is in another one.
func repeats(first []string, rest [][]string) bool {
	for _, row := range rest {
		if slices.ContainsFunc(row, func(s string) bool { return s != "" && slices.Contains(first, s) }) {
			return true
		}
	}
	return false
}

// differs tells whether in some column the values are alike and the first row is unlike them.
func differs(first []string, rest [][]string) bool {
	for c, name := range first {
		values, digit := map[string]bool{}, true
		for _, row := range rest {
			if c < len(row) {
				values[row[c]] = true
				digit = digit && strings.ContainsAny(row[c], "0123456789")
			}
		}
		if digit && !strings.ContainsAny(name, "0123456789") || len(rest) >= 4 && 2*len(values) <= len(rest) {
			return true
		}
	}
	return false
}

// number tells whether a cell is written as a number; "inf" is not.
func number(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return (err == nil || err.(*strconv.NumError).Err == strconv.ErrRange) && strings.ContainsAny(s, "0123456789")
}

// kindOf is the kind that all cells of a column have; one without any value is text.
func kindOf(rows [][]string, c int) Kind {
	some, whole, real, list := false, true, true, true
	for _, row := range rows {
		if c >= len(row) || IsMissing(row[c]) {
			continue
		}
		some = true
		s := row[c]
		_, err := strconv.ParseInt(s, 10, 64)
		whole = whole && err == nil
		real = real && (err == nil || number(s))
		list = list && len(s) < 1<<20 && listWidth(s) > 1
	}
	switch {
	case some && whole:
		return Whole
	case some && real:
		return Real
	case some && list:
		return Vector
	}
	return Text
}

// listFields are the numbers of a list in one cell: 1 2 3, 1;2;3, or [1, 2, 3].
func listFields(s string) []string {
	s = strings.Trim(s, "[]() ")
	return strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ',' || r == ';' || r == '|' || r == '\t' })
}

// listWidth is how many numbers a cell lists; 0: other things too.
func listWidth(s string) int {
	fields := listFields(s)
	for _, f := range fields {
		if !number(f) {
			return 0
		}
	}
	return len(fields)
}

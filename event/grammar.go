package event

import (
	"fmt"
	"strings"
)

// Count is a number with thousands separators.
func Count(n int64) string { return separated(fmt.Sprint(n)) }

// separated is a number as text, with thousands separators.
func separated(s string) string {
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// whole are the types of what is counted.
type whole interface {
	~int | ~int8 | ~int32 | ~int64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Counted is a number and a noun, given in the singular; words before the noun may be given with it.
func Counted[N whole](n N, one string) string { return separated(fmt.Sprint(n)) + " " + Noun(n, one) }

// Tally is the same without separators, as refusals show a number beside the one that is wanted.
func Tally[N whole](n N, one string) string { return fmt.Sprint(n) + " " + Noun(n, one) }

// Noun is a noun, given in the singular, as it is written after a number.
func Noun[N whole](n N, one string) string {
	if n == 1 {
		return one
	}
	return plural(one)
}

// plural is the plural of a regular noun, and of vertex.
func plural(one string) string {
	stem, y := strings.CutSuffix(one, "y")
	switch {
	case strings.HasSuffix(one, "vertex"):
		return strings.TrimSuffix(one, "ex") + "ices"
	case strings.HasSuffix(one, "s"), strings.HasSuffix(one, "x"), strings.HasSuffix(one, "tch"),
		strings.HasSuffix(one, "sh"): // classes, boxes, batches, hashes; but epochs
		return one + "es"
	case y && !strings.ContainsRune("aeiou", rune(stem[len(stem)-1])): // entries, but ways
		return stem + "ies"
	}
	return one + "s"
}

// Range is the numbers from first to last of a noun in the singular: column 3, columns 3 and 4, columns 3 to 5.
func Range(one string, first, last int) string {
	switch {
	case first == last:
		return fmt.Sprintf("%s %d", one, first)
	case first+1 == last:
		return fmt.Sprintf("%s %d and %d", plural(one), first, last)
	}
	return fmt.Sprintf("%s %d to %d", plural(one), first, last)
}

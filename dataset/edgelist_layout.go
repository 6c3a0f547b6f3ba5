package dataset

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"starling/dataset/table"
)

// layout is the format of the lines of one file.
type layout struct {
	delim   byte // 0: blanks
	columns int
	skip    int // lines before the first edge that are no comments: the header
	header  string
	at      *[3]int // columns of source, target and weight; nil: the first three

	negative bool // weights below 0 are allowed
}

// sniff finds the separator and a header from the first two lines.
func sniff(path string, opt ImportOptions) (lay layout, err error) {
	if opt.Header != "" && opt.Header != "yes" && opt.Header != "no" {
		return lay, badParam("header", opt.Header, `"yes", "no" or nothing`)
	}
	lay.negative = opt.NegativeWeights
	lines, err := firstLines(path)
	if err != nil || len(lines) == 0 {
		return lay, err
	}
	lay.delim = separator(bytes.TrimSpace(lines[len(lines)-1]))
	for i := range lines {
		lines[i] = lay.trim(lines[i])
	}
	last := lines[len(lines)-1]
	lay.columns = lay.count(bytes.Clone(last))
	isHeader := opt.Header == "yes"
	if opt.Header == "" {
		isHeader = looksLikeHeader(lay, bytes.Clone(lines[0]), bytes.Clone(last))
	}
	if isHeader {
		lay.skip, lay.header = 1, string(lines[0])
		if err := plainEnds(path, lay.split(bytes.Clone(lines[0]))); err != nil {
			return lay, err
		}
		if at := edgeColumns(lay.split(bytes.Clone(lines[0]))); at != [3]int{0, 1, 2} {
			lay.at = &at
		}
	}
	return lay, nil
}

// firstLines are the first two lines that are not comments, or fewer.
func firstLines(path string) (lines [][]byte, err error) {
	in, err := table.OpenText(path)
	if err != nil {
		return nil, err
	}
	defer in.Close()
	head := make([]byte, maxLine)
	n, err := io.ReadFull(in, head)
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, err
	}
	for line := range bytes.Lines(head[:n]) {
		if !comment(bytes.TrimSpace(line)) {
			lines = append(lines, line)
		}
		if len(lines) == 2 {
			return lines, nil
		}
	}
	if len(lines) > 0 && bytes.IndexByte(bytes.TrimSpace(lines[0]), '\r') >= 0 && bytes.IndexByte(head[:n], '\n') < 0 {
		return nil, badFile(path, "line 1", "lines that end with a carriage return only", "a line feed after each",
			"convert the file, for example with mac2unix")
	}
	return lines, nil
}

// trim removes what surrounds the fields of a line. A tab that separates them may follow
// an empty one.
func (l layout) trim(line []byte) []byte {
	if l.delim == '\t' {
		return bytes.Trim(line, " \r\n")
	}
	return bytes.TrimSpace(line)
}

// separator is the first tab, comma or semicolon outside quotes; 0: there are blanks.
func separator(line []byte) byte {
	quoted := false
	for _, c := range line {
		switch {
		case c == '"':
			quoted = !quoted
		case !quoted && (c == '\t' || c == ',' || c == ';'):
			return c
		}
	}
	return 0
}

func comment(line []byte) bool { return len(line) == 0 || line[0] == '#' || line[0] == '%' }

// headerWords are names that the first column of an edge table has.
var headerWords = []string{"source", "src", "from", "fromnodeid", "u", "node1", "node_1", "node_id", "id1", "id_1",
	"start", "head", "target"}

// looksLikeHeader compares the first two lines, which are one if there is no other: a
// header has no numbers where the next line has some, or it has the usual words.
func looksLikeHeader(lay layout, first, second []byte) bool {
	names := lay.split(bytes.Clone(first))
	if named(names, sourceNames) >= 0 && named(names, targetNames) >= 0 {
		return true
	}
	whole := bytes.Clone(second) // fields are taken off in place
	a, _ := lay.next(first)
	b, _ := lay.next(second)
	return slices.Contains(headerWords, strings.ToLower(string(a))) || (!isNumber(a) && isNumber(b)) ||
		wordsAboveNumbers(names, lay.split(bytes.Clone(whole)))
}

// wordsAboveNumbers tells whether the first row has words where the second has numbers, and no number itself.
func wordsAboveNumbers(first, second []string) bool {
	above := false
	for i, s := range first {
		if isNumber([]byte(s)) {
			return false
		}
		above = above || i < len(second) && isNumber([]byte(second[i])) && !table.IsMissing(s)
	}
	return above
}

// plainEnds refuses a header of several columns whose names do not tell which are the ends of an edge: the first two may
// be a transaction and its payer.
func plainEnds(path string, names []string) error {
	if named(names, sourceNames) >= 0 || named(names, targetNames) >= 0 || slices.Contains(headerWords, strings.ToLower(names[0])) {
		return nil
	}
	var may []string
	for _, name := range names {
		if name != "" && !slices.Contains(weightNames, strings.ToLower(name)) {
			may = append(may, name)
		}
	}
	if len(may) < 3 {
		return nil
	}
	return badFile(path, "line 1", fmt.Sprintf("columns called %.200s, none of them source or target", strings.Join(may, ", ")),
		"two columns of ids, or names such as source and target",
		fmt.Sprintf("say which they are: starling import table %s --src %s --dst %s", path, may[0], may[1]))
}

// isNumber also accepts numbers that are too large for an id or have a fraction, but not "inf".
func isNumber(b []byte) bool {
	_, err := strconv.ParseFloat(string(b), 64)
	return !errors.Is(err, strconv.ErrSyntax) && bytes.ContainsAny(b, "0123456789")
}

// next splits the first field off a line. Quotes around a field are removed, and of
// doubled ones inside it one, in place: a line can be split once.
func (l layout) next(line []byte) (field, rest []byte) {
	if l.delim == 0 {
		line = bytes.TrimLeft(line, " \t")
	}
	if field, rest, ok := l.unquote(line); ok {
		if at := l.index(rest); at >= 0 {
			return field, rest[at+1:]
		}
		return field, nil
	}
	at := l.index(line)
	if at < 0 {
		return bytes.TrimSpace(line), nil
	}
	return bytes.TrimSpace(line[:at]), line[at+1:]
}

// unquote splits off a field in quotes.
func (l layout) unquote(line []byte) (field, rest []byte, ok bool) {
	at := l.endOfQuotes(line)
	if at < 0 {
		return nil, nil, false
	}
	field, rest = line[1:at], line[at+1:]
	if bytes.IndexByte(field, '"') >= 0 {
		field = append(field[:0], bytes.ReplaceAll(field, []byte(`""`), []byte(`"`))...)
	}
	return field, rest, true
}

// endOfQuotes is where the quotes end in which the first field is; -1: it is in none, or
// more than the field is: then they are part of a name.
func (l layout) endOfQuotes(line []byte) int {
	if len(line) == 0 || line[0] != '"' {
		return -1
	}
	for at := 1; at < len(line); at++ {
		switch {
		case line[at] != '"':
		case at+1 < len(line) && line[at+1] == '"':
			at++
		default:
			rest := line[at+1:]
			if l.delim != 0 {
				rest = bytes.TrimLeft(rest, " ")
			}
			if len(rest) == 0 || l.index(rest) == 0 {
				return at
			}
			return -1
		}
	}
	return -1
}

// torn tells whether the first field begins with quotes that do not end with it. In CSV that is
// a mistake, or a field of several lines; elsewhere names may begin with quotes.
func (l layout) torn(line []byte) bool {
	return len(line) > 0 && line[0] == '"' && (l.delim == ',' || l.delim == ';') && l.endOfQuotes(line) < 0
}

// plain splits a line of two fields without spaces and quotes, as
// nearly all lines are.
func (l layout) plain(line []byte) (u, v []byte, ok bool) {
	at := bytes.IndexByte(line, l.delim)
	if l.delim == 0 || l.at != nil || at < 1 || at+1 == len(line) {
		return nil, nil, false
	}
	u, v = line[:at], line[at+1:]
	return u, v, inside(u[0]) && inside(u[at-1]) && inside(v[0]) && inside(v[len(v)-1]) &&
		bytes.IndexByte(v, l.delim) < 0
}

// inside tells whether a byte can only be part of a name.
func inside(c byte) bool { return c > '%' && c < 0x7f }

// edge splits off the source and the target of a line; the weight begins the tail. It is
// torn if one of these fields is.
func (l layout) edge(line []byte) (u, v, tail []byte, torn bool) {
	if l.at == nil {
		torn = l.torn(line)
		u, tail = l.next(line)
		torn = torn || l.torn(tail)
		v, tail = l.next(tail)
		return u, v, tail, torn
	}
	for i := 0; i <= max(l.at[0], l.at[1], l.at[2]) && len(line) > 0; i++ {
		var field []byte
		torn = torn || l.torn(line)
		if i == l.at[2] {
			tail = line
		}
		field, line = l.next(line)
		switch i {
		case l.at[0]:
			u = field
		case l.at[1]:
			v = field
		}
	}
	return u, v, tail, torn
}

func (l layout) index(line []byte) int {
	if l.delim == 0 {
		return bytes.IndexAny(line, " \t")
	}
	return bytes.IndexByte(line, l.delim)
}

func (l layout) count(line []byte) (n int) {
	for rest := line; len(rest) > 0; n++ {
		_, rest = l.next(rest)
	}
	return n
}

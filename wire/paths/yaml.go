package paths

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"starling/internal/yamltext"
)

// Error is a mistake in a file: its line and field, what was found there, what is expected and what to do.
type Error struct {
	Line  int    // 0: the file as a whole
	Field string // such as paths[1].stops
	Found string
	Want  string
	Fix   string
}

// Error joins the parts in reading order.
func (e *Error) Error() string {
	var parts []string
	if place := e.Place(); place != "" {
		parts = append(parts, place)
	}
	text := "found " + e.Found
	if e.Want != "" {
		text += ", want " + e.Want
	}
	if e.Fix != "" {
		text += "; " + e.Fix
	}
	return strings.Join(append(parts, text), ": ")
}

// Place is the line and field.
func (e *Error) Place() string {
	switch {
	case e.Line == 0:
		return e.Field
	case e.Field == "":
		return fmt.Sprintf("line %d", e.Line)
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Field)
}

// value is a node of the file and where it stands.
type value struct {
	node  ast.Node
	field string
	line  int
}

func (v value) wrong(found, want, fix string) error { return &Error{v.line, v.field, found, want, fix} }

// open parses the text of a file, after its size was checked.
func open(text []byte) (value, error) {
	if found, want := yamltext.Excess(text); found != "" {
		return value{}, &Error{0, "", found, want, "describe one host's hardware in one file"}
	}
	f, err := parser.ParseBytes(text, 0)
	if err != nil {
		return value{}, syntaxError(err)
	}
	var docs []ast.Node
	for _, d := range f.Docs {
		if d.Body != nil {
			docs = append(docs, d.Body)
		}
	}
	if len(docs) != 1 {
		return value{}, &Error{0, "", fmt.Sprintf("%d YAML documents", len(docs)), "one", ""}
	}
	return at(docs[0], ""), nil
}

// syntaxError is the first line of a parser's error, which begins with [line:column].
func syntaxError(err error) error {
	text, _, _ := strings.Cut(err.Error(), "\n")
	place, rest, ok := strings.Cut(strings.TrimPrefix(text, "["), "] ")
	line, _, _ := strings.Cut(place, ":")
	n, _ := strconv.Atoi(line)
	if !ok || n == 0 {
		return &Error{0, "", "no YAML: " + text, "fields and values", ""}
	}
	return &Error{n, "", "no YAML: " + rest, "fields and values", ""}
}

func at(n ast.Node, field string) value {
	v := value{node: n, field: field}
	if n != nil && n.GetToken() != nil && n.GetToken().Position != nil {
		v.line = n.GetToken().Position.Line
	}
	return v
}

// fields returns the fields of a mapping. Every field must be among known.
func (v value) fields(known ...string) (map[string]value, error) {
	var pairs []*ast.MappingValueNode
	switch n := v.node.(type) {
	case *ast.MappingNode:
		pairs = n.Values
	case *ast.MappingValueNode:
		pairs = []*ast.MappingValueNode{n}
	default:
		return nil, v.wrong(v.describe(), "fields: "+strings.Join(known, ", "), "")
	}
	out := map[string]value{}
	for _, p := range pairs {
		name := p.Key.GetToken().Value
		inner := at(p.Value, strings.TrimPrefix(v.field+"."+name, "."))
		inner.line = p.Key.GetToken().Position.Line
		if !slices.Contains(known, name) {
			return nil, inner.wrong("an unknown field", "one of "+strings.Join(known, ", "), "")
		}
		if _, twice := out[name]; twice {
			return nil, inner.wrong("the field twice", "it once", "")
		}
		out[name] = inner
	}
	return out, nil
}

// list is the entries of a sequence.
func (v value) list() ([]value, error) {
	n, ok := v.node.(*ast.SequenceNode)
	if !ok {
		return nil, v.wrong(v.describe(), "a list", "")
	}
	out := make([]value, len(n.Values))
	for i, x := range n.Values {
		out[i] = at(x, fmt.Sprintf("%s[%d]", v.field, i))
	}
	return out, nil
}

// text is a value as it was written.
func (v value) text() (string, error) {
	switch n := v.node.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, nil
	}
	return "", v.wrong(v.describe(), "one value", "")
}

// scaled is a number with a unit.
func (v value) scaled(units []unit, want string) (float64, error) {
	s, err := v.text()
	if err != nil {
		return 0, err
	}
	x, ok := scaled(s, units)
	if !ok {
		return 0, v.wrong(strconv.Quote(s), want, "")
	}
	return x, nil
}

// scaledList is a list of n such numbers, or one for all.
func (v value) scaledList(n int, units []unit, want string) ([]float64, error) {
	out := make([]float64, n)
	if _, many := v.node.(*ast.SequenceNode); !many {
		x, err := v.scaled(units, want)
		for i := range out {
			out[i] = x
		}
		return out, err
	}
	entries, err := v.list()
	if err != nil {
		return nil, err
	}
	if len(entries) != n {
		return nil, v.wrong(fmt.Sprintf("%d values", len(entries)), fmt.Sprintf("%d, or one for all", n), "")
	}
	for i, x := range entries {
		if out[i], err = x.scaled(units, want); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// describe says what kind of YAML stands there.
func (v value) describe() string {
	switch v.node.(type) {
	case nil, *ast.NullNode:
		return "nothing"
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.AliasNode, *ast.AnchorNode:
		return "an alias"
	}
	return strconv.Quote(v.node.GetToken().Value)
}

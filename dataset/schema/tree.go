package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"starling/graph"
	"starling/internal/yamltext"
)

// tree is a value of YAML or JSON and where it stands.
type tree struct {
	kind   treeKind
	text   string // of a scalar
	list   []*tree
	names  []string // of fields
	fields []*tree

	file, field string
	line        int
}

type treeKind int

const (
	isNull treeKind = iota
	isScalar
	isList
	isFields
)

func (t *tree) place() place {
	field := t.field
	if t.line > 0 {
		field = strings.TrimSuffix(fmt.Sprintf("line %d: %s", t.line, t.field), ": ")
	}
	return place{t.file, field}
}

func (t *tree) wrong(found, want, fix string) error { return t.place().wrong(found, want, fix) }

// describe is what a value is, for messages.
func (t *tree) describe() string {
	switch t.kind {
	case isNull:
		return "nothing"
	case isScalar:
		return fmt.Sprintf("%.60q", t.text)
	case isList:
		return fmt.Sprintf("a list of %d", len(t.list))
	}
	return "fields"
}

// get is a field's value; nil: there is none.
func (t *tree) get(name string) *tree {
	if i := slices.Index(t.names, name); i >= 0 {
		return t.fields[i]
	}
	return nil
}

// only refuses fields that are not known.
func (t *tree) only(known ...string) error {
	if t.kind != isFields {
		return t.wrong(t.describe(), "fields: "+strings.Join(known, ", "), "")
	}
	for i, name := range t.names {
		if !slices.Contains(known, name) {
			return t.fields[i].wrong("an unknown field", "one of "+strings.Join(known, ", "), suggest(name, known, ""))
		}
	}
	return nil
}

// scalar is the text of a value; "": there is none.
func (t *tree) scalar() (string, error) {
	if t == nil || t.kind == isNull {
		return "", nil
	}
	if t.kind != isScalar {
		return "", t.wrong(t.describe(), "one value", "")
	}
	return t.text, nil
}

// scalars is a value or a list of them.
func (t *tree) scalars() (out []string, err error) {
	if t == nil || t.kind == isNull {
		return nil, nil
	}
	if t.kind == isScalar {
		return []string{t.text}, nil
	}
	if t.kind != isList {
		return nil, t.wrong(t.describe(), "a value or a list of them", "")
	}
	for _, x := range t.list {
		text, err := x.scalar()
		if err != nil {
			return nil, err
		}
		out = append(out, text)
	}
	return out, nil
}

// yes is a value that is true or false.
func (t *tree) yes() (bool, error) {
	text, err := t.scalar()
	switch {
	case err != nil || text == "" || text == "false":
		return false, err
	case text == "true":
		return true, nil
	}
	return false, t.wrong(t.describe(), "true or false", "")
}

// parseFile reads YAML or JSON.
func parseFile(path string) (*tree, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, &graph.InputError{File: path, Found: "no such file", Want: "a schema", Fix: "check the path"}
	}
	if begin := bytes.TrimSpace(b); len(begin) > 0 && begin[0] == '{' && (strings.HasSuffix(path, ".json") ||
		json.Valid(b)) {
		return parseJSON(path, b)
	}
	return parseYAML(path, b)
}

func parseYAML(path string, b []byte) (*tree, error) {
	if found, want := yamltext.Excess(b); found != "" {
		return nil, place{path, ""}.wrong(found, want, "divide the schema into files with include")
	}
	f, err := parser.ParseBytes(b, 0, parser.AllowDuplicateMapKey()) // add refuses them
	if err != nil {
		text, _, _ := strings.Cut(err.Error(), "\n")
		at, rest, _ := strings.Cut(strings.TrimPrefix(text, "["), "] ")
		line, _, _ := strings.Cut(at, ":")
		return nil, place{path, "line " + line}.wrong("no YAML: "+rest, "fields and values",
			"names with *, : or # in them need quotes")
	}
	var docs []ast.Node
	for _, d := range f.Docs {
		if d.Body != nil {
			docs = append(docs, d.Body)
		}
	}
	if len(docs) != 1 {
		return nil, place{path, ""}.wrong(fmt.Sprintf("%d YAML documents", len(docs)), "one, with nodes and edges",
			"write the types of vertices under nodes and the relations under edges")
	}
	return fromYAML(path, "", docs[0])
}

// fromYAML converts a node of YAML.
func fromYAML(file, field string, n ast.Node) (*tree, error) {
	t := &tree{file: file, field: field}
	if n == nil {
		return t, nil
	}
	if token := n.GetToken(); token != nil && token.Position != nil {
		t.line = token.Position.Line
	}
	switch n := n.(type) {
	case *ast.NullNode:
	case *ast.MappingNode:
		return t, t.addYAML(n.Values)
	case *ast.MappingValueNode:
		return t, t.addYAML([]*ast.MappingValueNode{n})
	case *ast.SequenceNode:
		t.kind = isList
		for i, v := range n.Values {
			inner, err := fromYAML(file, fmt.Sprintf("%s[%d]", field, i), v)
			if err != nil {
				return nil, err
			}
			t.list = append(t.list, inner)
		}
	case *ast.StringNode:
		t.kind, t.text = isScalar, n.Value
	case ast.ScalarNode:
		t.kind, t.text = isScalar, n.GetToken().Value
	default:
		return nil, t.wrong(fmt.Sprintf("%.60q", n.String()), "plain values, lists and fields",
			"put what begins with * or & into quotes")
	}
	return t, nil
}

func (t *tree) addYAML(pairs []*ast.MappingValueNode) error {
	t.kind = isFields
	for _, p := range pairs {
		name := p.Key.GetToken().Value
		if key, ok := p.Key.(*ast.StringNode); ok {
			name = key.Value
		}
		inner, err := fromYAML(t.file, strings.TrimPrefix(t.field+"."+name, "."), p.Value)
		if err != nil {
			return err
		}
		inner.line = p.Key.GetToken().Position.Line
		if err := t.add(name, inner); err != nil {
			return err
		}
	}
	return nil
}

// add refuses a field that is there already.
func (t *tree) add(name string, inner *tree) error {
	if slices.Contains(t.names, name) {
		return inner.wrong("it a second time", "every name once", "rename one of the two, or remove it")
	}
	t.names, t.fields = append(t.names, name), append(t.fields, inner)
	return nil
}

func parseJSON(path string, b []byte) (*tree, error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	t, err := fromJSON(path, "", b, d)
	if err == nil {
		return t, nil
	}
	if in, ok := err.(*graph.InputError); ok {
		return nil, in
	}
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	line := 1 + bytes.Count(b[:min(d.InputOffset(), int64(len(b)))], []byte("\n"))
	return nil, place{path, fmt.Sprintf("line %d", line)}.wrong("no JSON: "+err.Error(), "fields and values",
		"correct it")
}

// fromJSON converts the next value. Nesting is bounded by the fields that are read.
func fromJSON(file, field string, b []byte, d *json.Decoder) (*tree, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	t := &tree{file: file, field: field, line: 1 + bytes.Count(b[:d.InputOffset()], []byte("\n"))}
	if strings.Count(field, ".")+strings.Count(field, "[") > yamltext.MaxDepth {
		return nil, t.wrong("lists inside lists", fmt.Sprintf("at most %d levels", yamltext.MaxDepth), "")
	}
	switch x := token.(type) {
	case json.Delim:
		return t, t.addJSON(x == '{', b, d)
	case nil:
	default:
		t.kind, t.text = isScalar, fmt.Sprint(x)
	}
	return t, nil
}

func (t *tree) addJSON(fields bool, b []byte, d *json.Decoder) error {
	if t.kind = isList; fields {
		t.kind = isFields
	}
	for d.More() {
		field, name := fmt.Sprintf("%s[%d]", t.field, len(t.list)), ""
		if fields {
			key, err := d.Token()
			if err != nil {
				return err
			}
			name = fmt.Sprint(key)
			field = strings.TrimPrefix(t.field+"."+name, ".")
		}
		inner, err := fromJSON(t.file, field, b, d)
		if err != nil {
			return err
		}
		if !fields {
			t.list = append(t.list, inner)
		} else if err := t.add(name, inner); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}

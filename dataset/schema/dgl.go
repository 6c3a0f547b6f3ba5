package schema

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"starling/dataset/table"
)

// DGL's CSVDataset, a folder with meta.yaml:
//
//	dataset_name: mag
//	node_data: [{file_name: papers.csv, ntype: paper}, {file_name: authors.csv, ntype: author}]
//	edge_data: [{file_name: writes.csv, etype: [author, writes, paper]}]
//
// Columns are node_id, or src_id and dst_id, unless node_id_field and the like say otherwise, and those that have a
// meaning here: feat (without it all columns of numbers), label, train_mask, val_mask and test_mask. Lists are in quotes.
// One type and one relation are a graph without types, whose edges may have weight and feat. All edges are kept, as DGL
// does.

// dglIn is the file of DGL in a folder; "": there is none.
func dglIn(dir string) string {
	for _, name := range []string{"meta.yaml", "metadata.json"} {
		path := filepath.Join(dir, name)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	return ""
}

// isDGL tells whether a file is meta.yaml of a CSVDataset.
func isDGL(t *tree) bool { return t.get("dataset_name") != nil && t.get("edge_data") != nil }

// The type and relation that DGL calls those without a name.
const (
	dglType     = "_V"
	dglRelation = "_E"
)

func (s *Schema) dglCSV(t *tree) error {
	err := t.only("version", "dataset_name", "separator", "node_data", "edge_data", "graph_data")
	if err != nil {
		return err
	}
	if s.Name, err = t.get("dataset_name").scalar(); err != nil {
		return err
	}
	if g := t.get("graph_data"); g != nil && g.kind != isNull {
		return g.wrong("data of several graphs", "one graph", "write each graph to a folder of its own, without graph_data")
	}
	version, err := t.get("version").scalar()
	if err == nil && version != "" && version != "1.0.0" {
		err = t.get("version").wrong(version, "1.0.0", "write the folder for that version")
	}
	if err != nil {
		return err
	}
	comma, err := separator(t.get("separator"), ',')
	if err != nil {
		return err
	}
	for _, x := range []struct {
		name string
		read func(*tree, rune) error
	}{{"node_data", s.dglNode}, {"edge_data", s.dglEdge}} {
		list := t.get(x.name)
		if list == nil || list.kind != isList {
			return t.wrong("no list "+x.name, "the files with their types", "add it")
		}
		for _, entry := range list.list {
			if err := x.read(entry, comma); err != nil {
				return err
			}
		}
	}
	s.dglUntyped()
	return nil
}

// separator is one character.
func separator(t *tree, usual rune) (rune, error) {
	text, err := t.scalar()
	if err != nil || text == "" {
		return usual, err
	}
	if r, n := utf8.DecodeRuneInString(text); n == len(text) && r != '"' && r != '\n' {
		return r, nil
	}
	return 0, t.wrong(fmt.Sprintf("%.20q", text), "one character", "for example ,")
}

// dglTable opens the file of an entry.
func dglTable(x *tree, comma rune) (t *table.Table, s Source, err error) {
	name, err := x.get("file_name").scalar()
	if err != nil {
		return nil, s, err
	}
	if name == "" {
		return nil, s, x.wrong("no file_name", "the file of the table", "add it")
	}
	s = Source{Files: []string{besides(x.file, name)}, Header: "yes", Separator: comma}
	t, err = s.open()
	return t, s, err
}

// field is the column that an entry names, or the usual one; "": the table has not that one.
func dglField(x *tree, field, usual string, t *table.Table) (string, error) {
	name, err := x.get(field).scalar()
	if err != nil || name != "" {
		return name, err
	}
	if t.Find(usual) == nil {
		return "", nil
	}
	return usual, nil
}

func (s *Schema) dglNode(x *tree, comma rune) (err error) {
	if err := x.only("file_name", "ntype", "graph_id_field", "node_id_field"); err != nil {
		return err
	}
	n := Node{at: x.place(), why: map[string]string{}}
	if n.Name, err = x.get("ntype").scalar(); err != nil {
		return err
	}
	if n.Name == "" {
		n.Name = dglType
	}
	t, source, err := dglTable(x, comma)
	if err != nil {
		return err
	}
	n.Table = source
	if n.ID, err = dglField(x, "node_id_field", "node_id", t); err != nil {
		return err
	}
	if n.ID == "" {
		return n.at.wrong("no column node_id in "+t.Pattern, "the column of ids", "add it, or name another with node_id_field")
	}
	if n.Graph, err = dglField(x, "graph_id_field", "graph_id", t); err != nil {
		return err
	}
	n.dglColumns(t.Columns, func(string) Source { return Source{} })
	s.Nodes = append(s.Nodes, n)
	return nil
}

// dglColumns says what becomes of columns, by their names; of finds the files of those that are not in the type's own.
func (n *Node) dglColumns(columns []table.Column, of func(name string) Source) {
	split, masks := &Split{at: n.at}, []string{"train_mask", "val_mask", "test_mask"}
	labelled := slices.ContainsFunc(columns, func(c table.Column) bool { return c.Name == "label" })
	feat := slices.ContainsFunc(columns, func(c table.Column) bool { return c.Name == "feat" })
	for _, c := range columns {
		mask := slices.Index(masks, c.Name)
		switch {
		case c.Name == n.ID || c.Name == n.Graph:
		case c.Name == "label":
			n.Label = &Label{Table: of(c.Name), Col: c.Name, at: n.at}
		case mask >= 0 && labelled:
			split.Masks[mask] = &Mask{Table: of(c.Name), Col: c.Name}
			n.Split = split
		case mask >= 0:
			n.why[c.Name] = "there is no label"
		case c.Name == "" || strings.Contains(c.Name, "Unnamed"):
			n.why[c.Name] = "it has no name"
		case feat && c.Name != "feat":
			n.why[c.Name] = "feat has the features"
		case c.Kind == table.Text || c.Kind == table.Time:
			n.why[c.Name] = "no numbers"
		default:
			n.Features = append(n.Features, Feature{Table: of(c.Name), Col: c.Name, at: n.at})
		}
	}
}

func (s *Schema) dglEdge(x *tree, comma rune) (err error) {
	if err := x.only("file_name", "etype", "graph_id_field", "src_id_field", "dst_id_field"); err != nil {
		return err
	}
	e := Edge{Source: dglType, Name: dglRelation, Target: dglType, at: x.place()}
	names, err := x.get("etype").scalars()
	switch {
	case err != nil:
		return err
	case len(names) == 3 && !slices.Contains(names, ""):
		e.Source, e.Name, e.Target = names[0], names[1], names[2]
	case names != nil:
		return x.wrong(fmt.Sprintf("%q as its etype", names), "[source type, name, target type]", "correct it")
	}
	t, source, err := dglTable(x, comma)
	if err != nil {
		return err
	}
	e.Table = source
	for _, end := range []struct {
		name string
		to   *string
	}{{"src_id", &e.Src}, {"dst_id", &e.Dst}, {"graph_id", &e.Graph}} {
		if *end.to, err = dglField(x, end.name+"_field", end.name, t); err != nil {
			return err
		}
		if *end.to == "" && end.to != &e.Graph {
			return e.at.wrong("no column "+end.name+" in "+t.Pattern, "the columns of source and target ids",
				"add it, or name another with "+end.name+"_field")
		}
	}
	e.Untyped = &UntypedEdge{Repeats: "keep", SelfLoops: true, why: map[string]string{}}
	for _, c := range t.Columns {
		switch number := c.Kind == table.Whole || c.Kind == table.Real; {
		case c.Name == "weight" && number:
			e.Untyped.Weight = c.Name
		case c.Name == "feat" && (number || c.Kind == table.Vector):
			e.Untyped.Features = append(e.Untyped.Features, Feature{Col: c.Name, at: e.at})
		default:
			e.Untyped.why[c.Name] = "of edges weight and feat are taken"
		}
	}
	s.Edges = append(s.Edges, e)
	return nil
}

// dglUntyped makes one type and one relation a graph without types, and drops of others what only edges of such a
// graph have.
func (s *Schema) dglUntyped() {
	if len(s.Nodes) == 1 && len(s.Edges) == 1 && s.Edges[0].Source == s.Nodes[0].Name && s.Edges[0].Target == s.Nodes[0].Name {
		s.Untyped, s.Nodes[0].Name = true, ""
		return
	}
	for i := range s.Edges {
		s.Edges[i].Untyped = nil
	}
}

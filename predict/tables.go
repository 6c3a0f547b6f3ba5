package predict

import (
	"os"
	"path/filepath"
	"slices"

	"starling/dataset/schema"
	"starling/graph"
	"starling/serve"
	"starling/setup"
	"starling/spec"
)

// isTable tells whether what is predicted for is a table of vertices or a schema of tables, and no folder of a dataset.
func isTable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// isSchema tells whether a file is a schema of tables.
func isSchema(path string) bool {
	return isTable(path) && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path))
}

// checkTables refuses a table without edges, and edges without one.
func (o *Options) checkTables() error {
	table := isTable(o.Dataset)
	switch {
	case isSchema(o.Dataset) && (o.Edges != "" || o.Features != nil):
		return spec.Mistake("--edges, --features", "one of them, with a schema", "the schema alone, which names all files",
			"leave it out")
	case isSchema(o.Dataset):
		return nil
	case table && o.Edges == "":
		return spec.Mistake("--edges", "nothing", "a table of the edges between the vertices of "+o.Dataset,
			"with the columns that the run was trained on")
	case !table && o.Edges != "":
		return spec.Mistake("--edges", o.Edges+", with a folder", "a table of vertices instead of the folder", "leave it out")
	case !table && o.Features != nil:
		return spec.Mistake("--features", "files, with a folder", "a table of vertices instead of the folder", "leave it out")
	}
	return nil
}

// schema says what the tables are.
func (o *Options) schema(t *serve.Trained) (*schema.Schema, error) {
	typed := t.Config.Model.Typed != nil
	switch {
	case typed && !isSchema(o.Dataset):
		return nil, spec.Mistake("DIR", o.Dataset+", one table, and a model of a typed graph", "a schema of its tables",
			"name a file that ends in .yaml, as starling import schema takes it")
	case typed:
		s, err := schema.Read(o.Dataset)
		if err == nil {
			s.Like = t.Config.Preparation
		}
		return s, err
	case isSchema(o.Dataset):
		return nil, spec.Mistake("DIR", o.Dataset+", a schema, and a model of a graph without types", "a table of vertices",
			"name it, and the edges with --edges")
	}
	c := &schema.Columns{Edges: o.Edges, Vertices: o.Dataset, Like: t.Config.Preparation, LikeFeatures: o.Features}
	return c.Schema()
}

// prepared refuses a run that does not know how tables became its dataset.
func (o *Options) prepared(t *serve.Trained) error {
	if t.Config.Preparation != nil {
		return nil
	}
	return &graph.InputError{File: o.Run, Found: "a run whose dataset was not read from tables",
		Want: "a run of a dataset of import table or import schema", Fix: "import the tables, and predict for the folder"}
}

// imported makes a dataset of tables, exactly as that of the run was made. It is in a temporary folder.
func (o *Options) imported(t *serve.Trained) (dir string, notes []string, remove func(), err error) {
	if err := o.prepared(t); err != nil {
		return "", nil, nil, err
	}
	s, err := o.schema(t)
	if err != nil {
		return "", nil, nil, err
	}
	p, err := s.Plan()
	if err != nil {
		return "", nil, nil, err
	}
	folder, remove, err := setup.TemporaryFolder()
	if err != nil {
		return "", nil, nil, err
	}
	dir = filepath.Join(folder, "data")
	sum, err := p.Import(schema.Options{Name: filepath.Base(o.Dataset)}, dir)
	if err != nil {
		remove()
		return "", nil, nil, err
	}
	return dir, sum.Notes, remove, nil
}

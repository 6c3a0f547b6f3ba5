package predict

import (
	"os"
	"path/filepath"

	"starling/dataset/schema"
	"starling/graph"
	"starling/serve"
	"starling/setup"
	"starling/spec"
)

// isTable tells whether what is predicted for is a table of vertices, and no folder of a dataset.
func isTable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && !info.IsDir()
}

// checkTables refuses a table without edges, and edges without one.
func (o *Options) checkTables() error {
	table := isTable(o.Dataset)
	switch {
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

// imported makes a dataset of tables, exactly as that of the run was made. It is in a temporary folder.
func (o *Options) imported(t *serve.Trained) (dir string, notes []string, remove func(), err error) {
	if t.Config.Preparation == nil {
		return "", nil, nil, &graph.InputError{File: o.Run, Found: "a run whose dataset was not read from tables",
			Want: "a run of a dataset of import table", Fix: "import the tables, and predict for the folder"}
	}
	c := &schema.Columns{Edges: o.Edges, Vertices: o.Dataset, Like: t.Config.Preparation, LikeFeatures: o.Features}
	s, err := c.Schema()
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

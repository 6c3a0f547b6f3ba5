package predict

import (
	"path/filepath"
	"slices"
	"time"

	"starling/dataset/schema"
	"starling/graph"
	"starling/serve"
	"starling/setup"
	"starling/spec"
	"starling/tensor"
)

// checkGraph refuses a graph to add vertices to where none are added.
func (o *Options) checkGraph() error {
	switch {
	case o.Graph == "":
		return nil
	case !isSchema(o.Dataset):
		return spec.Mistake("--graph", o.Graph+", with "+o.Dataset, "a schema (.yaml) of the vertices that it gets",
			"name one instead of "+o.Dataset)
	case o.What == serve.Scores:
		return spec.Mistake("--graph", "it with --what scores", "labels, probabilities or embeddings of new vertices", "")
	}
	return nil
}

// predictAdded predicts for vertices that a graph gets, as if it had had them from the start.
func (o Options) predictAdded() (*Predicted, error) {
	start := time.Now()
	trained, err := o.open()
	if err != nil {
		return nil, err
	}
	if trained.Config.Model.Typed == nil {
		return nil, spec.Mistake("--graph", "it with a model of --model "+trained.Config.Model.Model, "a model of a typed graph",
			"starling serve takes new vertices of other graphs")
	}
	known, err := openForPrediction(o.Graph, trained)
	if err != nil {
		return nil, err
	}
	defer known.Close()
	if err := trained.Suits(known, o.What); err != nil {
		return nil, err
	}
	g, notes, remove, err := o.grown(trained, known)
	if err != nil {
		return nil, err
	}
	defer remove()
	out, err := o.ofAdded(trained, g)
	if err != nil {
		return nil, err
	}
	out.Notes = append(notes, out.Notes...)
	out.Seconds, out.RSS = time.Since(start).Seconds(), tensor.PeakRSS()
	return out, nil
}

// ofAdded predicts and writes.
func (o *Options) ofAdded(trained *serve.Trained, g *graph.Grown) (*Predicted, error) {
	s := o.onDevice()
	dev, err := setup.NewDevice(&s, 0)
	if err != nil {
		return nil, err
	}
	defer dev.Close()
	p, err := trained.PredictAdded(dev, g, o.What)
	if lost := graph.Shrunk(); lost != nil {
		err = lost
	}
	if err != nil {
		return nil, err
	}
	out := &Predicted{Run: o.Run, Dataset: g.Added.Meta.Name, Model: trained.Config.Model.Model, What: o.What, Out: o.Out,
		Target: trained.OfType()}
	if err := out.write(p, g.Added); err != nil {
		return nil, err
	}
	out.IDs = "" // rows have the order of the table
	for _, t := range g.Added.Meta.Schema.Types {
		if t.Features == nil {
			out.Notes = append(out.Notes, t.Name+": new vertices have the mean of the rows that were learnt")
		}
	}
	return out, nil
}

// grown reads the tables of what is added, into a temporary folder.
func (o *Options) grown(t *serve.Trained, known *graph.Dataset) (g *graph.Grown, notes []string, remove func(), err error) {
	if err := o.prepared(t); err != nil {
		return nil, nil, nil, err
	}
	s, err := schema.ReadAdded(o.Dataset, known.Meta.Schema)
	if err != nil {
		return nil, nil, nil, err
	}
	if s.Like = t.Config.Preparation; s.Untyped {
		return nil, nil, nil, spec.Mistake("DIR", o.Dataset+", a schema of a graph without types", "types of vertices under nodes",
			"see docs/typed-graphs.md")
	}
	p, err := s.Plan()
	if err != nil {
		return nil, nil, nil, err
	}
	folder, removeFolder, err := setup.TemporaryFolder()
	if err != nil {
		return nil, nil, nil, err
	}
	dir := filepath.Join(folder, "data")
	sum, edges, err := p.ImportAdded(schema.Options{Name: filepath.Base(o.Dataset)}, known, dir)
	var added *graph.Dataset
	if err == nil {
		added, err = graph.OpenWith(dir, graph.OpenOptions{CheckFeatures: true})
	}
	if err != nil {
		removeFolder()
		return nil, nil, nil, err
	}
	added.Dir = o.Dataset // for messages
	remove = func() {
		added.Close()
		removeFolder()
	}
	return graph.Grow(known, added, edges), slices.Clone(sum.Notes), remove, nil
}

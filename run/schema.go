package run

import (
	"context"

	"starling/dataset"
	"starling/dataset/schema"
	"starling/event"
	"starling/graph"
	"starling/setup"
)

// schemaFormat is the format of typed graphs, which a schema describes.
const schemaFormat = "schema"

// planSchema opens the tables of a schema, and refuses options that it says itself.
func planSchema(src string, opt ImportOptions) (*schema.Plan, error) {
	switch {
	case opt.KeepDuplicates || opt.KeepSelfLoops:
		return nil, &graph.InputError{Field: "--keep-duplicates, --keep-self-loops",
			Found: "a setting without effect on schema", Want: "neither: typed graphs keep all edges"}
	case opt.FeaturesFrom != "" || opt.Task != "":
		return nil, &graph.InputError{Field: "--features-from, --task", Found: "a setting without effect on schema",
			Want: "neither", Fix: "rows of types without features are learnt; the schema says task: of a label"}
	}
	if err := opt.Check(schemaFormat); err != nil {
		return nil, err
	}
	s, err := schema.Read(src)
	if err != nil {
		return nil, err
	}
	if opt.Symmetrize {
		s.Symmetrize()
	}
	return s.Plan()
}

// CheckSchema says what every column of a schema's tables becomes, by the heads of the files.
func CheckSchema(format, src string, opt ImportOptions) ([]string, error) {
	if format != schemaFormat {
		return nil, &graph.InputError{Field: "--check", Found: "a setting without effect on " + format,
			Want: "it only for schema"}
	}
	p, err := planSchema(src, opt)
	if err != nil {
		return nil, err
	}
	return p.Lines(), nil
}

func importSchema(ctx context.Context, src string, opt ImportOptions, out string, events event.Listener) (Summary,
	error) {
	p, err := planSchema(src, opt)
	if err != nil {
		return Summary{}, err
	}
	return setup.InStages(ctx, out, events, func(report dataset.Progress) (Summary, error) {
		return p.Import(schema.Options{Name: opt.Name, Seed: opt.Seed, Overwrite: opt.Overwrite, Progress: report}, out)
	})
}

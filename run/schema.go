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

// untypedFormat is a typed dataset whose types are dropped.
const untypedFormat = "untyped"

// importUntyped writes a typed dataset without its types.
func importUntyped(ctx context.Context, src string, opt ImportOptions, out string) (Summary, error) {
	if opt.Symmetrize || opt.KeepDuplicates || opt.KeepSelfLoops || opt.FeaturesFrom != "" || opt.Task != "" {
		return Summary{}, &graph.InputError{Field: "--symmetrize, --keep-duplicates, --keep-self-loops, --features-from, --task",
			Found: "a setting without effect on untyped", Want: "none of them: edges, labels and splits stay as they are"}
	}
	if err := opt.Check(untypedFormat); err != nil {
		return Summary{}, err
	}
	s, err := setup.UntilInterrupted(ctx, out, func() (*Summary, error) {
		s, err := schema.Untyped(src, schema.Options{Name: opt.Name, Overwrite: opt.Overwrite}, out)
		return &s, err
	})
	if err != nil {
		return Summary{}, err
	}
	return *s, nil
}

// planSchema opens the tables of a schema, and refuses options that it says itself.
func planSchema(format, src string, opt ImportOptions) (*schema.Plan, error) {
	if format == TableFormat {
		s, err := tableSchema(src, opt)
		if err != nil {
			return nil, err
		}
		return s.Plan()
	}
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
	if opt.Table.Like != "" {
		if s.Like, err = preparationOf(opt.Table.Like); err != nil {
			return nil, err
		}
	}
	return s.Plan()
}

// CheckSchema says what every column of a schema's tables becomes, by the heads of the files.
func CheckSchema(format, src string, opt ImportOptions) ([]string, error) {
	if format != schemaFormat && format != TableFormat {
		return nil, &graph.InputError{Field: "--check", Found: "a setting without effect on " + format,
			Want: "it only for schema and table"}
	}
	p, err := planSchema(format, src, opt)
	if err != nil {
		return nil, err
	}
	return p.Lines(), nil
}

func importSchema(ctx context.Context, format, src string, opt ImportOptions, out string, events event.Listener) (Summary,
	error) {
	p, err := planSchema(format, src, opt)
	if err != nil {
		return Summary{}, err
	}
	return setup.InStages(ctx, out, events, func(report dataset.Progress) (Summary, error) {
		return p.Import(schema.Options{Name: opt.Name, Seed: opt.Seed, Overwrite: opt.Overwrite, Progress: report,
			FeaturesFrom: opt.FeaturesFrom}, out)
	})
}

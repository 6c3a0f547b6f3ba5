package run

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"starling/dataset"
	"starling/dataset/generate"
	"starling/event"
	"starling/graph"
	"starling/setup"
	"starling/spec"
	"starling/train"
)

// Params describe a graph to generate, ImportOptions how to read files, Summary the dataset that
// was made.
type (
	Params        = generate.Params
	ImportOptions = dataset.ImportOptions
	Summary       = dataset.Summary
)

// DefaultParams are the parameters of starling generate without any flag.
func DefaultParams() Params { return generate.DefaultParams() }

// Kinds are the generators, Formats the importers, LikeNames the public datasets
// whose shape is known.
func Kinds() []string     { return append(generate.Kinds(), generate.TypedKind, generate.FraudKind) }
func Formats() []string   { return append(dataset.Formats(), TableFormat, schemaFormat, untypedFormat) }
func LikeNames() []string { return generate.LikeNames() }

// Like are the parameters of a graph with the published shape of a dataset.
func Like(name string, scale float64, symmetrize bool) (Params, error) {
	if !slices.Contains(LikeNames(), name) {
		return Params{}, spec.Mistake("--like", fmt.Sprintf("%q", name),
			"one of the datasets that starling generate --help lists", train.Suggest(name, LikeNames()))
	}
	return generate.Like(name, scale, symmetrize)
}

// LikeTyped are the parameters of a typed graph of a known shape, TypedNames these shapes.
func LikeTyped(name string, scale float64) (Params, error) {
	if !slices.Contains(TypedNames(), name) {
		return Params{}, spec.Mistake("--like", fmt.Sprintf("%q", name), "one of "+strings.Join(TypedNames(), ", "),
			train.Suggest(name, TypedNames()))
	}
	return generate.LikeTyped(name, scale)
}
func TypedNames() []string { return generate.TypedNames() }

// Generate draws a graph of a kind and writes it to the folder out.
func Generate(ctx context.Context, kind string, p Params, out string, events event.Listener) (Summary, error) {
	if !slices.Contains(Kinds(), kind) {
		return Summary{}, spec.Mistake("KIND", fmt.Sprintf("%q", kind), "sbm, rmat, er, typed or fraud", train.Suggest(kind, Kinds()))
	}
	if err := spec.CheckNotStdout("--out", out); err != nil {
		return Summary{}, err
	}
	if free, known := graph.DiskFree(filepath.Dir(filepath.Clean(out))); known && p.DiskBytes() > free {
		return Summary{}, spec.Mistake("--out", fmt.Sprintf("%s, on a disk with %s free", out, event.Bytes(free)),
			"about "+event.Bytes(p.DiskBytes())+" of free space", "choose another disk, or fewer --nodes, --edges "+
				"or --features; --bf16 halves these")
	}
	return setup.InStages(ctx, out, events, func(report dataset.Progress) (Summary, error) {
		p.Progress = report
		return generate.Dataset(kind, p, out)
	})
}

// GenerateTables draws a graph of a kind and writes its tables to the folder out.
func GenerateTables(ctx context.Context, kind string, p Params, out string, events event.Listener) (Summary, error) {
	if !slices.Contains(Kinds(), kind) {
		return Summary{}, spec.Mistake("KIND", fmt.Sprintf("%q", kind), "sbm, rmat or er", train.Suggest(kind, Kinds()))
	}
	if err := spec.CheckNotStdout("--out", out); err != nil {
		return Summary{}, err
	}
	return setup.InStages(ctx, out, events, func(report dataset.Progress) (Summary, error) {
		p.Progress = report
		return generate.Tables(kind, p, out)
	})
}

// FraudKind is the kind of which two tables are written.
const FraudKind = generate.FraudKind

// GenerateFraud writes the tables of FraudKind to the folder out, and says what they hold.
func GenerateFraud(p Params, out string) (text string, err error) {
	if err := spec.CheckNotStdout("--out", out); err != nil {
		return "", err
	}
	accounts, payments, err := generate.FraudTables(p, out)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s: accounts.csv with %s, payments.csv with %s", out, event.Counted(accounts, "row"),
		event.Counted(payments, "row")), nil
}

// Import reads files of a format and writes a dataset to the folder out.
func Import(ctx context.Context, format, src string, opt ImportOptions, out string, events event.Listener) (Summary,
	error) {
	if !slices.Contains(Formats(), format) {
		return Summary{}, spec.Mistake("FORMAT", fmt.Sprintf("%q", format), "one of "+strings.Join(Formats(), ", "),
			train.Suggest(format, Formats()))
	}
	if err := spec.CheckNotStdout("--out", out); err != nil {
		return Summary{}, err
	}
	if format == schemaFormat || format == TableFormat {
		return importSchema(ctx, format, src, opt, out, events)
	}
	if format == untypedFormat {
		return importUntyped(ctx, src, opt, out)
	}
	return setup.InStages(ctx, out, events, func(report dataset.Progress) (Summary, error) {
		opt.Progress = report
		return dataset.Import(format, src, opt, out)
	})
}

// InWords describes a new dataset.
func InWords(s Summary) string {
	text := event.Counted(s.Nodes, "vertex") + ", " + event.Counted(s.Edges, "edge")
	if s.Schema != nil {
		return fmt.Sprintf("%s of %s, %s", text, event.Counted(len(s.Schema.Types), "type"),
			event.Counted(len(s.Schema.Relations), "relation"))
	}
	if s.Features > 0 {
		text += fmt.Sprintf(", %s (%s)", event.Counted(s.Features, "feature"), s.FeatureKind)
	}
	if s.Classes > 0 {
		what := event.Counted(s.Classes, "class")
		switch s.Task {
		case graph.MultiLabel:
			what += ", any number per vertex"
		case graph.Regression:
			what = event.Counted(s.Classes, "number") + " to predict"
		}
		text += fmt.Sprintf(", %s, splits of %s, %s and %s", what, event.Count(int64(s.Train)),
			event.Count(int64(s.Val)), event.Count(int64(s.Test)))
	}
	return text
}

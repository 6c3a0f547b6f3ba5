package inspect

import (
	"context"
	"fmt"
	"io"
	"strings"

	"starling/event"
	"starling/graph"
	"starling/partition"
	"starling/report"
	"starling/setup"
)

// PartsInfo is what there is to say about a partition folder: its book, and where asked for the locality
// of batches.
type PartsInfo struct {
	book     *partition.Book
	locality *PartsLocality // nil: not measured
}

// DescribeParts opens the book of a partition, and all of its parts to verify them or to measure the
// locality of batches (nil: not).
func DescribeParts(ctx context.Context, dir string, verify bool, locality *LocalityOptions) (*PartsInfo, error) {
	return setup.UntilInterrupted(ctx, "", func() (*PartsInfo, error) {
		if verify {
			if err := partition.Verify(dir); err != nil {
				return nil, err
			}
		}
		b, err := partition.OpenBook(dir)
		p := &PartsInfo{book: b}
		if err == nil && locality != nil {
			p.locality, err = measureLocality(dir, b, *locality)
		}
		return p, err
	})
}

// JSON writes the book to a file, or to stdout for -.
func (p *PartsInfo) JSON(path string, stdout io.Writer) error {
	return report.WriteJSON(struct {
		*partition.Book
		Locality *PartsLocality `json:"locality,omitempty"`
	}{p.book, p.locality}, path, stdout)
}

// String is the book for people.
func (p *PartsInfo) String() string {
	b := p.book
	var out strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&out, "%-12s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("partition of", "%s: %s, %s", b.Dataset, event.Counted(b.Nodes, "vertex"), event.Counted(b.Edges, "edge"))
	line("parts", "%d by %s, on %s", b.Parts, b.Method, event.Counted(max(b.Servers, 1), "server"))
	if b.Symmetric {
		line("edge cut", "%s, an edge and its reverse counted once", event.Count(b.EdgeCut))
	} else {
		line("edge cut", "%s", event.Count(b.EdgeCut))
	}
	line("volume", "%s, in each layer", event.Counted(b.CommVolume, "row"))
	if b.Features != nil {
		line("features", "%d", b.Features.Dim)
	}
	if b.Task != "" {
		line("task", "%s, %s; train %s, validation %s, test %s", b.Task, event.Counted(b.Classes, outputNoun(b.Task)), event.Count(b.Train), event.Count(b.Val), event.Count(b.Test))
	}
	if l := p.locality; l != nil {
		line("locality", "R_micro %.1f%%, R_sub %.1f%%: vertices with the seed vertex that needs them, of micrographs and "+
			"of batches, over %s", 100*l.Micro, 100*l.Sub, event.Counted(l.Seeds, "seed vertex"))
	}
	for k := range b.Parts {
		line(fmt.Sprintf("part %d", k), "%s", event.Counted(b.Size(k), "vertex"))
	}
	return out.String()
}

// outputNoun is what a model of a task has one output for.
func outputNoun(task string) string {
	if task == graph.Regression {
		return "number"
	}
	return "class"
}

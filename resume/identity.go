package resume

import (
	"fmt"
	"strings"

	"starling/event"
	"starling/graph"
	"starling/setup"
	"starling/spec"
)

// Identity identifies what a run was trained on: in a checkpoint, and of a run that resumes.
type Identity struct {
	Data        Mark   `json:"data"`
	PartitionID string `json:"cut,omitempty"` // of several workers
}

// Mark distinguishes datasets.
type Mark struct {
	Nodes    int64  `json:"nodes"`
	Edges    int64  `json:"edges"`
	Checksum string `json:"checksum"` // of meta.json, if the run was given the dataset
	// Contents are the checksums of the dataset, also if the run was given a partition of it.
	Contents graph.Contents `json:"contents,omitzero"`
}

// DatasetIdentity identifies a dataset.
func DatasetIdentity(d *graph.Dataset) Identity {
	return Identity{Data: Mark{d.Meta.Nodes, d.Meta.Edges, d.Meta.CRC32C, d.Contents()}}
}

// PartsIdentity identifies a partition and the dataset that it was made from.
func PartsIdentity(p *setup.Parts) Identity {
	return Identity{Mark{p.Meta.Nodes, p.Meta.Edges, p.Meta.CRC32C, p.Book.Contents}, p.Book.ID}
}

// SameAs refuses to resume on other data than the checkpoint's, and names what differs. The cut
// may be another one: any number of workers may continue a run.
func (before Identity) SameAs(now Identity) error {
	differ := before.differences(now)
	if len(differ) == 0 {
		return nil
	}
	return spec.Mistake("--resume", fmt.Sprintf("a checkpoint of another dataset (%v): its %s differ", before,
		strings.Join(differ, ", ")), now.String(), "give the dataset or the --checkpoint-dir of that run")
}

// differences name what is known to differ. Checkpoints and partitions of earlier versions do not
// have all checksums; without any in common, the data count as different.
func (before Identity) differences(now Identity) []string {
	a, b, unknown := before.Data, now.Data, graph.Contents{}
	switch {
	case a.Nodes != b.Nodes || a.Edges != b.Edges:
		return []string{"numbers of vertices and edges"}
	case a.Contents != unknown && b.Contents != unknown:
		return a.Contents.Differences(b.Contents)
	case a.Checksum != "" && b.Checksum != "":
		return unless(a.Checksum == b.Checksum, "checksums of meta.json")
	}
	return unless(before.PartitionID != "" && before.PartitionID == now.PartitionID,
		"partitions, which are of a version that kept no checksums of the data,")
}

// unless is the name of a difference where there is one.
func unless(same bool, name string) []string {
	if same {
		return nil
	}
	return []string{name}
}

func (d Identity) String() string {
	m := d.Data
	text := event.Counted(m.Nodes, "vertex") + ", " + event.Counted(m.Edges, "edge")
	for _, s := range []struct{ name, sum string }{
		{"graph", m.Contents.Graph}, {"features", m.Contents.Features}, {"labels", m.Contents.Labels},
		{"splits", m.Contents.Splits}, {"schema", m.Contents.Schema}, {"meta.json", m.Checksum}, {"cut", d.PartitionID},
	} {
		if s.sum != "" {
			text += ", " + s.name + " " + s.sum
		}
	}
	return text
}

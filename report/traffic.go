package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"starling/event"
	"starling/wire"
)

// Traffic is the bytes that workers sent of one kind, layer and link: as planned before the
// run, and as counted.
type Traffic = event.Traffic

// Bytes is what workers sent each other.
type Bytes struct {
	Total   int64 `json:"total"`
	Planned int64 `json:"planned"`
	AtMost  bool  `json:"at_most,omitempty"` // planned is an upper bound
	// Deviation is how far, relatively, what was sent is expected to be from what was planned,
	// where that depends on random draws.
	Deviation float64          `json:"deviation,omitempty"`
	ByKind    map[string]int64 `json:"by_kind"`
	ByLink    map[string]int64 `json:"by_link"`
	Detail    []Traffic        `json:"detail,omitempty"`
	// Beside is what travelled beside the payloads, or by another way, by name.
	Beside map[string]wire.Count `json:"beside,omitempty"`
	// PerEpoch is the mean of the training passes, without what is sent once and what
	// evaluations send.
	PerEpoch *EpochBytes `json:"per_epoch,omitempty"`
}

// EpochBytes is what workers sent each other per epoch.
type EpochBytes struct {
	Total  int64            `json:"total"`
	ByKind map[string]int64 `json:"by_kind"`
	ByLink map[string]int64 `json:"by_link"`
}

// NewTraffic pairs planned with counted bytes.
func NewTraffic(planned, counted wire.Bytes) (list []Traffic) {
	keys := map[wire.Class]bool{}
	for _, m := range []wire.Bytes{planned, counted} {
		for k := range m {
			keys[k] = true
		}
	}
	for k := range keys {
		list = append(list, Traffic{Kind: k.Kind.String(), Layer: int(k.Layer), Link: k.Link.String(),
			Planned: planned[k], Counted: counted[k]})
	}
	return sortTraffic(list)
}

func sortTraffic(list []Traffic) []Traffic {
	slices.SortFunc(list, func(a, b Traffic) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Link, b.Link))
	})
	return list
}

// NoBytes is the traffic of a run without peers.
func NoBytes() Bytes { return Bytes{ByKind: map[string]int64{}, ByLink: map[string]int64{}} }

// SumTraffic is the traffic of all workers.
func SumTraffic(workers [][]Traffic) Bytes {
	type key struct {
		kind, link string
		layer      int
	}
	sums := map[key]*Traffic{}
	b := NoBytes()
	for _, t := range slices.Concat(workers...) {
		k := key{t.Kind, t.Link, t.Layer}
		if sums[k] == nil {
			sums[k] = &Traffic{Kind: t.Kind, Layer: t.Layer, Link: t.Link}
		}
		sums[k].Planned += t.Planned
		sums[k].Counted += t.Counted
		b.Total += t.Counted
		b.Planned += t.Planned
		b.ByKind[t.Kind] += t.Counted
		b.ByLink[t.Link] += t.Counted
	}
	for _, t := range sums {
		b.Detail = append(b.Detail, *t)
	}
	sortTraffic(b.Detail)
	return b
}

// SumEpochs is what all workers together sent per epoch of training. Features, where they are
// a kind of their own, are sent once and left out; with mini-batches they are sent in every epoch.
func SumEpochs(workers [][]Traffic, epochs int, batches bool) *EpochBytes {
	b := &EpochBytes{ByKind: map[string]int64{}, ByLink: map[string]int64{}}
	for _, t := range slices.Concat(workers...) {
		if batches || t.Kind != wire.Feature.String() {
			b.Total += t.Counted
			b.ByKind[t.Kind] += t.Counted
			b.ByLink[t.Link] += t.Counted
		}
	}
	n := int64(max(epochs, 1))
	b.Total /= n
	for _, m := range []map[string]int64{b.ByKind, b.ByLink} {
		for k := range m {
			m[k] /= n
		}
	}
	return b
}

// cell is a kind of bytes over a link.
type cell struct{ kind, link string }

// cells sums the detail by kind and link, and by link alone as the kind "total".
func (b *Bytes) cells() (sums map[cell]Traffic, kinds, links []string) {
	sums = map[cell]Traffic{}
	for _, t := range b.Detail {
		if !slices.Contains(kinds, t.Kind) {
			kinds = append(kinds, t.Kind)
		}
		if !slices.Contains(links, t.Link) {
			links = append(links, t.Link)
		}
		for _, kind := range []string{t.Kind, "total"} {
			c := sums[cell{kind, t.Link}]
			c.Planned, c.Counted = c.Planned+t.Planned, c.Counted+t.Counted
			sums[cell{kind, t.Link}] = c
		}
	}
	slices.Sort(links)
	return sums, kinds, links
}

// Table is what was sent as text, kind by link.
func (b *Bytes) Table() string {
	sums, kinds, links := b.cells()
	if len(kinds) == 0 {
		return "nothing was sent\n"
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%-12s", "sent")
	for _, l := range links {
		fmt.Fprintf(&out, " %26s", strings.ReplaceAll(l, "_", " "))
	}
	fmt.Fprintf(&out, "\n%-12s", "")
	for range links {
		fmt.Fprintf(&out, " %13s %12s", "planned", "counted")
	}
	for _, k := range append(kinds, "total") {
		fmt.Fprintf(&out, "\n%-12s", k)
		for _, l := range links {
			c := sums[cell{k, l}]
			fmt.Fprintf(&out, " %13s %12s", event.Bytes(c.Planned), event.Bytes(c.Counted))
		}
	}
	out.WriteString("\n")
	for _, name := range slices.Sorted(maps.Keys(b.Beside)) {
		n := b.Beside[name]
		fmt.Fprintf(&out, "%s: %s", strings.ReplaceAll(name, "_", " "), event.Bytes(n.Bytes))
		if n.Messages > 0 {
			fmt.Fprintf(&out, " in %s", event.Counted(int(n.Messages), "packet"))
		}
		out.WriteString("\n")
	}
	return out.String()
}

// Traffic is the table of what was sent, with the share of time spent waiting, and of
// transfers hidden by computation.
func (r *Run) Traffic() string {
	text := r.Bytes.Table()
	if r.Bytes.AtMost {
		text += "planned is the most that could be sent\n"
	}
	if r.Bytes.Deviation > 0 {
		text += fmt.Sprintf("planned is an estimate from a few batches, give or take %s\n", Percent(r.Bytes.Deviation))
	}
	if r.WaitShare > 0 {
		text += fmt.Sprintf("waiting for other workers: %s of the epochs' time\n", Percent(float64(r.WaitShare)))
	}
	if r.TransferSeconds > 0 {
		text += fmt.Sprintf("rows on their way to a worker: %s per epoch; for %s of that it computed and did not "+
			"wait\n", Seconds(float64(r.TransferSeconds)), Percent(float64(r.HiddenShare)))
	}
	return text
}

package run

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"starling/event"
	"starling/nn"
	"starling/partition"
	"starling/train"
	"starling/wire"
)

// Traffic is the bytes that workers sent of one kind, layer and link: as planned
// before the run, and as counted.
type Traffic struct {
	Kind    string `json:"kind"`
	Layer   int    `json:"layer"` // -1: of none
	Link    string `json:"link"`
	Planned int64  `json:"planned"`
	Counted int64  `json:"counted"`
}

// planOnPaper is what the worker of part will send.
func (s *Spec) planOnPaper(part *partition.Part, end wire.Endpoint, opt train.Options) (*train.Plan, error) {
	dev := newDry(s)
	defer dev.Close()
	return train.PlanOnPaper(part, end, dev, nn.New(dev, opt.Model, opt.Seed), s.taskOnPaper(opt.Model.Out), opt)
}

// planned is what a run that went as r did should have sent.
func planned(from *train.State, r *train.Result) map[train.Sent]int64 {
	first, epochs, measured := 0, len(r.Loss), len(r.Measured)
	if from != nil {
		first, epochs, measured = from.Epoch, epochs-from.Epoch, measured-len(from.History.Measured)
	}
	begun := epochs
	if r.Reason == "interrupted" {
		begun++
	}
	return r.Plan.Total(first, epochs, measured, begun)
}

// traffic sets planned and counted bytes beside each other.
func traffic(planned, counted map[train.Sent]int64) (list []Traffic) {
	keys := map[train.Sent]bool{}
	for _, m := range []map[train.Sent]int64{planned, counted} {
		for k := range m {
			keys[k] = true
		}
	}
	for k := range keys {
		list = append(list, Traffic{Kind: k.Kind.String(), Layer: int(k.Layer), Link: k.Link.String(), Planned: planned[k], Counted: counted[k]})
	}
	return sorted(list)
}

func sorted(list []Traffic) []Traffic {
	slices.SortFunc(list, func(a, b Traffic) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Link, b.Link))
	})
	return list
}

// addUp joins the traffic of all workers.
func addUp(shares []*share) Bytes {
	type key struct {
		kind, link string
		layer      int
	}
	sums := map[key]*Traffic{}
	b := Bytes{ByKind: map[string]int64{}, ByLink: map[string]int64{}}
	for _, s := range shares {
		b.AtMost = b.AtMost || s.AtMost
		for _, t := range s.Traffic {
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
	}
	for _, t := range sums {
		b.Detail = append(b.Detail, *t)
	}
	sorted(b.Detail)
	b.PerEpoch = perEpoch(shares)
	return b
}

// perEpoch joins what the workers sent in an epoch of training. Features, where they
// are a kind of their own, travel once.
func perEpoch(shares []*share) *EpochBytes {
	b := &EpochBytes{ByKind: map[string]int64{}, ByLink: map[string]int64{}}
	epochs := int64(max(shares[0].Metered.Epochs, 1))
	for _, s := range shares {
		for _, t := range s.Metered.Sent {
			if t.Kind != wire.Feature.String() {
				b.Total += t.Counted
				b.ByKind[t.Kind] += t.Counted
				b.ByLink[t.Link] += t.Counted
			}
		}
	}
	b.Total /= epochs
	for _, m := range []map[string]int64{b.ByKind, b.ByLink} {
		for k := range m {
			m[k] /= epochs
		}
	}
	return b
}

// Table is what was sent, kind by link, for people.
func (b *Bytes) Table() string {
	kinds, links := []string{}, []string{}
	type pair struct{ planned, counted int64 }
	cells := map[[2]string]pair{}
	for _, t := range b.Detail {
		if !slices.Contains(kinds, t.Kind) {
			kinds = append(kinds, t.Kind)
		}
		if !slices.Contains(links, t.Link) {
			links = append(links, t.Link)
		}
		for _, k := range []string{t.Kind, "total"} {
			c := cells[[2]string{k, t.Link}]
			cells[[2]string{k, t.Link}] = pair{c.planned + t.Planned, c.counted + t.Counted}
		}
	}
	if len(kinds) == 0 {
		return "nothing was sent\n"
	}
	slices.Sort(links)
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
			c := cells[[2]string{k, l}]
			fmt.Fprintf(&out, " %13s %12s", event.Bytes(c.planned), event.Bytes(c.counted))
		}
	}
	out.WriteString("\n")
	return out.String()
}

// Traffic is the table of what was sent, the share of time spent waiting, and of
// transfers hidden under computation.
func (r *Report) Traffic() string {
	text := r.Bytes.Table()
	if r.Bytes.AtMost {
		text += "planned is the most that could be sent\n"
	}
	if r.WaitShare > 0 {
		text += fmt.Sprintf("waiting for other workers: %s of the epochs' time\n", percent(float64(r.WaitShare)))
	}
	if r.TransferSeconds > 0 {
		text += fmt.Sprintf("rows on their way to a worker: %s an epoch; for %s of that it computed and did not wait\n", seconds(float64(r.TransferSeconds)), percent(float64(r.HiddenShare)))
	}
	return text
}

// seconds is a short time for people.
func seconds(s float64) string {
	switch {
	case math.IsNaN(s):
		return "-"
	case s < 1:
		return fmt.Sprintf("%.3g ms", 1000*s)
	}
	return fmt.Sprintf("%.3g s", s)
}

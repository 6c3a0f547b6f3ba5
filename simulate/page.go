package simulate

import (
	"bytes"
	"cmp"
	_ "embed"
	"fmt"
	"html/template"
	"slices"
	"strings"
	"sync"

	"starling/event"
	"starling/netsim"
	"starling/report"
	"starling/report/chart"
)

//go:embed page.html
var pageText string

// simulateTemplate is parsed when it is first used, not whenever the program starts.
var simulateTemplate = sync.OnceValue(func() *template.Template { return chart.New("simulate", pageText) })

// page is the data of the template.
type page struct {
	Title, About string
	Keys         []chart.Key
	Summary      *chart.Table
	Networks     []network
}

// network is what the links of a row did.
type network struct {
	Title, About string
	Links        *chart.Table
	Used, Queued *chart.Strip // nil: no link is charted, or none had a queue
}

// WriteHTML writes a page: all rows in short, then the links of each.
func (t *Simulated) WriteHTML(path string) error { return report.WritePage(path, t.html()) }

func (t *Simulated) html() []byte {
	var b bytes.Buffer
	if err := simulateTemplate().Execute(&b, t.page()); err != nil {
		panic(err) // the template and its data are both ours
	}
	return b.Bytes()
}

func (t *Simulated) page() *page {
	p := &page{Title: "Simulated training", About: strings.TrimSuffix(t.charged(), "\n"), Summary: t.summary(),
		Keys: []chart.Key{{Kind: "k-compute", Text: "computing, and what is hidden behind it"},
			{Kind: "k-wait", Text: "waiting for others"}}}
	for i := range t.Rows {
		if n := t.Rows[i].Network; n != nil {
			p.Title = fmt.Sprintf("%s, simulated", event.Counted(n.Workers, "worker"))
			p.Networks = append(p.Networks, network{t.Rows[i].Strategy, about(n), linksTable(n), used(n), queued(n)})
		}
	}
	return p
}

// summary has a row per strategy.
func (t *Simulated) summary() *chart.Table {
	out := &chart.Table{Heads: []string{"strategy", "epoch", "bytes per epoch", "bytes", "waited", "peak use", "drops",
		"queue"}}
	slowest := 0.0
	for _, r := range t.Rows {
		if r.Run != nil {
			slowest = max(slowest, float64(r.Run.MedianEpochSeconds))
		}
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Run == nil {
			out.Rows = append(out.Rows, chart.Line{Cells: []chart.Cell{chart.Text(r.Strategy), chart.Wide("failed: " +
				r.Error)}})
			continue
		}
		seconds, waited := float64(r.Run.MedianEpochSeconds), max(float64(r.Run.WaitShare), 0)
		epoch := chart.Of(seconds, report.Seconds(seconds))
		length := 100 * seconds / max(slowest, 1e-12)
		epoch.Kind = "bars"
		epoch.Parts = chart.Bar([]string{"k-compute", "k-wait"}, []float64{length * (1 - waited), length * waited})
		perEpoch := chart.Text("-")
		if b := r.Run.Bytes.PerEpoch; b != nil {
			perEpoch = ofBytes(b.Total)
		}
		use, queue := r.peaks()
		out.Rows = append(out.Rows, chart.Line{Cells: []chart.Cell{chart.Text(r.Strategy), epoch, perEpoch,
			ofBytes(r.Run.Bytes.Total), ofShare(float64(r.Run.WaitShare)), ofShare(use), ofCount(r.Network.Drops),
			ofBytes(queue)}})
	}
	return out
}

func ofBytes(n int64) chart.Cell   { return chart.Of(float64(n), event.Bytes(n)) }
func ofCount(n int64) chart.Cell   { return chart.Of(float64(n), event.Count(n)) }
func ofShare(x float64) chart.Cell { return chart.Of(x, report.Percent(x)) }

// about is the network and what passed it.
func about(n *netsim.Result) string {
	text := fmt.Sprintf("%s, %s, %s level; %s of virtual time; %s arrived, %s dropped, %s marked, %s sent again",
		n.Topology, event.Counted(n.Hosts, "host"), n.Level, report.Seconds(n.Seconds), event.Counted(n.Packets, "packet"),
		event.Count(n.Drops), event.Count(n.Marks), event.Count(n.Resent))
	if g := n.Background; g != nil {
		text += fmt.Sprintf("; background traffic of load %s, seed %d: %s, %s, slowdown %.2f (median), %.2f (99%%)",
			report.Percent(g.Load), g.Seed, event.Counted(g.Begun, "transfer"), event.Bytes(g.Bytes), g.Median, g.P99)
	}
	return text
}

// linksTable has a row per tier of links, and one per charted link.
func linksTable(n *netsim.Result) *chart.Table {
	t := &chart.Table{Heads: []string{"links", "number", "bytes", "mean use", "most", "mean queue", "peak", "drops",
		"marks"}}
	add := func(name string, number int64, rest ...chart.Cell) {
		cells := []chart.Cell{chart.Text(name), ofCount(number)}
		t.Rows = append(t.Rows, chart.Line{Cells: append(cells, rest...)})
	}
	for _, x := range n.Tiers {
		add(x.Name, int64(x.Links), ofBytes(x.Bytes), ofShare(x.MeanUtilisation), ofShare(x.MaxUtilisation),
			ofBytes(int64(x.MeanQueue)), ofBytes(x.PeakQueue), ofCount(x.Drops), ofCount(x.Marks))
	}
	for i := range n.Charts {
		c := &n.Charts[i]
		add(c.Name, 1, ofBytes(c.Bytes), ofShare(c.Utilisation), ofShare(c.Utilisation), ofBytes(int64(c.MeanQueue)),
			ofBytes(c.PeakQueue), ofCount(c.Drops), ofCount(c.Marks))
	}
	return t
}

// mostColumns is how finely the time of a link is divided.
const mostColumns = 200

// used is how much of each charted link was used over time; nil: none is charted.
func used(n *netsim.Result) *chart.Strip {
	return strip(n, "used", "k-compute", func(list []netsim.Sample) (mean float64) {
		for _, s := range list {
			mean += s.Utilisation / float64(len(list))
		}
		return mean
	})
}

// queued is the longest queue over time, relative to the longest of all; nil: nothing waited.
func queued(n *netsim.Result) *chart.Strip {
	longest := int64(0)
	for i := range n.Charts {
		longest = max(longest, n.Charts[i].PeakQueue)
	}
	if longest == 0 {
		return nil
	}
	s := strip(n, "of "+event.Bytes(longest), "k-wait", func(list []netsim.Sample) float64 {
		return float64(slices.MaxFunc(list, func(a, b netsim.Sample) int { return cmp.Compare(a.PeakQueue, b.PeakQueue) }).
			PeakQueue) / float64(longest)
	})
	if s != nil {
		s.Keys = []chart.Key{{Kind: "k-wait", Text: "queued; the full height is " + event.Bytes(longest)}}
	}
	return s
}

// strip has a row per charted link, the higher the larger the share of samples is.
func strip(n *netsim.Result, label, kind string, share func([]netsim.Sample) float64) *chart.Strip {
	most := 0
	for i := range n.Charts {
		most = max(most, len(n.Charts[i].Samples))
	}
	if most == 0 {
		return nil
	}
	join := (most + mostColumns - 1) / mostColumns
	out := &chart.Strip{Columns: (most + join - 1) / join, Left: "0 s", Right: report.Seconds(n.Seconds), Labels: label,
		Keys: []chart.Key{{Kind: kind, Text: label + "; the full height is all of the link's rate"}}}
	out.Step = n.Seconds / float64(out.Columns)
	for i := range n.Charts {
		c := &n.Charts[i]
		columns := make([]chart.Column, out.Columns)
		for k := range columns {
			columns[k].For = -1
			if from := k * join; from < len(c.Samples) {
				columns[k].Parts = []float64{share(c.Samples[from:min(from+join, len(c.Samples))])}
			}
		}
		out.Add(chart.Row(c.Name, c.Name+" over time", columns, []string{kind}, ""))
	}
	return out
}

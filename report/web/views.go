package web

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"starling/event"
	"starling/report"
	"starling/report/chart"
)

// curvesView is the loss and the metric of all runs.
type curvesView struct{ Plots []*chart.Lines }

func inEpochs(x float64) string { return fmt.Sprintf("epoch %.0f", x) }

func curvesOf(runs []*state) curvesView {
	var loss, metric []chart.Series
	name := "metric"
	for _, s := range runs {
		of := ""
		if len(runs) > 1 {
			of = s.name + ": "
		}
		c := &s.curve
		loss = append(loss, chart.Series{Name: of + "loss", X: c.counted(), Y: c.Loss})
		for _, m := range []struct {
			split string
			y     []float64
		}{{"train", c.Train}, {"validation", c.Val}, {"test", c.Test}} {
			if xs, ys := c.measured(m.y); len(xs) > 0 && (len(runs) == 1 || m.split == "validation") {
				metric = append(metric, chart.Series{Name: of + m.split, X: xs, Y: ys})
			}
		}
		name = cmp.Or(s.started.Metric, name)
	}
	var v curvesView
	for _, p := range []*chart.Lines{
		chart.NewLines("Training loss", "training loss over epochs", loss, inEpochs),
		chart.NewLines("Metric: "+name, name+" over epochs", metric, inEpochs),
	} {
		if p == nil {
			continue
		}
		p.Unit = "epoch"
		for _, s := range runs {
			s.markCurves(p)
		}
		v.Plots = append(v.Plots, p)
	}
	return v
}

// fewSaved is how many checkpoints are marked; of more they are a fence.
const fewSaved = 20

// markCurves marks what happened.
func (s *state) markCurves(p *chart.Lines) {
	saved := 0
	for _, h := range s.happened {
		if h.Kind == "saved" {
			saved++
		}
	}
	for _, h := range s.happened {
		if h.marked(saved) {
			p.Mark(max(float64(h.Epoch), 1), h.Kind, h.Text)
		}
	}
}

func (h *happening) marked(saved int) bool {
	switch h.Kind {
	case event.Lost, event.Back, event.Stalled, event.Moving, event.Link:
		return true
	}
	return h.Kind == "saved" && saved <= fewSaved
}

// timeView is the strip of each worker.
type timeView struct {
	Of    string
	Strip *chart.Strip
	Many  bool
	Clock string // that times are of, where it is not the host's
	Text  string // why there is none
}

const (
	// mostCells bounds columns times workers, so that a page of many workers stays small.
	mostCells              = 4000
	mostColumns, leastCols = 256, 48
	// manyRows are drawn lower.
	manyRows = 16
)

func (s *state) timePanel(of string) timeView {
	v := timeView{Of: of, Many: len(s.ranks) > manyRows, Text: "No worker has reported yet."}
	line := s.line.joined(max(min(mostColumns, mostCells/max(len(s.ranks), 1)), leastCols))
	n := line.length()
	if n == 0 {
		return v
	}
	strip := &chart.Strip{Columns: n, Step: line.step, Left: "0 s",
		Right:  chart.Seconds(s.rounded(float64(n)*line.step, 10)),
		Labels: strings.Join(append(slices.Clone(activityNames), transferName), ",")}
	for r, row := range line.rows {
		columns := make([]chart.Column, n)
		for i := range columns {
			columns[i].For = -1
			if i < len(row) {
				columns[i] = row[i].column()
			}
		}
		name := fmt.Sprintf("rank %d", r)
		strip.Add(chart.Row(name, name+" over time", columns, activityKinds, transferKind))
	}
	for _, h := range s.happened {
		if h.marked(fewSaved + 1) {
			strip.Mark(h.At/line.step, h.Kind, h.Text)
		}
	}
	for i, kind := range activityKinds {
		strip.Keys = append(strip.Keys, chart.Key{Kind: kind, Text: activityNames[i]})
	}
	strip.Keys = append(strip.Keys, chart.Key{Kind: transferKind, Text: transferName + " to it, beside the others"})
	if v.Strip = strip; s.opened.Virtual {
		v.Clock = "Virtual time, of simulated workers."
	}
	return v
}

// bytesView is what was sent, and by whom to whom.
type bytesView struct {
	Of          string
	Table       *chart.Table // nil: nothing was sent
	Text        string
	Sent, Waits *chart.Heat
}

func (s *state) bytesPanel(of, id string) bytesView {
	v := bytesView{Of: of}
	if s.started.Workers < 2 && len(s.ranks) < 2 {
		v.Text = "One worker sends nothing."
		return v
	}
	list := s.traffic()
	if len(list) > 0 {
		v.Table = trafficTable(id, list)
	}
	if v.Text = "Planned and counted until the end of the epoch that was compared last."; s.result != nil {
		v.Text = "Planned and counted over the whole run."
	}
	if s.atMost() {
		v.Text += " Planned is the most that could be sent."
	}
	n := min(len(s.ranks), 256)
	sent, waits := square(n), square(n)
	for r := range n {
		t := s.ranks[r].totals()
		for q := range n {
			if q < len(t.to) {
				sent[r][q] = float64(t.to[q])
			}
			if q < len(t.waitedFor) {
				waits[r][q] = t.waitedFor[q]
			}
		}
	}
	v.Sent = chart.NewHeat("Bytes sent", "from rank", "to rank", "bytes", sent,
		func(x float64) string { return event.Bytes(int64(x)) })
	v.Waits = chart.NewHeat("Time that was waited", "rank", "waits for rank", "seconds", waits, chart.Seconds)
	return v
}

func square(n int) [][]float64 {
	out := make([][]float64, n)
	for i := range out {
		out[i] = make([]float64, n)
	}
	return out
}

func (s *state) atMost() bool {
	return s.result != nil && s.result.Bytes.AtMost || s.result == nil && s.planned != nil && s.planned.AtMost
}

// traffic is the bytes of all workers.
func (s *state) traffic() []event.Traffic {
	if s.result != nil {
		return s.result.Bytes.Detail
	}
	all := totals{traffic: map[event.Traffic]event.Traffic{}}
	for r := range s.ranks {
		for _, x := range s.ranks[r].totals().traffic {
			all.add(x)
		}
	}
	return slices.SortedFunc(maps.Values(all.traffic), func(a, b event.Traffic) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Layer, b.Layer), cmp.Compare(a.Link, b.Link))
	})
}

func trafficTable(id string, list []event.Traffic) *chart.Table {
	t := &chart.Table{ID: id, Heads: []string{"kind", "layer", "link", "planned", "counted", "difference"}}
	most := int64(1)
	for _, x := range list {
		most = max(most, x.Counted)
	}
	for _, x := range list {
		layer := "-"
		if x.Layer >= 0 {
			layer = fmt.Sprint(x.Layer)
		}
		counted := chart.Of(float64(x.Counted), event.Bytes(x.Counted))
		counted.Share = int(100 * x.Counted / most)
		t.Rows = append(t.Rows, chart.Line{Cells: []chart.Cell{chart.Text(x.Kind), chart.Of(float64(x.Layer), layer),
			chart.Text(strings.ReplaceAll(x.Link, "_", " ")), chart.Of(float64(x.Planned), event.Bytes(x.Planned)),
			counted,
			chart.Of(float64(x.Counted-x.Planned), apart(x.Planned, x.Counted))}})
	}
	return t
}

// apart is how far bytes are from what was planned.
func apart(planned, counted int64) string {
	switch d := counted - planned; {
	case d == 0:
		return "none"
	case d < 0:
		return "-" + event.Bytes(-d)
	default:
		return "+" + event.Bytes(d)
	}
}

// workersView is where workers are and what they take.
type workersView struct {
	Of, Text string
	Table    *chart.Table
	Memory   *chart.Lines
}

func (s *state) workersPanel(of, id string) workersView {
	v := workersView{Of: of, Text: "No worker has reported yet."}
	t := &chart.Table{ID: id, Heads: []string{"rank", "host", "process", "epoch", "memory", "peak", "planned"}}
	if s.opened.Virtual { // it is no process of its own
		t.Heads = []string{"rank", "host", "epoch"}
	}
	gpus := slices.ContainsFunc(s.ranks, func(r rank) bool { return r.now.DeviceSize > 0 })
	if gpus {
		t.Heads = append(t.Heads, "GPU", "GPU memory")
	}
	for i := range s.ranks {
		if r := &s.ranks[i]; r.seen {
			cells := r.cells(i, s.planned, gpus)
			if s.opened.Virtual {
				cells = []chart.Cell{cells[0], cells[1], cells[3]}
			}
			t.Rows = append(t.Rows, chart.Line{Cells: cells})
		}
	}
	if len(t.Rows) == 0 {
		return v
	}
	v.Table, v.Text, v.Memory = t, "", s.memoryLines()
	return v
}

func (r *rank) cells(i int, planned *event.Planned, gpus bool) []chart.Cell {
	plan := chart.Of(-1, "-")
	if planned != nil && i < len(planned.Workers) {
		plan = ofBytes(planned.Workers[i])
	}
	w := &r.now
	list := []chart.Cell{chart.Of(float64(i), fmt.Sprint(i)), chart.Text(w.Host), chart.Of(float64(w.PID),
		fmt.Sprint(w.PID)),
		chart.Of(float64(w.Epoch), event.Count(int64(w.Epoch))), ofBytes(w.Memory), ofBytes(r.highest), plan}
	if gpus {
		used := chart.Text("-")
		if w.DeviceSize > 0 {
			used = chart.Of(float64(w.DeviceUsed), event.Bytes(w.DeviceUsed)+" of "+event.Bytes(w.DeviceSize))
			used.Share = int(100 * w.DeviceUsed / w.DeviceSize)
		}
		list = append(list, chart.Text(cmp.Or(w.Device, "-")), used)
	}
	return list
}

func ofBytes(n int64) chart.Cell { return chart.Of(float64(n), event.Bytes(n)) }

// memoryLines are the memory of workers over time, of few workers.
func (s *state) memoryLines() *chart.Lines {
	var list []chart.Series
	unit, name := 1<<20, "MiB"
	for r := range s.ranks {
		if s.ranks[r].highest >= 4<<30 {
			unit, name = 1<<30, "GiB"
		}
	}
	line := s.line.joined(mostColumns)
	for r, row := range line.rows {
		x := chart.Series{Name: fmt.Sprintf("rank %d", r)}
		for i, b := range row {
			if b.memory > 0 {
				x.X = append(x.X, float64(i+1)*line.step)
				x.Y = append(x.Y, math.Round(100*float64(b.memory)/float64(unit))/100)
			}
		}
		if list = append(list, x); len(list) == 8 {
			break
		}
	}
	p := chart.NewLines("Memory, "+name, "memory of workers over time", list, chart.Seconds)
	if p != nil {
		p.Unit = "second"
	}
	return p
}

// happenedView is the list of events, the newest first.
type happenedView struct {
	Of    string
	Table *chart.Table
	Left  string
}

// kindNames are the words for what happens.
var kindNames = map[string]string{event.Lost: "lost", event.Back: "came back", event.Stalled: "stalled",
	event.Moving: "goes on", event.Link: "link", "saved": "checkpoint", "note": "note", "done": "end"}

func (s *state) happenedPanel(of, id string) happenedView {
	v := happenedView{Of: of}
	t := &chart.Table{ID: id, Heads: []string{"at", "epoch", "what", "text"}}
	for _, h := range slices.Backward(s.happened) {
		kind := cmp.Or(kindNames[h.Kind], "other")
		t.Rows = append(t.Rows, chart.Line{Kind: "is-" + h.Kind, Cells: []chart.Cell{chart.Of(h.At,
			chart.Seconds(s.rounded(h.At, 100))),
			chart.Of(float64(h.Epoch), event.Count(int64(h.Epoch))), chart.Text(kind), chart.Wide(h.Text)}})
	}
	if len(t.Rows) > 0 {
		v.Table = t
	}
	if s.left > 0 {
		v.Left = event.Counted(s.left, "earlier event") + " are not listed"
	}
	return v
}

// planView says which part of what was predicted held.
type planView struct {
	Of, Text, Why string
	Table         *chart.Table
}

func (s *state) planPanel(of string) planView {
	v := planView{Of: of}
	t := &chart.Table{Heads: []string{"", "held", "predicted", "measured"}}
	add := func(name, planned, measured, held, class string) {
		t.Rows = append(t.Rows, chart.Line{Cells: []chart.Cell{chart.Text(name),
			{Text: held, Kind: "text " + class}, chart.Text(planned), chart.Text(measured)}})
	}
	s.plannedBytes(add)
	s.plannedMemory(add)
	s.plannedTime(add)
	if s.planned != nil {
		v.Why = s.planned.Why
	}
	if len(t.Rows) == 0 {
		v.Text = "Nothing was predicted of this run."
		return v
	}
	v.Table = t
	return v
}

type addRow func(name, planned, measured, held, class string)

func (s *state) plannedBytes(add addRow) {
	var planned, counted int64
	for _, x := range s.traffic() {
		planned, counted = planned+x.Planned, counted+x.Counted
	}
	if planned == 0 && counted == 0 {
		return
	}
	held, class := "differs by "+strings.TrimLeft(apart(planned, counted), "+-"), "bad"
	deviation := 0.0
	if s.result != nil {
		deviation = s.result.Bytes.Deviation
	}
	switch {
	case planned == counted:
		held, class = "yes, to the byte", "good"
	case s.atMost() && counted < planned:
		held, class = "yes, it was the most that could be sent", "good"
	case deviation > 0 && math.Abs(float64(counted-planned)) <= 3*deviation*float64(planned):
		held, class = "yes, within "+report.Percent(3*deviation), "good"
	case s.result == nil && counted > planned:
		held, class = "not known yet: what is fetched ahead is counted", ""
	}
	add("bytes sent", event.Bytes(planned), event.Bytes(counted), held, class)
}

func (s *state) plannedMemory(add addRow) {
	if s.planned == nil || len(s.planned.Workers) == 0 {
		return
	}
	planned, used := slices.Max(s.planned.Workers), int64(0)
	for i := range s.ranks {
		used = max(used, s.ranks[i].highest)
	}
	held, class := "yes", "good"
	if used > planned {
		held, class = fmt.Sprintf("above by %s, which has mapped files too",
			event.Bytes(used-planned)), ""
	}
	if used > 0 {
		add("memory, largest worker", event.Bytes(planned), event.Bytes(used), held, class)
	}
}

func (s *state) plannedTime(add addRow) {
	if s.planned == nil || !(s.planned.EpochSeconds > 0) || len(s.curve.Seconds) < 2 {
		return
	}
	sorted := slices.Sorted(slices.Values(s.curve.Seconds[1:]))
	measured := sorted[len(sorted)/2]
	held, class := fmt.Sprintf("%.2fx what was predicted", measured/s.planned.EpochSeconds), "bad"
	if r := measured / s.planned.EpochSeconds; r > 0.75 && r < 1.33 {
		class = "good"
	}
	add("an epoch", chart.Seconds(s.planned.EpochSeconds), chart.Seconds(measured), held, class)
}

// settingsView is the settings, and the command that repeats the run.
type settingsView struct {
	Of, Command, Program string
	Settings             []report.Setting
}

func (s *state) settingsPanel(of string) settingsView {
	v := settingsView{Of: of, Command: s.opened.Command, Program: s.opened.Program}
	for line := range strings.Lines(s.opened.Settings) {
		if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); ok {
			v.Settings = append(v.Settings, report.Setting{Name: name, Value: strings.Trim(value, `"`)})
		}
	}
	return v
}

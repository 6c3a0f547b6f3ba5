package plan

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"starling/cost"
	"starling/dataset/generate"
	"starling/event"
	"starling/exchange"
	"starling/nn"
	"starling/report"
	"starling/spec"
)

// WhatIfOptions say which graph and which cluster to plan for without having them.
type WhatIfOptions struct {
	Options
	Like      string // NAME, or vertices=2e9,edges=2e12,features=64,classes=2,train=1e8
	Hosts     int
	Cut       float64 // share of edges between hosts; 0: a random cut
	Computing string  // rates of a host; "": this machine's
}

// WhatIfPlan is what an epoch would take, full graph and in mini-batches.
type WhatIfPlan struct {
	Graph     string       `json:"graph"`
	Vertices  float64      `json:"vertices"`
	Edges     float64      `json:"edges"`
	Hosts     int          `json:"hosts"`
	Cut       float64      `json:"cut"`
	Between   cost.Link    `json:"between"`
	Computing string       `json:"computing"`
	FullGraph cost.Outlook `json:"full_graph"`
	Batches   cost.Outlook `json:"mini_batches"`
	Breaks    []string     `json:"breaks_first"`
}

// WhatIf plans for a graph that is not at hand.
func WhatIf(o WhatIfOptions, events event.Listener) (*WhatIfPlan, error) {
	if o.Hosts < 1 || o.Hosts > 1<<20 {
		return nil, spec.Mistake("--hosts", fmt.Sprint(o.Hosts), "1 to 1048576 hosts, one worker each", "for example --hosts 128")
	}
	if !(o.Cut >= 0 && o.Cut < 1) {
		return nil, spec.Mistake("--cut", fmt.Sprint(o.Cut), "a share of edges below 1", "0 is a random cut")
	}
	o.Cluster.Servers = o.Hosts
	known, err := o.rates(context.Background(), event.All(events))
	if err != nil {
		return nil, err
	}
	p := cost.WhatIf{Hosts: float64(o.Hosts), Cut: o.Cut, Link: known.Between, Compute: known.Compute,
		HostByte: known.HostByte / float64(known.Cores), HostPerMsg: known.HostMessage,
		Batch: float64(o.Batches.Size) * float64(o.Hosts), Fanout: 10, Layers: 3, Hidden: 256}
	if o.Model.Layers > 0 {
		p.Layers = o.Model.Layers
	}
	if o.Model.Hidden > 0 {
		p.Hidden = float64(o.Model.Hidden)
	}
	if o.Computing != "" {
		if p.Compute, err = cost.ParseCompute(o.Computing); err != nil {
			return nil, spec.Mistake("--computing", fmt.Sprintf("%q", o.Computing), "rates", `for example "gemm=4000 spmm=100 `+
				`memory=400 op=5us"`)
		}
	}
	if slices.Contains(generate.TypedNames(), o.Like) {
		err = readTypedShape(&o, &p)
	} else {
		err = readShape(o.Like, &p)
	}
	if err != nil {
		return nil, err
	}
	out := &WhatIfPlan{Graph: o.Like, Vertices: p.Vertices, Edges: p.Edges, Hosts: o.Hosts, Cut: o.Cut, Between: p.Link,
		Computing: p.Compute.String(), FullGraph: p.FullGraph(), Batches: p.Batches()}
	return out, out.breaks(&o)
}

// readTypedShape is the published numbers of a typed dataset.
func readTypedShape(o *WhatIfOptions, p *cost.WhatIf) error {
	if !nn.IsTyped(o.Model.Name) {
		return spec.Mistake("--model", o.Model.Name, "one of "+strings.Join(nn.TypedModels, ", ")+" for the typed graph "+o.Like,
			"for example --model rgat")
	}
	like, err := generate.LikeTyped(o.Like, 1)
	if err != nil {
		return err
	}
	vertices, target, bare := like.Sizes()
	p.Vertices, p.Learnt, p.Train = float64(vertices), float64(bare), like.Train*float64(target)
	p.In, p.Classes, p.Attends = float64(like.Features), float64(like.Classes), nn.HasHeads(o.Model.Name)
	for _, r := range like.Relations() {
		p.Edges += float64(r.Edges)
		p.Relations = append(p.Relations, cost.RelationSize{Sources: float64(r.Sources), Targets: float64(r.Targets)})
	}
	return nil
}

// readShape is the published numbers of a dataset, or those that are given.
func readShape(text string, p *cost.WhatIf) error {
	if !strings.Contains(text, "=") {
		like, err := generate.Like(text, 1, true)
		if err != nil {
			return err
		}
		p.Vertices, p.Edges, p.In = float64(like.Nodes), float64(like.Edges), float64(like.Features)
		p.Classes, p.Train = float64(like.Classes), like.Train*float64(like.Nodes)
		return nil
	}
	p.In, p.Classes = 128, 16
	into := map[string]*float64{"vertices": &p.Vertices, "edges": &p.Edges, "features": &p.In, "classes": &p.Classes,
		"train": &p.Train}
	for word := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(strings.TrimSpace(word), "=")
		x, err := strconv.ParseFloat(value, 64)
		to := into[name]
		if err != nil || to == nil || !(x > 0 && x < 1e18) {
			return spec.Mistake("--like", fmt.Sprintf("%q", word), "vertices=, edges=, features=, classes= and train= with numbers",
				"for example vertices=2e9,edges=2e12")
		}
		*to = x
	}
	if p.Vertices == 0 || p.Edges == 0 {
		return spec.Mistake("--like", text, "at least vertices= and edges=", "")
	}
	if p.Train == 0 {
		p.Train = p.Vertices / 10
	}
	return nil
}

// breaks says what would be the limit, the worst first.
func (p *WhatIfPlan) breaks(o *WhatIfOptions) error {
	memory, err := exchange.ParseBytes("--memory", o.Memory)
	if err != nil {
		return err
	}
	for _, k := range []struct {
		name string
		on   *cost.Outlook
	}{{"full graph", &p.FullGraph}, {"mini-batches", &p.Batches}} {
		if memory > 0 && k.on.Memory > float64(memory) {
			p.Breaks = append(p.Breaks, fmt.Sprintf("%s: memory, %s per host where there are %s", k.name,
				event.Bytes(int64(k.on.Memory)), event.Bytes(memory)))
		}
		limit, seconds := "computing", k.on.Compute
		if k.on.Link > seconds {
			limit, seconds = "the hosts' links", k.on.Link
		}
		if k.on.Host > seconds {
			limit, seconds = "the hosts' processors, which handle the bytes", k.on.Host
		}
		p.Breaks = append(p.Breaks, fmt.Sprintf("%s: %s, %s of the epoch", k.name, limit, report.Percent(seconds/k.on.Seconds)))
	}
	return nil
}

// String is a table.
func (p *WhatIfPlan) String() string {
	var b strings.Builder
	cut := "a random cut"
	if p.Cut > 0 {
		cut = report.Percent(p.Cut) + " of edges cut"
	}
	fmt.Fprintf(&b, "%s: %s vertices, %s edges, %s at %s, %s; computing %s\n\n", p.Graph, report.Amount(p.Vertices),
		report.Amount(p.Edges), event.Counted(p.Hosts, "host"), rateText(p.Between.Rate), cut, p.Computing)
	fmt.Fprintf(&b, "%-14s %12s %12s %12s %11s %11s %11s %11s\n", "", "memory/host", "remote rows", "sent/host", "compute", "link",
		"processors", "epoch")
	for _, k := range []struct {
		name string
		on   *cost.Outlook
	}{{"full graph", &p.FullGraph}, {"mini-batches", &p.Batches}} {
		fmt.Fprintf(&b, "%-14s %12s %12s %12s %11s %11s %11s %11s\n", k.name, event.Bytes(int64(k.on.Memory)),
			report.Amount(k.on.Remote), event.Bytes(int64(k.on.Sent)), report.Seconds(k.on.Compute), report.Seconds(k.on.Link),
			report.Seconds(k.on.Host), report.Seconds(k.on.Seconds))
	}
	b.WriteString("\nwhat breaks first:\n")
	for _, text := range p.Breaks {
		b.WriteString("  " + text + "\n")
	}
	return b.String()
}

// JSON writes it.
func (p *WhatIfPlan) JSON(path string, stdout io.Writer) error {
	return report.WriteJSON(p, path, stdout)
}

package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net"
	"os"
	"strings"

	"starling/cluster"
	"starling/event"
	"starling/graph"
	"starling/internal/version"
	"starling/plan"
	"starling/report"
	"starling/report/web"
	"starling/spec"
)

// outputs are the files and pages that show a run.
type outputs struct {
	spec   *spec.Spec
	events event.Listener // they, and the view
	list   []event.Listener
	ends   []func() error
	page   *web.Run // nil: there is no page
}

// openOutputs opens --trace, --events, --tensorboard and --web.
func openOutputs(ctx context.Context, s *spec.Spec, events event.Listener) (*outputs, error) {
	o := &outputs{spec: s, list: []event.Listener{events}}
	for _, open := range []func(context.Context, event.Listener) error{o.openTrace, o.openEvents, o.openTensorBoard, o.openPage} {
		if err := open(ctx, events); err != nil {
			return nil, errors.Join(err, o.finish())
		}
	}
	o.events = event.Locked(event.All(o.list...))
	return o, nil
}

// add adds a listener, and what ends it.
func (o *outputs) add(l event.Listener, end func() error) {
	o.list, o.ends = append(o.list, l), append(o.ends, end)
}

// finish completes files and closes pages.
func (o *outputs) finish() (err error) {
	for _, end := range o.ends {
		err = errors.Join(err, end())
	}
	o.ends = nil
	return err
}

func (o *outputs) openTrace(context.Context, event.Listener) error {
	if o.spec.Output.Trace == "" {
		return nil
	}
	trace, err := event.NewTrace(o.spec.Output.Trace)
	if err == nil {
		o.add(trace, trace.Close)
	}
	return err
}

func (o *outputs) openEvents(ctx context.Context, events event.Listener) error {
	if o.spec.Output.Events == "" {
		return nil
	}
	f, err := createEvents(ctx, o.spec.Output.Events, events)
	if err != nil {
		return err
	}
	lines := event.NewJSONLines(f)
	o.add(lines, func() error { return errors.Join(lines.Err(), f.Close()) })
	return nil
}

func (o *outputs) openTensorBoard(context.Context, event.Listener) error {
	dir := o.spec.Output.TensorBoard
	if dir == "" {
		return nil
	}
	t, err := event.NewTensorBoard(dir)
	if err != nil {
		return spec.Mistake("--tensorboard", graph.Sentence(err.Error()), "a folder to write to", "choose another")
	}
	o.add(t, t.Close)
	return nil
}

// openPage keeps what a page shows, and serves it with --web.
func (o *outputs) openPage(_ context.Context, events event.Listener) error {
	if o.spec.Output.Web == "" && o.spec.Output.HTML == "" {
		return nil
	}
	o.page = web.NewRun("")
	o.list = append(o.list, o.page)
	if o.spec.Output.Web == "" {
		return nil
	}
	server, err := servePage("--web", o.spec.Output.Web, o.page)
	if err != nil {
		return err
	}
	o.ends = append(o.ends, server.Close)
	events.On(event.Note{Text: "this run's page: " + server.Link})
	return nil
}

// servePage shows runs at an address. Where others can reach it, the link has a token.
func servePage(flag, addr string, runs ...*web.Run) (*web.Server, error) {
	token := ""
	if cluster.Exposed(addr) {
		token = cluster.NewSecret()
	}
	server, err := web.Listen(addr, token, runs...)
	if err != nil && addr == spec.WebAddr { // another run may have it
		server, err = web.Listen("127.0.0.1:0", token, runs...)
	}
	if err != nil {
		return nil, spec.Mistake(flag, graph.Sentence(err.Error()), "a free port of an address of this host", "port 0: any")
	}
	host, port, _ := net.SplitHostPort(server.Addr)
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		first, _, _ := strings.Cut(cluster.Reach(port), ",")
		server.Link = strings.Replace(server.Link, server.Addr, first, 1)
	}
	return server, nil
}

// open says what the run is, and what is expected of it.
func (o *outputs) open(p *plan.Plan, d *decision) {
	o.events.On(event.Opened{Schema: event.Schema, Program: version.Name(), Command: commandOf(os.Args),
		Settings: o.spec.String()})
	planned := event.Planned{EpochSeconds: math.NaN()}
	if p != nil {
		planned.Memory, planned.Workers, planned.Parts = p.Needed(), p.Each, p.Memory()
		planned.EpochBytes, planned.AtMost = p.SentEpoch, p.AtMost
		if p.Workers == 0 {
			planned.Workers = []int64{p.Needed()}
		}
	}
	if d != nil {
		x := &d.choice.Predicted
		planned.EpochSeconds, planned.EpochBytes = x.Seconds, x.Between+x.Inside
		planned.Why = fmt.Sprintf("--strategy auto: %s; %s", d.choice.Name, d.choice.Why)
	}
	if p != nil || d != nil {
		o.events.On(planned)
	}
}

// CommandLine is the command of this process.
func CommandLine() string { return commandOf(os.Args) }

// commandOf is a command as a shell takes it.
func commandOf(args []string) string {
	var words []string
	for _, a := range args {
		words = append(words, cluster.Quote(a))
	}
	return strings.Join(words, " ")
}

// conclude shows the result of the run, and has its page drawn where that is asked for.
func (o *outputs) conclude(r *report.Run) error {
	if o.page == nil && o.spec.Output.Events == "" {
		return nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return err
	}
	o.events.On(event.Result{Report: text})
	if page := o.page; page != nil {
		r.Page = func() []byte { return web.Page(page) }
	}
	return nil
}

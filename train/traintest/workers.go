package traintest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"starling/collective"
	"starling/event"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/train"
	"starling/wire"
	"starling/wire/tcp"
)

// Each calls f for all ranks below n, each in a goroutine of its own.
func Each(n int, f func(rank int)) {
	var wg sync.WaitGroup
	for k := range n {
		wg.Go(func() { f(k) })
	}
	wg.Wait()
}

// Ends are n endpoints in this process.
func Ends(n int) []wire.Endpoint { return wire.NewGroup(n, wire.DefaultOptions()) }

// ServerEnds are the endpoints of a partition's workers, which know who is on which server.
func ServerEnds(parts []*partition.Part) []wire.Endpoint {
	opt := wire.DefaultOptions()
	for k := range parts {
		opt.ServerOf = append(opt.ServerOf, parts[0].Book.Server(k))
	}
	return wire.NewGroup(len(parts), opt)
}

// Over is n endpoints in this process over a transport: inprocess, tcp or shm.
func Over(t testing.TB, transport string, n int) []wire.Endpoint {
	t.Helper()
	if transport == "inprocess" {
		return Ends(n)
	}
	cfgs := make([]wire.Config, n)
	addrs, hosts := make([]string, n), make([]string, n)
	for r := range cfgs {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		addrs[r], hosts[r] = l.Addr().String(), "this host"
		cfgs[r] = wire.Config{Options: wire.DefaultOptions(), Rank: r, Size: n, Job: "test", Addrs: addrs,
			HostIDs: hosts, Listener: l, NoSharedMemory: transport == "tcp"}
	}
	ends, errs := make([]wire.Endpoint, n), make([]error, n)
	Each(n, func(r int) { ends[r], errs[r] = tcp.Join(context.Background(), cfgs[r]) })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return ends
}

// Close closes endpoints.
func Close(ends []wire.Endpoint) {
	for _, e := range ends {
		e.Close()
	}
}

// Site is what a strategy of a part's worker is built on, on the float64 device.
func Site(part *partition.Part, end wire.Endpoint, o train.Options) *train.Site {
	ctx, dev := context.Background(), Ref()
	return &train.Site{Ctx: ctx, Dev: dev, Part: part, End: end,
		Peers: train.NewGroup(ctx, end, dev, part.Book.Servers), Opt: o, Events: event.All()}
}

// Plan is what a part's worker would send, found out without the others.
func Plan(part *partition.Part, end wire.Endpoint, o train.Options) (*wire.Plan, error) {
	dev := Ref()
	return train.DryRunBytes(part, end, dev, nn.New(dev, o.Model, 1), nn.Classify{}, o)
}

// Work trains as the worker of a part.
func Work(part *partition.Part, end wire.Endpoint, device func() tensor.Device, o train.Options,
	events event.Listener) (*train.Result, error) {
	dev := device()
	defer dev.Close()
	ctx := context.Background()
	if o.HostDevice == nil {
		o.HostDevice = device
	}
	_, linked := dev.(tensor.Linker)
	if not := (*collective.NotMet)(nil); linked {
		if _, _, err := collective.Meet(ctx, dev, end); err != nil && !errors.As(err, &not) {
			return nil, err
		}
	}
	r, err := train.Worker(ctx, dev, part, end, train.NewGroup(ctx, end, dev, part.Book.Servers), o, events)
	if linked && err == nil {
		err = collective.Part(ctx, dev, end)
	}
	return r, err
}

// TrainParts trains on a worker for each part.
func TrainParts(t testing.TB, parts []*partition.Part, device func() tensor.Device, o train.Options) []*train.Result {
	t.Helper()
	return TrainOver(t, Ends(len(parts)), parts, device, o)
}

// TrainOver is TrainParts over given endpoints, which it closes.
func TrainOver(t testing.TB, ends []wire.Endpoint, parts []*partition.Part, device func() tensor.Device,
	o train.Options) []*train.Result {
	t.Helper()
	return Observe(t, ends, parts, device, o).Results
}

// Trained is a run of several workers.
type Trained struct {
	Results []*train.Result
	Counted []wire.Bytes // what each of them sent
	Beside  []map[string]wire.Count
	Notes   []string     // of worker 0
	Spans   []event.Span // of worker 0
}

// TrainServers is TrainParts with links by server, and what was seen of it.
func TrainServers(t testing.TB, parts []*partition.Part, device func() tensor.Device, o train.Options) *Trained {
	t.Helper()
	return Observe(t, ServerEnds(parts), parts, device, o)
}

// Observe trains, compares what was sent with what was planned, and closes the endpoints.
func Observe(t testing.TB, ends []wire.Endpoint, parts []*partition.Part, device func() tensor.Device,
	o train.Options) *Trained {
	t.Helper()
	r := &Trained{Results: make([]*train.Result, len(parts)), Counted: make([]wire.Bytes, len(parts)),
		Beside: make([]map[string]wire.Count, len(parts))}
	errs := make([]error, len(parts))
	listeners := make([]event.Listener, len(parts))
	listeners[0] = event.Func(r.on)
	Each(len(parts), func(k int) {
		r.Results[k], errs[k] = Work(parts[k], ends[k], device, o, listeners[k])
		r.Counted[k], r.Beside[k] = ends[k].Ledger().SentBytes(), ends[k].Ledger().Beside()
	})
	for k, err := range errs {
		if err != nil {
			t.Fatalf("worker %d: %v", k, err)
		}
	}
	for k, e := range ends {
		plan := r.Results[k].Plan
		want := plan.Total(0, o.Epochs, len(r.Results[k].Measured), o.Epochs)
		if !keeps(plan, r.Counted[k], want) {
			t.Errorf("worker %d planned to send %v, sent %v", k, want, r.Counted[k])
		}
		e.Close()
	}
	return r
}

// on is what worker 0 reports, from one goroutine.
func (r *Trained) on(e event.Event) {
	switch e := e.(type) {
	case event.Note:
		r.Notes = append(r.Notes, e.Text)
	case event.Span:
		r.Spans = append(r.Spans, e)
	}
}

// keeps reports whether what was sent is what was planned.
func keeps(p *wire.Plan, sent, planned wire.Bytes) bool {
	if p.Drawn != nil {
		sent, planned = certain(sent, p.Drawn), certain(planned, p.Drawn)
	}
	if !p.AtMost {
		return maps.Equal(sent, planned)
	}
	for class, bytes := range sent {
		if bytes > planned[class] {
			return false
		}
	}
	return true
}

// certain is bytes without those of kinds and classes that depend on draws.
func certain(b, drawn wire.Bytes) wire.Bytes {
	out := wire.Bytes{}
	for c, bytes := range b {
		if _, draws := drawn[c]; !draws && c.Kind != wire.Feature && c.Kind != wire.Topology &&
			c.Kind != wire.Embedding {
			out.Add(c, bytes)
		}
	}
	return out
}

// Sum is the bytes that workers sent of some classes.
func (r *Trained) Sum(of func(c wire.Class) bool) (bytes int64) {
	for _, sent := range r.Counted {
		for class, b := range sent {
			if of(class) {
				bytes += b
			}
		}
	}
	return bytes
}

// Between are the bytes of rows and gradients that left for another server, of some layers
// or of all.
func (r *Trained) Between(layers ...int16) int64 {
	return r.Sum(func(c wire.Class) bool {
		return c.Link == wire.BetweenServers && IsRows(c) && (len(layers) == 0 || slices.Contains(layers, c.Layer))
	})
}

// IsRows reports whether a class is of rows or of their gradients.
func IsRows(c wire.Class) bool { return c.Kind == wire.Activation || c.Kind == wire.Gradient }

// ErrUnplugged is how the endpoint of Failing breaks.
var ErrUnplugged = errors.New("unplugged")

// Failing is an endpoint that breaks with its at-th message.
func Failing(end wire.Endpoint, at int) wire.Endpoint {
	f := &failing{Endpoint: end}
	f.at.Store(int32(at))
	return f
}

type failing struct {
	wire.Endpoint
	at atomic.Int32
}

func (f *failing) Send(to int, key wire.Key, kind wire.Kind, payload []byte) *wire.Pending {
	if f.at.Add(-1) == 0 {
		f.Fail(ErrUnplugged)
	}
	return f.Endpoint.Send(to, key, kind, payload)
}

// StopsTogether: when worker 1 breaks with its at-th message all end, and all know why.
// No worker waits longer than the endpoints' deadline.
func StopsTogether(t testing.TB, parts []*partition.Part, o train.Options, at int) {
	t.Helper()
	StopsTogetherOn(t, parts, Ref, o, at)
}

// StopsTogetherOn is StopsTogether on devices of the caller's.
func StopsTogetherOn(t testing.TB, parts []*partition.Part, device func() tensor.Device, o train.Options, at int) {
	t.Helper()
	ends := Ends(len(parts))
	defer Close(ends)
	errs := make([]error, len(parts))
	Each(len(parts), func(k int) {
		end := ends[k]
		if k == 1 {
			end = Failing(end, at)
		}
		_, errs[k] = Work(parts[k], end, device, o, nil)
	})
	for k, err := range errs {
		if err == nil || !strings.Contains(err.Error(), ErrUnplugged.Error()) {
			t.Errorf("%s, %s, broken at message %d: worker %d ended with %v", o.Strategy.Name(), o.Model.Model, at, k,
				err)
		}
	}
}

// Resumed trains, saves after some epochs and continues to the end; and resumes from what
// was saved, on new workers. With caches each has its own, without none: as on another
// partition. (Two runs that each begin may differ, where they measure what to choose by.)
func Resumed(t testing.TB, parts []*partition.Part, o train.Options, epoch int,
	caches bool) (whole, resumed *train.Result) {
	t.Helper()
	states := make([]*train.State, len(parts))
	whole = trainEach(t, parts, func(rank int) train.Options {
		o := o
		o.SaveEvery, o.MidwayOnly = epoch, true
		o.Save = func(s *train.State) error {
			if s.Epoch != epoch {
				return nil
			}
			for i := range s.Caches { // they are on the device, where they change
				c := &s.Caches[i]
				c.Data, c.Read = c.Numbers(), nil
			}
			states[rank] = s
			return nil
		}
		return o
	})
	resumed = trainEach(t, parts, func(rank int) train.Options {
		o, s := o, *states[rank]
		if !caches {
			s.Caches = nil
		}
		o.Resume = &s
		return o
	})
	return whole, resumed
}

// trainEach trains on workers with options of their own, and returns worker 0's result.
func trainEach(t testing.TB, parts []*partition.Part, o func(rank int) train.Options) *train.Result {
	t.Helper()
	ends := Ends(len(parts))
	defer Close(ends)
	results, errs := make([]*train.Result, len(parts)), make([]error, len(parts))
	Each(len(parts), func(k int) { results[k], errs[k] = Work(parts[k], ends[k], Single, o(k), nil) })
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	return results[0]
}

// OnAll runs f as the worker of each part, and compares what it sent with what it says it
// did.
func OnAll(t testing.TB, parts []*partition.Part, f func(s *train.Site) (wire.Bytes, error)) {
	t.Helper()
	ends := ServerEnds(parts)
	defer Close(ends)
	errs := make([]error, len(parts))
	Each(len(parts), func(k int) {
		sent, err := f(Site(parts[k], ends[k], train.Options{}))
		if err != nil {
			errs[k] = err
			ends[k].Fail(err)
			return
		}
		if got := ends[k].Ledger().SentBytes(); !maps.Equal(got, sent) {
			errs[k] = fmt.Errorf("planned to send %v, sent %v", sent, got)
		}
	})
	for k, err := range errs {
		if err != nil {
			t.Errorf("worker %d: %v", k, err)
		}
	}
}

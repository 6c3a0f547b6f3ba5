package plan

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/bits"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"starling/cost"
	"starling/disk"
	"starling/event"
	"starling/graph"
	"starling/netsim"
	"starling/nn"
	"starling/report"
	"starling/sample"
	"starling/setup"
	"starling/spec"
	"starling/store"
	"starling/tensor"
	"starling/tensor/cpu/simd"
	"starling/train"
	"starling/train/batch"
	"starling/wire"
)

// rates reads the file of rates, and measures where it has none of this machine.
func (o *Options) rates(ctx context.Context, events event.Listener) (*cost.Known, error) {
	known, err := o.ratesOf(o.Measure, events)
	if err != nil {
		return nil, err
	}
	if o.Links.Measure {
		if err := o.measureLinks(ctx, known, events); err != nil {
			return nil, err
		}
		if _, err := o.write(known); err != nil {
			return nil, err
		}
	}
	o.links = known.Links
	if o.Rate == "" && known.Between.Rate == 0 {
		known.Between = known.Inside
	}
	if known.Between, err = linkOf(o.Rate, o.Delay, known.Between); err == nil {
		o.useLinks(known, events)
	}
	return known, err
}

// ratesOf reads the file of rates; where it has none of this machine, or again, they are measured and written to it.
func (o *Options) ratesOf(again bool, events event.Listener) (*cost.Known, error) {
	path := o.ratesPath()
	known, err := ReadRates(path)
	switch {
	case err != nil && !o.absent(err) && !errors.Is(err, cost.ErrStale):
		return nil, err
	case errors.Is(err, cost.ErrStale):
		events.On(event.Note{Text: path + ": " + err.Error() + "; they are measured again"})
		known = nil
	}
	if known != nil && !again {
		return known, nil
	}
	events.On(event.Note{Minor: true, Text: "measuring the rates of this machine, which takes about a second"})
	if known, err = measureRates(); err != nil {
		return nil, err
	}
	return known, o.noteKept(known, events)
}

// Charged are the rates that simulations charge for a shape: those in the file, or where it has none, or again,
// measured ones that are kept there. path is where they are.
func (o *Options) Charged(shape string, measure func() (cost.Compute, error), events event.Listener) (
	c cost.Charging, path string, err error) {
	path = o.ratesPath()
	known, err := o.ratesOf(false, events)
	if err != nil {
		return c, "", err
	}
	if kept, ok := known.Charged[shape]; ok && !o.Measure {
		return kept, path, nil
	}
	rates, err := measure()
	if err != nil {
		return c, "", err
	}
	c = cost.Charging{Computing: rates.String(), Measured: time.Now().UTC().Format(time.RFC3339)}
	if known.Charged == nil {
		known.Charged = map[string]cost.Charging{}
	}
	known.Charged[shape] = c
	_, err = o.write(known)
	return c, path, err
}

// noteKept writes rates that were measured, and says where they are.
func (o *Options) noteKept(known *cost.Known, events event.Listener) error {
	why, err := o.write(known)
	switch {
	case err != nil:
		return err
	case why != nil:
		events.On(event.Note{Text: "the rates of this machine are measured but not kept: " +
			graph.Sentence(why.Error()) + "; name a file that can be written with --rates-file to measure once"})
	default:
		events.On(event.Note{Minor: true, Text: "rates of this machine are measured and kept in " + o.ratesPath()})
	}
	return nil
}

// write writes the file of rates. A user without a folder for caches goes on with what was measured, and why is set;
// a file that was named must be written.
func (o *Options) write(known *cost.Known) (why, err error) {
	if why = errNoCache; o.ratesPath() != "" {
		why = WriteRates(o.ratesPath(), known)
	}
	if why != nil && o.RatesFile != "" {
		return nil, spec.Mistake("--rates-file", graph.Sentence(why.Error()), "a file that can be written", "")
	}
	return why, nil
}

// absent reports whether rates could not be read for want of a file; one that was named may only be missing.
func (o *Options) absent(err error) bool {
	var path *fs.PathError
	return errors.Is(err, fs.ErrNotExist) || o.RatesFile == "" && errors.As(err, &path)
}

// errNoCache: there is nowhere to keep rates.
var errNoCache = errors.New("neither HOME nor XDG_CACHE_HOME is set")

// ratesPath is the file of rates; none if the user has no folder for caches.
func (o *Options) ratesPath() string {
	if o.RatesFile != "" {
		return o.RatesFile
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "starling", "rates.json")
}

// mostRates bounds the file.
const mostRates = 1 << 20

// ReadRates reads the file, and refuses rates of another machine.
func ReadRates(path string) (*cost.Known, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, mostRates))
	if err != nil {
		return nil, err
	}
	known, err := cost.ParseKnown(text)
	switch {
	case errors.Is(err, cost.ErrStale):
		return nil, err
	case err != nil:
		return nil, &graph.InputError{File: path, Found: graph.Sentence(err.Error()), Fix: "delete the file, or measure again with " +
			"starling plan --measure"}
	}
	return known, known.Check(Machine())
}

// WriteRates replaces the file in one step.
func WriteRates(path string, known *cost.Known) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return disk.Write(path, func(w io.Writer) error {
		_, err := w.Write(known.Text())
		return err
	})
}

// Learn takes the measured epochs of a run that was predicted into the file of rates, if there is one.
func (o *Options) Learn(s spec.Spec, predicted, measured float64) error {
	known, err := ReadRates(o.ratesPath())
	switch {
	case o.RatesFile == "" && o.absent(err):
		return nil // rates were not kept: see write
	case err != nil:
		return err
	}
	known.Learn(learntKind(&s), predicted, measured)
	_, err = o.write(known)
	return err
}

// Machine is this machine: rates of another are not used.
func Machine() string {
	return fmt.Sprintf("%s, %s, %s, rates of %s", cmp.Or(report.Processor(), runtime.GOARCH),
		event.Counted(runtime.NumCPU(), "core"),
		simd.Best(), cost.KnownFormat)
}

// measureRates times this machine's kernels and sockets, in about a second.
func measureRates() (*cost.Known, error) {
	s := spec.Default()
	dev := setup.NewCPU(&s)
	defer dev.Close()
	k := &cost.Known{Format: cost.KnownFormat, Machine: Machine(), Cores: runtime.NumCPU()}
	k.Compute = cost.MeasureCompute(dev, cost.Shape{Rows: 8192, Degree: 16, In: 128, Hidden: 128}, time.Now)
	k.Compute.Int8, k.Compute.BF16 = cost.MeasurePacking(dev, cost.Shape{Rows: 8192, Hidden: 128}, time.Now)
	k.Draw = measureDrawing()
	k.PullInt8, k.PullBF16 = measurePulling(store.Int8), measurePulling(store.BF16)
	sending, err := cost.MeasureSending(context.Background(), tensor.CPUSeconds)
	if err != nil {
		return nil, err
	}
	k.HostByte, k.HostMessage = 2*sending.Byte, 2*sending.Message
	k.Inside, err = measureSocket()
	return k, err
}

// measureDrawing is the processor seconds per edge of batches of a random graph.
func measureDrawing() float64 {
	const n, degree = 1 << 14, 16
	g := &graph.CSR{Indptr: make([]int64, n+1), Indices: make([]uint32, n*degree)}
	for v := range n {
		g.Indptr[v+1] = int64(v+1) * degree
		for k := range degree {
			g.Indices[v*degree+k] = uint32((v*2654435761 + k*40503) % n)
		}
	}
	seeds := make([]uint32, n)
	for v := range seeds {
		seeds[v] = uint32(v)
	}
	s := spec.Default()
	s.Mode, s.Batches.Fanout, s.Batches.Size, s.Model.Layers = "mini", "10,10", 512, 2
	settings, err := s.BatchSettings(nil)
	if err != nil {
		return 0
	}
	opt := batch.Options(settings)
	method, err := opt.Method(context.Background(), g, seeds, 2, false, 1)
	if err != nil {
		return 0
	}
	var b sample.Batch
	one, edges, began := method.Sampler(), 0, time.Now()
	for i := 0; time.Since(began) < 100*time.Millisecond; i++ {
		one.Sample(&b, 0, i%method.Batches())
		edges += b.Edges()
	}
	return time.Since(began).Seconds() / float64(max(edges, 1))
}

// measurePulling is the processor seconds per byte of rows of features that travel in another form.
func measurePulling(form store.Packed) float64 {
	const rows, cols = 2048, 128
	f := &graph.Features{Rows: rows, Cols: cols, F32: make([]float32, rows*cols)}
	list := make([]uint32, rows)
	for i := range f.F32 {
		f.F32[i] = float32(i%1013) - 500
	}
	for v := range list {
		list[v] = uint32(v)
	}
	form.RoundTrip(f, list) // takes the memory
	times, began := 0, time.Now()
	for ; time.Since(began) < 30*time.Millisecond; times++ {
		form.RoundTrip(f, list)
	}
	return time.Since(began).Seconds() / float64(times*4*rows*cols)
}

// Sizes of what a socket is timed with.
const (
	socketBytes    = 32 << 20
	socketMessages = 1000
)

// measureSocket is how fast bytes, and how soon messages, arrive between two ends on this host.
func measureSocket() (l cost.Link, err error) {
	a, b, err := socketPair()
	if err != nil {
		return l, err
	}
	defer a.Close()
	defer b.Close()
	deadline := time.Now().Add(20 * time.Second)
	_, _ = a.SetDeadline(deadline), b.SetDeadline(deadline)
	answered := make(chan error, 1)
	go func() { answered <- answer(b) }()
	chunk, began := make([]byte, 256<<10), time.Now()
	for sent := 0; sent < socketBytes && err == nil; sent += len(chunk) {
		_, err = a.Write(chunk)
	}
	l.Rate = socketBytes / time.Since(began).Seconds()
	one := make([]byte, 64)
	began = time.Now()
	for i := 0; i < socketMessages && err == nil; i++ {
		if _, err = a.Write(one); err == nil {
			_, err = io.ReadFull(a, one)
		}
	}
	l.Delay = time.Since(began).Seconds() / (2 * socketMessages)
	if err != nil {
		return l, err
	}
	return l, <-answered
}

// answer reads the bytes, and sends every message back.
func answer(c net.Conn) error {
	if _, err := io.CopyN(io.Discard, c, socketBytes); err != nil {
		return err
	}
	one := make([]byte, 64)
	for range socketMessages {
		if _, err := io.ReadFull(c, one); err != nil {
			return err
		}
		if _, err := c.Write(one); err != nil {
			return err
		}
	}
	return nil
}

// socketPair is two ends of a connection of this host.
func socketPair() (a, b net.Conn, err error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, err
	}
	defer listener.Close()
	type accepted struct {
		net.Conn
		error
	}
	came := make(chan accepted, 1)
	go func() {
		c, err := wire.Accept(listener, nil)
		came <- accepted{c, err}
	}()
	if a, err = net.DialTimeout("tcp", listener.Addr().String(), 5*time.Second); err != nil {
		return nil, nil, err
	}
	other := <-came
	return a, other.Conn, other.error
}

// calibrate sets how much longer a step of this model takes than rates say, with as many workers at once as share
// a machine. It is kept in the file.
func (p *planner) calibrate(events event.Listener) error {
	s := p.Spec
	s.ForData(&p.parts.Meta, simd.Best().String())
	if p.slowness = p.Options.slowness; p.slowness > 0 {
		return p.chooseBy(&s)
	}
	key := p.shapeKey(&s)
	if x, ok := p.known.Slowness[key]; ok && !p.Measure {
		p.slowness = x
		return p.chooseBy(&s)
	}
	opt, err := setup.Options(&s, &p.parts.Meta)
	if err != nil {
		return err
	}
	k, err := p.timeSteps(&s, opt)
	if err != nil {
		return err
	}
	p.slowness = k.Slowness(p.known.Compute)
	if p.known.Slowness == nil {
		p.known.Slowness = map[string]float64{}
	}
	p.known.Slowness[key] = p.slowness
	if err := p.keepRates(); err != nil {
		return err
	}
	return p.chooseBy(&s)
}

// keepRates writes what was learnt to the file; links that were given are not of it.
func (p *planner) keepRates() error { return p.Options.keep(p.known) }

func (o *Options) keep(known *cost.Known) error {
	kept := *known
	if o.Rate != "" {
		kept.Between = cost.Link{}
	}
	kept.SetLinks(o.links)
	_, err := o.write(&kept)
	return err
}

// shapeKey is what a model's slowness depends on.
func (p *planner) shapeKey(s *spec.Spec) string {
	book := p.parts.Book
	return fmt.Sprintf("%s %s layers=%d in=%d hidden=%d out=%d degree=2^%d rows=2^%d cache=%s sharing=%d threads=%d",
		s.Model.Name, s.Machine.DType, s.Model.Layers, p.featureDim(), s.Model.Hidden, book.Classes,
		bits.Len64(uint64(book.Edges/max(book.Nodes, 1))), min(bits.Len64(uint64(book.Nodes/int64(book.Parts))),
			14), s.Machine.CacheFirst, p.Sharing, s.Machine.CoresOf(p.Sharing))
}

// timeSteps times the model's steps on as many devices at once as workers share a machine.
func (p *planner) timeSteps(s *spec.Spec, opt train.Options) (k cost.Calibrated, err error) {
	n := p.Sharing
	meet := newMeeting(n)
	found, errs := make([]cost.Calibrated, n), make([]error, n)
	var all sync.WaitGroup
	for r := range n {
		all.Go(func() { found[r], errs[r] = p.timeOne(s, opt, r, meet) })
	}
	all.Wait()
	for _, one := range found {
		k.Seconds, k.Work = k.Seconds+one.Seconds/float64(n), one.Work
	}
	return k, errors.Join(errs...)
}

func (p *planner) timeOne(s *spec.Spec, opt train.Options, r int, meet *meeting) (cost.Calibrated, error) {
	one := *s
	one.Machine.Threads = s.Machine.CoresOf(p.Sharing)
	counter := newWorkCounter(setup.HostDevice(&one))
	defer counter.Close()
	dev := counter.Device
	part := p.open[0]
	if r < len(p.open) {
		part = p.open[r]
	}
	m := nn.New(dev, opt.Model, opt.Seed)
	defer m.Free(dev)
	step := &cost.Step{Dev: dev, Model: m, In: part.In, Features: part.Features, Rows: opt.Rows, CacheFirst: opt.CacheFirst,
		Seed: opt.Seed, Input: func(f *graph.Features) nn.Input { return train.Input(dev, f, opt) }}
	if schema := part.Book.Schema; schema != nil {
		step.Typed = &cost.TypedStep{Schema: schema, Core: part.CoreTypes(), All: part.Types, Features: part.TypeFeatures,
			Input: func(runs []graph.Run, f []*graph.Features) nn.Input {
				return train.TypedInput(dev, runs, f, schema, opt)
			}}
	}
	return step.Calibrate(meet, counter.sum)
}

// meeting lets workers of this process begin together. It implements cost.Cluster.
type meeting struct {
	n  int
	mu struct {
		sync.Mutex
		here int
	}
	all chan struct{}
}

func newMeeting(n int) *meeting { return &meeting{n: n, all: make(chan struct{})} }

// Share waits for all, once.
func (m *meeting) Share(...float64) ([][]float64, error) {
	m.mu.Lock()
	m.mu.here++
	if m.mu.here == m.n {
		close(m.all)
	}
	m.mu.Unlock()
	select {
	case <-m.all:
		return nil, nil
	case <-time.After(time.Minute):
		return nil, errors.New("timing steps: a worker of this process did not begin within a minute")
	}
}

func (*meeting) Exchange([]int, int) error { return nil }
func (*meeting) Peers(bool) []int          { return nil }
func (*meeting) Now() time.Time            { return time.Now() }

// chooseBy makes the rates that strategies choose by themselves: of a row and an edge of each layer.
func (p *planner) chooseBy(s *spec.Spec) error {
	opt, err := setup.Options(s, &p.parts.Meta)
	if err != nil {
		return err
	}
	dev := NewDryDevice(s)
	defer dev.Close()
	model := nn.New(dev, opt.Model, opt.Seed)
	defer model.Free(dev)
	in := float64(opt.Model.In)
	for range model.Convs() {
		out := float64(opt.Model.Hidden)
		row := cost.Work{Dense: 6 * in * out, Memory: 40 * out}
		edge := cost.Work{Sparse: 2 * min(in, out)}
		p.rates.Row = append(p.rates.Row, p.slowness*p.known.Compute.Seconds(row))
		p.rates.Edge = append(p.rates.Edge, p.slowness*p.known.Compute.Seconds(edge))
		in = out
	}
	if p.known.Inside.Rate > 0 {
		p.rates.Inside = 1 / p.known.Inside.Rate
	}
	if p.known.Between.Rate > 0 {
		p.rates.Between = float64(p.Cluster.Workers) / float64(max(p.Cluster.Servers, 1)) / p.known.Between.Rate
	}
	p.rates = p.rates.Rounded()
	return nil
}

// learntKind is what predictions are corrected by, once runs have been seen.
func learntKind(s *spec.Spec) string { return s.Mode + " " + s.Model.Name + " " + s.StrategyName() }

// linkOf is a link of a given rate and delay.
func linkOf(rate, delay string, l cost.Link) (cost.Link, error) {
	if rate != "" {
		r, err := netsim.ParseRate(rate)
		if err != nil {
			return l, spec.Mistake("--rate", fmt.Sprintf("%q", rate), "a rate", "for example 25gbit")
		}
		l.Rate = float64(r) / 8
	}
	if delay != "" {
		d, err := netsim.ParseTime(delay)
		if err != nil {
			return l, spec.Mistake("--delay", fmt.Sprintf("%q", delay), "a time", "for example 50us")
		}
		l.Delay = float64(d) / float64(netsim.Second)
	}
	if math.IsNaN(l.Rate) || l.Rate <= 0 {
		return l, spec.Mistake("--rate", "none, and workers on several servers", "the rate of the links between them",
			"for example --rate 1gbit")
	}
	return l, nil
}

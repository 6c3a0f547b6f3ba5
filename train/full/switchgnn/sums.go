package switchgnn

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"starling/coflow"
	"starling/event"
	"starling/exchange"
	"starling/innet"
	"starling/innet/udp"
	"starling/nn"
	"starling/tensor"
	"starling/wire"
)

// strategy is the aggregator of rows inside a server, and adds to its sums those of the
// switch.
type strategy struct {
	*exchange.Aggregator
	w     *exchange.Worker
	setup *exchange.Setup

	degrees           *nn.Degrees // of own vertices
	forward, backward *side
	server            *udp.Server // that this worker has started
	client            innet.Client
	ctx               context.Context // ends with the endpoint
	cancel            context.CancelFunc

	applied map[nn.Reduction]bool // sums of the switch are in the constant of Aggregator
	sent    innet.HostCounts      // counted in the ledger
	epoch   int
	batch   int
	failed  error

	rows, sums []float64 // of the exchange under way
}

// silence is how long the switch may say nothing.
const silence = 30 * time.Second

// prepare joins the switch and makes the plan with all workers.
func (s *strategy) prepare(o options) error {
	s.ctx, s.cancel = context.WithCancel(s.w.Ctx)
	go func() {
		select {
		case <-s.w.End.Done():
			s.cancel()
		case <-s.ctx.Done():
		}
	}()
	b, err := gather(s.setup)
	if err != nil {
		return err
	}
	o.SwitchUnits = s.units(o.SwitchUnits)
	if err := s.connect(o); err != nil {
		return err
	}
	memory, err := o.memory()
	if err != nil {
		return err
	}
	leaves := 1
	if s.client != nil {
		memory, leaves = s.client.Memory(), s.client.Leaves()
	}
	room := innet.Registers(memory, o.SwitchUnits, leaves)
	b.graph.Shuffled, b.graph.Division = o.SwitchOrder == "random", innet.Division(o.SwitchBlocks)
	if b, err = s.divided(b, room); err != nil {
		return err
	}
	if s.client != nil {
		if err := s.client.Install(s.ctx, b.plan); err != nil {
			return err
		}
	}
	plan := inside(s.w)
	s.Aggregator = exchange.NewAggregator(s.w, exchange.NewRows(s.w), exchange.NewHalo(s.w.Dev, plan))
	s.Prepare = s.setup.Sent
	s.degrees = plan.Degrees.Slice(0, plan.Src)
	s.forward, s.backward = b.side(s.w, b.forward), b.side(s.w, b.backward)
	s.note(b, room.Aggregators())
	return s.times(b, room.Aggregators())
}

// units is how many units packets and aggregators have: as many as allowed, but no more than the widest row needs.
func (s *strategy) units(most int) int {
	m := nn.New(s.w.Dev, s.w.Model, s.w.Seed)
	defer m.Free(s.w.Dev)
	widest := 1
	for _, training := range []bool{true, false} {
		for _, t := range m.Traffic(s.sparse(), s.w.FirstSum(), training) {
			widest = max(widest, t.Once, t.Forward.Rows, t.Backward.Rows)
		}
	}
	return min(most, (widest+innet.UnitLanes-1)/innet.UnitLanes)
}

// sparse says that features are.
func (s *strategy) sparse() bool {
	return s.w.Part.Book.Features != nil && s.w.Part.Features.Indptr != nil
}

// divided is the boundary with its blocks. Workers of a simulated network share one.
func (s *strategy) divided(b *boundary, room innet.Budget) (*boundary, error) {
	f, ok := s.w.End.(innet.Fabric)
	if !ok {
		return b, errors.Join(b.divide(s.ctx, s.setup, room), b.compare(s.setup))
	}
	one, err := f.Shared(func() (any, error) { return b, b.divide(s.ctx, s.setup, room) })
	if err != nil {
		return nil, err
	}
	return one.(*boundary), nil
}

// note tells of the blocks, and what they are there for.
func (s *strategy) note(b *boundary, limit int) {
	if s.w.End.Rank() != 0 {
		return
	}
	rows, sums := 0, 0
	for _, k := range b.plan.Blocks[b.forward[0]:b.forward[1]] {
		rows, sums = rows+len(k.Rows), sums+len(k.Slots)
	}
	w := innet.Strawman(b.graph, limit)
	s.w.Note("the switch adds up %s in %s forward and %s backward: %s in and %s out forward; without blocks %s in, "+
		"and %s and %s out", event.Counted(len(b.vertices), "boundary vertex"),
		event.Counted(b.forward[1]-b.forward[0], "block"), event.Counted(b.backward[1]-b.backward[0], "block"),
		event.Counted(rows, "row"), event.Counted(sums, "sum"), event.Counted(w.Rows, "row"),
		event.Counted(w.Sums, "sum"), event.Counted(w.Raw, "single row"))
}

// times tells what exchanges take in a simulated network, where that is asked for.
func (s *strategy) times(b *boundary, limit int) error {
	t, ok := s.client.(innet.Timed)
	if !ok || s.w.End.Rank() != 0 {
		return nil
	}
	blocks, strawman, unlimited, err := t.Times(b.plan, b.forward[0], b.forward[1], b.graph, limit)
	if blocks > 0 {
		s.w.Note("an exchange of rows of one packet takes %v with blocks, %v without, and %v with aggregators for all",
			blocks, strawman, unlimited)
	}
	return err
}

// udpClient is a host that reaches the switch through sockets.
type udpClient struct{ *udp.Client }

func (c udpClient) Memory() int64 { return c.Registers }

func (c udpClient) Leaves() int { return 1 }

// connect joins the switch that was given, or one that worker 0 starts. A memory dry run
// joins none.
func (s *strategy) connect(o options) error {
	w := s.w
	if w.MemoryOnly {
		return nil
	}
	if f, ok := w.End.(innet.Fabric); ok {
		return s.joinSimulated(f, o)
	}
	token, err := o.token()
	if err != nil {
		return err
	}
	job, addr, err := s.meet(o)
	if err != nil {
		return err
	}
	if o.Switch == "" {
		token = ownToken(job)
	}
	c, err := udp.Connect(s.ctx, udp.ClientOptions{Addr: addr, Token: token, Job: job, Rank: w.End.Rank(),
		Hosts: w.End.Size(), Units: o.SwitchUnits, Timeout: silence,
		Progress: w.End.Timeout(), Host: udp.DefaultHost})
	switch {
	case err == nil:
		s.client = udpClient{c}
	case o.Switch == "":
		return fmt.Errorf("%w; the run's own switch is for workers of one host: start a starling switch and give its "+
			"address as --switch", err)
	}
	return err
}

// joinSimulated joins the switches of a simulated network, when all workers do.
func (s *strategy) joinSimulated(f innet.Fabric, o options) (err error) {
	memory, err := o.memory()
	if err == nil {
		s.client, err = f.JoinSwitch(innet.JoinOptions{Units: o.SwitchUnits, Memory: memory})
	}
	if err != nil {
		return err
	}
	_, err = s.setup.Share(0)
	return err
}

// ownToken is the secret of a switch that the run starts itself, for its own workers: they alone know
// the random number of the job, so that other users of the host cannot use or disturb the switch.
func ownToken(job uint64) []byte {
	sum := sha256.Sum256(fmt.Appendf(nil, "switch of job %x", job))
	return sum[:]
}

// meet tells all workers which job this is, and where its switch listens.
func (s *strategy) meet(o options) (job uint64, addr string, err error) {
	out := make([][]byte, s.w.End.Size())
	if s.w.End.Rank() == 0 {
		var id [8]byte
		rand.Read(id[:])
		if addr = o.Switch; addr == "" {
			opt := udp.DefaultServer
			opt.Memory, _ = o.memory()
			opt.Token = ownToken(binary.LittleEndian.Uint64(id[:]))
			if s.server, err = udp.Listen(opt); err != nil {
				return 0, "", err
			}
			addr = s.server.Addr()
		}
		for q := range out {
			out[q] = append(id[:], addr...)
		}
	}
	in, err := s.setup.Swap(wire.Control, out)
	if err != nil {
		return 0, "", err
	}
	if len(in[0]) <= 8 {
		return 0, "", fmt.Errorf("worker 0 says nothing of the switch")
	}
	return binary.LittleEndian.Uint64(in[0]), string(in[0][8:]), nil
}

func (s *strategy) Begin(epoch, batch int, training bool) {
	s.epoch, s.batch = epoch, batch
	s.Aggregator.Begin(epoch, batch, training)
}

func (s *strategy) Err() error { return errors.Join(s.failed, s.Aggregator.Err()) }

// Finish leaves the switch; the worker that has started it waits for the others to.
func (s *strategy) Finish() error {
	err := s.Aggregator.Finish()
	if s.client != nil {
		n := s.client.Counts()
		s.w.Note("worker 0 received %s of the switch and made %d of rows that it pulled (%d); it sent %s, "+
			"%d again; %s", event.Counted(n.Sums, "sum"), n.Raw, n.Pulls, event.Counted(n.Rows, "row"), n.Resends,
			event.Counted(n.Marks, "congestion mark"))
		s.w.Note("worker 0 was in %s for %v: %v until it had its sums, %v at barriers%s",
			event.Counted(n.Rounds, "round"), (n.Moving + n.Barriers).Round(time.Microsecond),
			n.Moving.Round(time.Microsecond), n.Barriers.Round(time.Microsecond), s.passes())
	}
	s.close()
	return err
}

// passes says what the pipelines of simulated switches did.
func (s *strategy) passes() string {
	p, ok := s.client.(innet.Pipelined)
	if !ok {
		return ""
	}
	passes, busiest := p.Passes()
	return fmt.Sprintf("; %s through the switches, of which the busiest worked for %v", event.Counted(passes, "pass"),
		busiest.Round(time.Microsecond))
}

func (s *strategy) close() {
	if s.client != nil {
		s.client.Close()
	}
	if s.server != nil {
		for range 500 {
			if s.server.Stats().Hosts == 0 || s.ctx.Err() != nil {
				break
			}
			wire.Sleep(s.ctx, wire.Real, 10*time.Millisecond)
		}
		s.server.Close()
	}
	s.cancel()
}

func (s *strategy) Sum(layer int, r nn.Reduction, dst, src tensor.Matrix) {
	wait := s.exchange(s.forward, wire.Activation, layer, src, s.sources(r.Kind))
	s.Aggregator.Sum(layer, r, dst, src)
	wait(dst, s.degrees.Factors(r.Kind))
}

func (s *strategy) SumGrad(layer int, r nn.Reduction, dsrc, ddst tensor.Matrix) {
	wait := s.exchange(s.backward, wire.Gradient, layer, ddst, s.degrees.Factors(r.Kind))
	s.Aggregator.SumGrad(layer, r, dsrc, ddst)
	wait(dsrc, s.sources(r.Kind))
}

// Constant is the sum of Aggregator, with that of the switch added when it is made.
func (s *strategy) Constant(r nn.Reduction, src tensor.Matrix) (tensor.Matrix, bool) {
	if !s.w.CacheFirst {
		return tensor.Matrix{}, false
	}
	if s.applied[r] {
		return s.Aggregator.Constant(r, src)
	}
	s.applied[r] = true
	wait := s.exchange(s.forward, wire.Feature, -1, src, s.sources(r.Kind))
	sum, ok := s.Aggregator.Constant(r, src)
	wait(sum, s.degrees.Factors(r.Kind))
	return sum, ok
}

// sources are the factors of source rows; nil: none.
func (s *strategy) sources(k nn.Kind) []float64 {
	if k == nn.Symmetric {
		return s.degrees.Factors(k)
	}
	return nil
}

// exchange sends rows of m through the switch, each times its factor. The function that it
// returns waits for the sums and adds them, times their factors, to another matrix.
func (s *strategy) exchange(side *side, kind wire.Kind, layer int, m tensor.Matrix,
	factor []float64) (finish func(into tensor.Matrix, factor []float64)) {
	if s.client == nil || s.failed != nil || side.lo == side.hi {
		return func(tensor.Matrix, []float64) {}
	}
	width, start := m.Cols, s.w.Now()
	rows := s.download(m, side)
	most := scale(rows, width, side.sendsLocal, factor)
	s.sums = slices.Grow(s.sums[:0], len(side.recvLocal)*width)[:len(side.recvLocal)*width]
	sums := s.sums
	clear(sums)
	wait := s.client.Start(&innet.Exchange{Lo: side.lo, Hi: side.hi, Width: width, Most: most,
		Row: func(v uint32, lo, hi int) []float64 {
			at := int(side.place[v]) * width
			return rows[at+lo : at+hi]
		},
		Add: func(v uint32, lo int, sum []float64) {
			into := sums[int(side.recvPlace[v])*width+lo:]
			for c, x := range sum {
				into[c] += x
			}
		}})
	return func(into tensor.Matrix, factor []float64) {
		waiting := s.w.Now()
		if err := wait(s.ctx); err != nil {
			s.fail(err)
			return
		}
		s.count(kind, layer)
		s.report(kind, layer, start, waiting)
		scale(sums, width, side.recvLocal, factor)
		s.add(into, sums, side)
	}
}

// download is the rows of m that are sent, on the host.
func (s *strategy) download(m tensor.Matrix, side *side) []float64 {
	s.rows = slices.Grow(s.rows[:0], len(side.sendsLocal)*m.Cols)[:len(side.sendsLocal)*m.Cols]
	rows := s.rows
	out := s.w.Dev.Scratch(m.Type(), len(side.sendsLocal), m.Cols)
	s.w.Dev.GatherRows(out, m, side.sends)
	s.w.Dev.Download(rows, out)
	s.w.Dev.Free(out)
	return rows
}

// add adds sums to rows of a matrix.
func (s *strategy) add(into tensor.Matrix, sums []float64, side *side) {
	in := s.w.Dev.Scratch(into.Type(), len(side.recvLocal), into.Cols)
	s.w.Dev.Upload(in, sums)
	s.w.Dev.ScatterAdd(into, in, side.receives)
	s.w.Dev.Free(in)
}

// scale multiplies rows by the factors of their vertices, and is the largest magnitude.
func scale(rows []float64, width int, local []uint32, factor []float64) (most float64) {
	for i, v := range local {
		row := rows[i*width : (i+1)*width]
		for c := range row {
			if factor != nil {
				row[c] *= factor[v]
			}
			if x := math.Abs(row[c]); x > most || x != x {
				most = x
			}
		}
	}
	return most
}

// fail keeps the first failure, and tells the other workers.
func (s *strategy) fail(err error) {
	if end := s.w.End.Err(); end != nil {
		err = end // of another worker, which ended the wait
	}
	if s.failed == nil {
		s.failed = err
		s.w.End.Fail(err)
	}
}

// What passes the switch, by its names in the ledger and in reports: rows as they left first, which payloads have too,
// and beside them sums that arrived, rows that left again, and everything else that left.
const (
	besideRows    = "switch_rows"
	besideSums    = "switch_sums"
	besideRepeats = "switch_repeated_rows"
	besideHeaders = "switch_headers"
)

// count adds what has left since the last exchange to the ledger: rows, each once, as what
// they are, and all else as overhead, by what it is.
func (s *strategy) count(kind wire.Kind, layer int) {
	now := s.client.Counts()
	key := wire.Key{Coflow: coflow.ID{Epoch: uint32(s.epoch), Batch: uint32(s.batch), Layer: int16(layer)}}
	ledger, last := s.w.End.Ledger(), s.sent
	if rows := now.RowBytes - last.RowBytes; rows > 0 {
		ledger.AddSent(kind, wire.BetweenServers, key, int(rows), int(now.OtherBytes-last.OtherBytes))
	}
	repeated := now.RepeatBytes - last.RepeatBytes
	for name, n := range map[string]wire.Count{
		besideRows:    {Messages: now.Rows - last.Rows, Bytes: now.RowBytes - last.RowBytes},
		besideSums:    {Messages: now.Sums - last.Sums, Bytes: now.SumBytes - last.SumBytes},
		besideRepeats: {Messages: now.Repeats - last.Repeats, Bytes: repeated},
		besideHeaders: {Bytes: now.OtherBytes - last.OtherBytes - repeated},
	} {
		ledger.AddBeside(name, n)
	}
	s.sent = now
}

// report puts an exchange on the timeline.
func (s *strategy) report(kind wire.Kind, layer int, start, waiting time.Time) {
	name, now := fmt.Sprintf("%v sums of layer %d", kind, layer), s.w.Now()
	s.w.Events.On(event.Span{Name: name, Kind: "transfer", Lane: 1, Start: start, Dur: now.Sub(start)})
	s.w.Events.On(event.Span{Name: name, Kind: "wait", Start: waiting, Dur: now.Sub(waiting)})
}

// Plan is the rows that travel inside the server, and those that leave for the switch: each
// boundary vertex once per block, layer and direction.
func (s *strategy) Plan(model *nn.Model) *wire.Plan {
	p := s.Aggregator.Plan(model)
	if s.client == nil {
		return p
	}
	sparse := s.sparse()
	training, measuring := model.Traffic(sparse, s.w.FirstSum(), true), model.Traffic(sparse, s.w.FirstSum(), false)
	add := func(to wire.Bytes, kind wire.Kind, layer int, side *side, width int) {
		to.Add(wire.Class{Kind: kind, Layer: int16(layer), Link: wire.BetweenServers}, 4*side.rows*int64(width))
	}
	for i, t := range training {
		add(p.Once, wire.Feature, -1, s.forward, t.Once)
		add(p.OnceMeasured, wire.Feature, -1, s.forward, measuring[i].Once-t.Once)
		add(p.Measure, wire.Activation, t.Layer, s.forward, measuring[i].Forward.Rows)
	}
	rows := p.Epoch
	p.Epoch = func(epoch int) wire.Bytes {
		out := rows(epoch)
		for _, t := range training {
			add(out, wire.Activation, t.Layer, s.forward, t.Forward.Rows)
			add(out, wire.Gradient, t.Layer, s.backward, t.Backward.Rows)
		}
		return out
	}
	return p
}

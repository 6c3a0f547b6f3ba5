package exchange

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/partition"
	"starling/tensor"
	"starling/wire"
)

// Worker is what an exchange works with: the device, the part and the endpoint of one
// worker, and how its rows travel.
type Worker struct {
	Ctx    context.Context
	Dev    tensor.Device
	Part   *partition.Part
	End    wire.Endpoint
	Events event.Listener
	// AllReduce adds numbers over all workers, in place.
	AllReduce func(epoch, batch int, v []float64) error

	Strategy   string // its name, for notes and saved rows
	Model      nn.Config
	Seed       uint64
	Rows       tensor.DType // storage type of rows of vertices
	CacheFirst bool         // the sum over constant features is kept
	NoCopies   bool         // sums of others' rows are received, not the rows

	RowOptions
	// Masked: gradients travel only where their rows are not zero: see sparse.go.
	Masked bool
	// Relayed: a row that several workers of a server need travels between servers once.
	Relayed bool

	// Saved is what a resumed run continues from.
	Saved *Saved
	// Alone: there are no peers (a dry run).
	Alone bool
	// MemoryOnly: only the memory that is taken matters, not what is in it.
	MemoryOnly bool
}

// RowOptions say how rows travel: options of every strategy that exchanges rows.
type RowOptions struct {
	SparseRows bool   `json:"sparse_rows" suffix:"sparse" try:"true" resume:"free" omit:"default" why:"rows of fixed point, features and sums have no zeros that a ReLU has made, and blocks of columns travel whole" help:"send hidden rows without their zeros, and gradients only where the rows are not zero; nothing is rounded (gcn and sage from 3 layers on, gin, resgcn+, ressage+)"`
	WireDType  string `json:"wire_dtype" values:"none,bf16,int8" exact:"none" try:"bf16,int8" suffix:"*" omit:"default" why:"strategies without it send fixed point or blocks of columns, pull rows by --pull-dtype, or send no rows of features" help:"type that rows travel in: none (as they are), bf16 or int8, with error feedback"`
}

// DefaultRows sends rows as they are.
var DefaultRows = RowOptions{WireDType: "none"}

// Validate refuses what does not go together.
func (o *RowOptions) Validate() error {
	if o.SparseRows && o.WireDType != "none" {
		return graph.Apart("--sparse-rows", "--wire-dtype "+o.WireDType, "the error-feedback residual of rounded rows "+
			"fills the zeros that would be left out", "leave out one of the two")
	}
	return nil
}

// RelayOption is an option of strategies that can relay rows inside servers.
type RelayOption struct {
	Relay bool `json:"relay" suffix:"relay" try:"true" resume:"free" omit:"default" why:"strategies without it send a row to a server once anyway, pull rows from their owners, or send blocks of columns" help:"send a row that several workers of a server need between servers once; the workers relay it to each other"`
}

// Check refuses what a model's rows cannot do.
func (o *RowOptions) Check(m *nn.Config) error {
	if !o.SparseRows || sendsZeros(m) {
		return nil
	}
	return graph.Apart("--sparse-rows", fmt.Sprintf("--model %s of %d layers", m.Model, m.Layers),
		"it leaves out the zeros of hidden layers' rows, and no such rows are sent",
		"leave it out; it is for gcn and sage from 3 layers on, gin, resgcn+ and ressage+")
}

// Check refuses to relay where there is nothing to.
func (o *RelayOption) Check(workers, servers int) error {
	switch {
	case !o.Relay:
	case servers < 2:
		return graph.Apart("--relay", fmt.Sprintf("all %d workers on one server", workers),
			"it relays rows that come from other servers", "group the workers with --servers, or leave out --relay")
	case workers <= servers:
		return graph.Apart("--relay", fmt.Sprintf("--servers %d of %d workers", servers, workers),
			"it relays rows to the other workers of a server, and each has one worker",
			"give fewer --servers, or leave out --relay")
	}
	return nil
}

// FirstSum is what happens to the sum over the features.
func (w *Worker) FirstSum() nn.FirstSum {
	switch {
	case !w.CacheFirst:
		return nn.Computed
	case w.NoCopies:
		return nn.Kept
	}
	return nn.Redrawn
}

// Now is the run's clock.
func (w *Worker) Now() time.Time { return w.End.Clock().Now() }

// Server is the ranks of this worker's server: first to last-1.
func (w *Worker) Server() (first, last int) {
	each := w.Part.Book.Parts / max(w.Part.Book.Servers, 1)
	first = w.Part.Book.Server(w.Part.Meta.Part) * each
	return first, first + each
}

// Peers lists the other ranks, beginning with the next, so that not all send to rank 0
// first.
func (w *Worker) Peers() (peers []int) {
	n := w.End.Size()
	for i := range n - 1 {
		peers = append(peers, (w.End.Rank()+1+i)%n)
	}
	return peers
}

// Global is a local vertex's number in the partition.
func (w *Worker) Global(local uint32) uint32 {
	if core := uint32(w.Part.Core()); local >= core {
		return w.Part.Halo[local-core]
	}
	return uint32(w.Part.Book.Offsets[w.Part.Meta.Part]) + local
}

// Own is the local number of a vertex of this worker.
func (w *Worker) Own(v uint32) (local uint32, ok bool) {
	local = v - uint32(w.Part.Book.Offsets[w.Part.Meta.Part])
	return local, local < uint32(w.Part.Core())
}

// Edges are the part's in-edges, from vertices by their numbers in the partition.
func (w *Worker) Edges() *graph.CSR {
	in := *w.Part.In
	in.Indices = make([]uint32, len(in.Indices))
	for e, u := range w.Part.In.Indices {
		in.Indices[e] = w.Global(u)
	}
	return &in
}

// Class is a class of bytes to a peer.
func (w *Worker) Class(kind wire.Kind, layer, peer int) wire.Class {
	return wire.Class{Kind: kind, Layer: int16(layer), Link: w.End.Link(peer)}
}

// Note reports what was decided. Only worker 0 does, as the others decide alike.
func (w *Worker) Note(text string, values ...any) {
	if w.End.Rank() == 0 {
		w.Events.On(event.Note{Minor: true, Text: fmt.Sprintf(text, values...)})
	}
}

// Chosen reports, on worker 0, the settings that what was chosen follows from: a run that is given them
// chooses the same.
func (w *Worker) Chosen(settings map[string]string) {
	if w.End.Rank() != 0 {
		return
	}
	text := w.Strategy + " chooses by these rates; a run with them chooses the same:"
	for _, name := range slices.Backward(slices.Sorted(maps.Keys(settings))) {
		text += " --" + strings.ReplaceAll(name, "_", "-") + " " + settings[name]
	}
	w.Events.On(event.Note{Minor: true, Text: text, Settings: settings})
}

// await returns when all have arrived, and reports how long they travelled and how much
// of that was waited for.
func (w *Worker) await(name string, start time.Time, arriving []*wire.Pending) error {
	if len(arriving) == 0 {
		return nil
	}
	waiting, last := w.Now(), start
	var first error
	for _, p := range arriving {
		err := p.Wait(w.Ctx)
		switch {
		case err == nil && p.At().After(last):
			last = p.At()
		case err != nil && first == nil:
			first = err
			w.End.Fail(err) // the others end too, and no buffer is written to any more
			p.Wait(w.Ctx)
		}
	}
	if first != nil {
		return first
	}
	w.Events.On(event.Span{Name: name, Kind: "transfer", Lane: 1, Start: start, Dur: last.Sub(start)})
	w.Events.On(event.Span{Name: name, Kind: "wait", Start: waiting, Dur: w.Now().Sub(waiting)})
	return nil
}

package rows

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Options say which rows there are, and which of them batches need.
type Options struct {
	Width int // bytes of a row
	// Files have the rows, in ascending order, from 0 on and without a gap.
	Files []File
	// Memory is what rows, buffers and plans may take. Grow: they take more where they cannot do with it.
	Memory int64
	Grow   bool
	// Scratch is the folder for packed rows, and Packed the bytes of them that a window may have; 0: none is packed.
	Scratch string
	Packed  int64
	// Batches is the number of batches, and Held how many of them may have their rows and not have given them back.
	Batches int64
	Held    int
	// Draw makes what says which rows a batch needs, in any order. It is used by one goroutine, of Threads.
	Draw    func() func(number int64) ([]uint32, error)
	Threads int
	// Patience is how long a batch waits while nothing is drawn, read or written; 0: two minutes.
	Patience time.Duration
	// Note is told what a user should know.
	Note func(text string)

	engine func() engine // nil: newEngine
}

const patience = 2 * time.Minute

// mostBack bounds the batches whose staging memory is given back and was not asked for.
const mostBack = 1024

// mostWindow bounds the batches of a window, and firstWindow is how many the first has, which training waits for. The
// others have twice as many as the one before.
const mostWindow, firstWindow = 1024, 8

// listBytes is about what a row of a batch takes while its window is planned and until it is read.
const listBytes = 10

var errEnded = errors.New("ended")

// Stats is what a feed has done.
type Stats struct {
	Read, Reads, Packed, Rows, Missed atomic.Int64 // bytes, pieces; bytes; rows of batches, and those that were read
	Windows, PackedWindows            atomic.Int64
	drawn                             atomic.Int64
}

func (s *Stats) read(bytes int) {
	s.Read.Add(int64(bytes))
	s.Reads.Add(1)
}

func (s *Stats) wrote(bytes int) { s.Packed.Add(int64(bytes)) }

// progress changes while anything goes on.
func (s *Stats) progress() int64 { return s.Reads.Load() + s.Packed.Load() + s.drawn.Load() }

// Feed gives batches their rows, in order.
type Feed struct {
	Stats   Stats
	options Options
	layout  layout
	sizes   sizes
	drawers []func(number int64) ([]uint32, error)
	first   []encoded // batches that were drawn to know their sizes

	windows chan *window
	staged  chan *staged
	back    chan int64 // bytes of staging memory
	room    chan struct{}
	lent    lender // rows of batches
	read    lender // rows that were read

	// Of the batch that is served: where rows are, by number, and the rows that are kept.
	where []int32
	kept  []byte
	rowOf []uint32 // by slot; valid where used
	used  []bool

	turn struct {
		sync.Mutex
		next int64
		wait map[int64]chan struct{}
	}
	end struct {
		once sync.Once
		err  error
		done chan struct{}
		is   atomic.Bool
	}
	wg sync.WaitGroup
}

// New opens the files and draws a few batches, and begins to read ahead.
func New(o Options) (*Feed, error) {
	f := &Feed{options: o, windows: make(chan *window), back: make(chan int64, mostBack),
		room: make(chan struct{}, max(o.Held, 1)), layout: layout{width: o.Width}}
	f.end.done, f.turn.wait = make(chan struct{}), map[int64]chan struct{}{}
	if f.options.Patience == 0 {
		f.options.Patience = patience
	}
	if f.options.engine == nil {
		f.options.engine = newEngine
	}
	if o.Packed > 0 && inMemory(o.Scratch) {
		f.options.Packed = 0
		f.note(o.Scratch + " keeps files in memory: rows of features are not packed there, but read where they are")
	}
	var err error
	if f.layout.files, err = openFiles(o.Files, o.Width); err == nil {
		err = f.begin()
	}
	if err != nil {
		f.fail(err)
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// begin takes memory and starts.
func (f *Feed) begin() (err error) {
	for range max(f.options.Threads, 1) {
		f.drawers = append(f.drawers, f.options.Draw())
	}
	if f.first, err = f.draw(0, int(min(firstWindow, f.options.Batches))); err != nil {
		return err
	}
	rows := 0
	for i := range f.first {
		rows = max(rows, f.first[i].rows)
	}
	last := f.options.Files[len(f.options.Files)-1]
	all := int64(last.First) + int64(last.Rows)
	f.sizes, err = f.divide(all, int64(rows))
	for err != nil && f.options.Grow {
		f.options.Memory += f.options.Memory/8 + block
		f.sizes, err = f.divide(all, int64(rows))
	}
	if err != nil {
		return err
	}
	if f.kept, err = memory(f.sizes.slots * f.options.Width); err != nil {
		return err
	}
	f.where, f.rowOf = make([]int32, f.sizes.rows), make([]uint32, f.sizes.slots)
	f.used = make([]bool, f.sizes.slots)
	for v := range f.where {
		f.where[v] = absent
	}
	f.staged = make(chan *staged, f.sizes.ahead)
	for range cap(f.room) {
		f.room <- struct{}{}
	}
	f.wg.Go(func() { f.fail(f.plan()) })
	f.wg.Go(func() { f.fail(f.bring()) })
	return nil
}

// sizes is how memory is divided.
type sizes struct {
	rows, slots int   // of the files; that are kept
	staging     int64 // bytes of rows that were read and not taken
	ahead       int   // batches of them
	list        int64 // rows of the batches of a window
	writes      int   // bytes of buffers that rows are packed from
	pieces      int   // of files that are read at a time
}

// divide divides memory, where batches have some rows.
func (f *Feed) divide(rows, batch int64) (s sizes, err error) {
	m, width := f.options.Memory, int64(f.options.Width)
	one := up(width * (batch + batch/4))
	s.rows, s.ahead = int(rows), 64
	s.list, s.staging, s.writes = max(m/6/listBytes, 2*batch), max(m/8, 2*one), int(m/16)
	largest := int64(f.layout.largest())
	s.pieces = int(min(max(m/32/largest, 2), depth))
	fixed := 12*rows + int64(cap(f.room))*one + s.list*listBytes + s.staging + 2*int64(s.pieces)*largest +
		int64(max(s.writes, leastWrite*(spareWrites+firstWindow)))
	if fixed > m {
		return s, fmt.Errorf("%d bytes for rows of features are too few: two batches of %d rows and their plans "+
			"take %d", m, batch, fixed)
	}
	const ofSlot = 26 // what is known of a row that is kept
	s.slots = int(min((m-fixed)/(width+ofSlot), rows))
	return s, nil
}

// draw draws batches, in parallel.
func (f *Feed) draw(first int64, n int) ([]encoded, error) {
	out, errs := make([]encoded, n), make([]error, len(f.drawers))
	var next atomic.Int64
	var wg sync.WaitGroup
	for t, drawer := range f.drawers {
		wg.Go(func() {
			for {
				i := next.Add(1) - 1
				if i >= int64(n) || errs[t] != nil || f.end.is.Load() {
					return
				}
				var list []uint32
				if list, errs[t] = drawer(first + i); errs[t] == nil {
					slices.Sort(list)
					out[i] = encode(slices.Compact(list))
					f.Stats.drawn.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return out, errors.Join(errs...)
}

// plan draws and plans windows, and packs those for which that pays.
func (f *Feed) plan() (err error) {
	defer close(f.windows)
	p := newPlanner(f.sizes.rows, f.sizes.slots)
	w := &packer{layout: &f.layout, writes: f.sizes.writes, dir: f.options.Scratch, stats: &f.Stats, ended: &f.end.is}
	end, err := f.start(&w.e, &w.buffers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	most := firstWindow
	for first := int64(0); first < f.options.Batches; {
		lists, err := f.drawWindow(first, most)
		if err != nil {
			return err
		}
		x := &window{needs: p.plan(first, lists)}
		first, most = first+int64(len(lists)), min(2*most, mostWindow)
		if err := f.choose(w, x); err != nil {
			return err
		}
		select {
		case f.windows <- x:
		case <-f.end.done:
			x.close()
			return nil
		}
	}
	return nil
}

// drawWindow draws the batches of a window: at most some, and as many as there is memory for.
func (f *Feed) drawWindow(first int64, most int) (lists []encoded, err error) {
	lists, f.first = f.first, nil
	rows, each := int64(0), 2*len(f.drawers)
	for i := range lists {
		rows += int64(lists[i].rows)
	}
	for len(lists) < most && rows+rows/int64(max(len(lists), 1))*int64(each) <= f.sizes.list {
		n := min(int64(each), int64(most-len(lists)), f.options.Batches-first-int64(len(lists)))
		if n == 0 {
			break
		}
		some, err := f.draw(first+int64(len(lists)), int(n))
		if err != nil {
			return nil, err
		}
		for i := range some {
			rows += int64(some[i].rows)
		}
		lists = append(lists, some...)
		if f.end.is.Load() {
			return nil, errEnded
		}
	}
	return lists, nil
}

// choose packs a window if that is cheaper.
func (f *Feed) choose(w *packer, x *window) error {
	f.Stats.Windows.Add(1)
	bytes := int64(0)
	for _, n := range x.needs {
		bytes += f.layout.bytesOf(n)
	}
	if bytes > f.options.Packed || f.layout.directly(x.needs, f.sizes.staging) {
		return nil
	}
	packed, full, err := w.pack(x.needs)
	if full != nil {
		f.options.Packed = 0
		f.note(fmt.Sprintf("rows of features are not packed (%v): they are read where they are, which is slower",
			full))
	}
	if packed != nil {
		x.packed = packed
		f.Stats.PackedWindows.Add(1)
	}
	return err
}

func (f *Feed) note(text string) {
	if f.options.Note != nil {
		f.options.Note(text)
	}
}

// start makes an engine and buffers of pieces, and what ends their use.
func (f *Feed) start(e *engine, to *[][]byte) (end func() error, err error) {
	size := f.layout.largest()
	all, err := memory(f.sizes.pieces * size)
	if err != nil {
		return nil, err
	}
	for i := range f.sizes.pieces {
		*to = append(*to, all[i*size:(i+1)*size:(i+1)*size])
	}
	*e = f.options.engine()
	return func() error {
		err := (*e).close() // the system writes to the buffers until then
		free(all)
		return err
	}, nil
}

func (x *window) close() {
	if x.packed != nil {
		x.packed.f.Close()
	}
}

// bring reads rows of windows, in order.
func (f *Feed) bring() (err error) {
	defer close(f.staged)
	r := &reader{layout: &f.layout, stats: &f.Stats, memory: &f.read, ended: &f.end.is,
		staging: staging{limit: f.sizes.staging, back: f.back}}
	end, err := f.start(&r.e, &r.buffers)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()
	for x := range f.windows {
		if err == nil {
			err = f.bringWindow(r, x)
		}
		if err != nil {
			f.fail(err)
		}
		x.close()
	}
	return err
}

// bringWindow reads the rows of a window's batches.
func (f *Feed) bringWindow(r *reader, x *window) error {
	k := 0
	for _, g := range f.groupsOf(x) {
		bytes := int64(0)
		for _, n := range g {
			bytes += f.layout.bytesOf(n)
		}
		if !r.staging.take(bytes, f.end.done) {
			return nil
		}
		var list []*staged
		var err error
		if x.packed == nil {
			list, err = r.group(g)
		} else {
			var one *staged
			one, err = r.unpack(g[0], x.packed, k)
			list = []*staged{one}
		}
		if k += len(g); err != nil {
			return err
		}
		for _, s := range list {
			select {
			case f.staged <- s:
			case <-f.end.done:
				return nil
			}
		}
	}
	return nil
}

// groupsOf are the batches that are read together: of packed rows each is by itself.
func (f *Feed) groupsOf(x *window) (out [][]*need) {
	if x.packed == nil {
		return f.layout.groups(x.needs, f.sizes.staging)
	}
	for k := range x.needs {
		out = append(out, x.needs[k:k+1])
	}
	return out
}

// fail ends all waits, if there is an error.
func (f *Feed) fail(err error) {
	if err == nil || errors.Is(err, errEnded) {
		return
	}
	f.stop(err)
}

func (f *Feed) stop(err error) {
	f.end.once.Do(func() {
		f.end.err = err
		f.end.is.Store(true)
		close(f.end.done)
	})
}

// Stop ends all waits.
func (f *Feed) Stop() { f.stop(errEnded) }

// Close ends what is under way, and frees memory that was given back.
func (f *Feed) Close() error {
	f.Stop()
	f.wg.Wait()
	for i := range f.layout.files {
		f.layout.files[i].f.Close()
	}
	f.lent.release()
	f.read.release()
	free(f.kept)
	f.kept = nil
	return nil
}

// Package mpi carries messages over the system's MPI.
//
// Over MPI a message travels as one frame (package wire), which holds the header
// and the first bytes, and, if it is larger, as pieces that MPI receives straight
// into their place: the receiver's buffer. A Key does not fit an MPI tag, so a tag only
// marks the pieces that belong together: the frame has their tag where others have the
// checksum, which is left to MPI.
//
// Frames have one tag and MPI keeps their order. A receive for the next frame of
// every peer is always posted; where a message does not fit, that of its
// peer is not posted again until there is, and the peer stops after a window of
// frames, because the last of a window is sent so that it ends only when received.
// A frame of type 4 means that its sender will receive nothing more.
package mpi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"starling/event"
	"starling/wire"
)

const (
	// inline is how much of a message its frame holds: what MPI sends at once
	// anyway.
	inline    = 4 << 10
	frameSize = wire.HeaderSize + inline
	// pieceSize is received at a time, and mostPieces at once: enough that a fast network
	// does not wait, and an urgent message waits for no more than those.
	pieceSize  = 1 << 20
	mostPieces = 4
	// window is how many frames may be under way to a peer.
	window = 32
	// tagsPerTurn are for one endpoint, of the 32767 that MPI promises. Endpoints that
	// follow each other take turns, so that nothing late is taken for new.
	tagsPerTurn = 4096
	turns       = 8
)

// request is something under way in MPI.
type request uintptr

// api is what we use of MPI. One goroutine calls it at a time.
type api interface {
	// send begins to send; with sync it ends when the receiver has begun to receive.
	send(buf []byte, to, tag int, sync bool) (request, error)
	receive(buf []byte, from, tag int) (request, error)
	// test makes progress, and returns which of the requests have ended.
	test(reqs []request) ([]int32, error)
	stop(r request) error
}

// world is this process's place among those that mpirun has started.
type world struct {
	api
	sync.Mutex // held by the goroutine that calls MPI
	rank, size int
	name       string
	turn       int  // how many endpoints there were
	unclean    bool // not everything has ended, so MPI cannot end well
	broken     bool // MPI has failed, and is left alone
}

// theWorld is opened once: MPI cannot be initialised twice in a process.
var theWorld struct {
	sync.Mutex
	*world
	lib *lib
	err error
}

// open initialises MPI, if that has not been done. That takes until all processes
// do, or, where one never does, until ctx ends.
func open(ctx context.Context) (*world, error) {
	type opened struct {
		*world
		err error
	}
	done := make(chan opened, 1)
	go func() {
		theWorld.Lock()
		defer theWorld.Unlock()
		w := &theWorld
		if w.lib == nil && w.err == nil {
			w.world, w.lib, w.err = openWorld()
		}
		done <- opened{w.world, w.err}
	}()
	select {
	case o := <-done:
		return o.world, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("MPI could not be initialised: %w; have all processes of the launcher started?",
			context.Cause(ctx))
	}
}

func openWorld() (*world, *lib, error) {
	lib, err := openLibrary()
	if err != nil {
		return nil, nil, err
	}
	rank, size, err := lib.start()
	if err != nil {
		return nil, nil, err
	}
	if want := launchedSize(); want > 1 && size == 1 {
		return nil, nil, fmt.Errorf("the launcher has started %s but %s sees one: it is not the "+
			"launcher's library; name that in STARLING_MPI", event.Tally(want, "process"), lib.library())
	}
	return &world{api: lib, rank: rank, size: size, name: lib.library()}, lib, nil
}

// launchedSize is the number of processes that the launcher announces.
func launchedSize() int {
	for _, v := range []string{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"} {
		if n, err := strconv.Atoi(os.Getenv(v)); err == nil {
			return n
		}
	}
	return 0
}

// Close ends MPI, if it was opened: in good order where all went well; otherwise
// not at all, because MPI's end waits for everybody; the launcher sees a process end
// without it, and ends the others. All ranks must call it, with no endpoint open.
func Close(within time.Duration) error {
	late, timer := wire.Alarm(wire.Real, within)
	defer timer.Stop()
	theWorld.Lock()
	defer theWorld.Unlock()
	w := &theWorld
	if w.lib == nil || w.err != nil || w.unclean || w.broken {
		return nil
	}
	w.err = errors.New("MPI was ended, and cannot be opened again in the same process")
	done := make(chan error, 1)
	go func() {
		w.world.Lock()
		defer w.world.Unlock()
		done <- w.lib.finish()
	}()
	select {
	case err := <-done:
		return err
	case <-late:
		return fmt.Errorf("rank %d waited %v for the other ranks to end MPI", w.rank, within)
	}
}

// Join connects this worker with its peers over MPI, which must have been
// started by its launcher, as mpirun. Ranks are MPI's; if cfg has
// a Size, its Rank and Size must equal MPI's. It needs no addresses, no listener (one that is
// given is closed) and no token: whom MPI starts is MPI's business. Like tcp.Join it
// returns when all are there or names who is missing.
func Join(ctx context.Context, cfg wire.Config) (wire.Endpoint, error) {
	if cfg.Listener != nil {
		cfg.Listener.Close()
	}
	ctx, cancel := cfg.Begin(ctx)
	defer cancel()
	w, err := open(ctx)
	if err != nil {
		return nil, err
	}
	if cfg.Size != 0 && (cfg.Size != w.size || cfg.Rank != w.rank) {
		return nil, fmt.Errorf("rank %d of %d is rank %d of %d to MPI (%s): start as many processes as there are "+
			"workers, each with MPI's rank", cfg.Rank, cfg.Size, w.rank, w.size, w.name)
	}
	return w.join(ctx, cfg)
}

// hello is what ranks send each other first.
type hello struct {
	Version int
	Turn    int
	Job     string
}

func (w *world) join(ctx context.Context, cfg wire.Config) (wire.Endpoint, error) {
	cfg.Rank, cfg.Size = w.rank, w.size
	if err := validate(&cfg); err != nil {
		return nil, err
	}
	h := newHub(w, &cfg)
	if err := h.connect(ctx); err != nil {
		h.endpoint.Fail(err)
		h.endpoint.Close()
		return nil, h.endpoint.Err()
	}
	return h.endpoint, nil
}

func validate(c *wire.Config) error {
	for _, l := range []struct {
		name string
		n    int
	}{{"Addrs", len(c.Addrs)}, {"HostIDs", len(c.HostIDs)}, {"ServerOf", len(c.ServerOf)}} {
		if l.n != 0 && l.n != c.Size {
			return fmt.Errorf("wire: %s has %s for %s", l.name, event.Tally(l.n, "entry"),
				event.Tally(c.Size, "rank"))
		}
	}
	if len(c.Job) > wire.MaxCause/8 || c.Size > 1<<16-1 {
		return fmt.Errorf("wire: a Job of %s and %s, expected at most %d and %d", event.Tally(len(c.Job), "byte"),
			event.Tally(c.Size, "rank"),
			wire.MaxCause/8, 1<<16-1)
	}
	return nil
}

// connect sends a hello to all peers and waits for theirs.
func (h *hub) connect(ctx context.Context) error {
	text, _ := json.Marshal(hello{Version: wire.Version, Turn: h.turn, Job: h.job})
	h.start(text)
	select {
	case <-h.greeted:
		return nil
	case <-h.endpoint.Done():
		return h.endpoint.Err()
	case <-ctx.Done():
	}
	if cause := context.Cause(ctx); !errors.Is(cause, context.DeadlineExceeded) {
		return cause
	}
	var who []string
	h.world.Lock()
	for _, p := range h.peers {
		if !p.greeted {
			who = append(who, h.inbox.Name(p.peer))
		}
	}
	h.world.Unlock()
	return fmt.Errorf("rank %d waited too long to connect with %s over MPI", h.world.rank, strings.Join(who, ", "))
}

// greet checks a peer's hello.
func (p *carrier) greet(text []byte) error {
	var hello hello
	h := p.hub
	if err := json.Unmarshal(text, &hello); err != nil {
		return fmt.Errorf("%w: an invalid hello: %w", wire.ErrFrame, err)
	}
	if hello.Version != wire.Version || hello.Turn != h.turn || hello.Job != h.job {
		return fmt.Errorf("it is of another run: version %d, turn %d, job %q; here version %d, turn %d, job %q",
			hello.Version, hello.Turn, hello.Job, wire.Version, h.turn, h.job)
	}
	p.greeted = true
	if h.missing--; h.missing == 0 {
		close(h.greeted)
	}
	return nil
}

package wire

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
)

// Over MPI a message travels as one frame (package comment), which holds the header
// and the first bytes, and, if it is larger, as pieces that MPI receives straight
// into their place: the asker's buffer. A Key does not fit an MPI tag, so tags only
// say which pieces belong together: the frame has their tag where others have the
// checksum, which is left to MPI.
//
// Frames have one tag and MPI keeps their order. A receive for the next frame of
// every peer is always posted; where a message does not fit, that of its
// peer is not posted again until there is, and the peer stops after a window of
// frames, because the last of a window is sent so that it ends only when received.
// A frame of type 4 says that its sender will receive nothing more.
const (
	// mpiInline is how much of a message its frame holds: what MPI sends at once
	// anyway.
	mpiInline = 4 << 10
	mpiFrame  = headerSize + mpiInline
	// mpiPiece is received at a time, so many at once: with enough under way that
	// a fast network does not wait, an urgent message waits for no more than those.
	mpiPiece  = 1 << 20
	mpiPieces = 4
	// mpiWindow is how many frames may be under way to a peer.
	mpiWindow = 32
	// mpiTags are for one endpoint, of the 32767 that MPI promises. Endpoints that
	// follow each other use others in turn, so that nothing late is taken for new.
	mpiTags  = 4096
	mpiTurns = 8
)

// mpiRequest is something under way in MPI.
type mpiRequest uintptr

// mpi is what we use of MPI. One calls it at a time.
type mpi interface {
	// send begins to send; with sync it ends when the receiver has begun to receive.
	send(buf []byte, to, tag int, sync bool) (mpiRequest, error)
	receive(buf []byte, from, tag int) (mpiRequest, error)
	// test moves things along, and tells which of the requests have ended.
	test(reqs []mpiRequest) ([]int32, error)
	stop(r mpiRequest) error
}

// mpiWorld is this process's place among those that mpirun has started.
type mpiWorld struct {
	mpi
	sync.Mutex // held by the goroutine that calls MPI
	rank, size int
	library    string
	turn       int  // how many endpoints there were
	unclean    bool // not everything has ended, so MPI cannot end well
	broken     bool // MPI has failed, and is left alone
}

// theWorld is opened once: MPI cannot be initialised twice in a process.
var theWorld struct {
	sync.Mutex
	*mpiWorld
	lib *mpiLib
	err error
}

// openMPI initialises MPI, if that has not been done. That takes until all processes
// do, or, where one never does, until ctx ends.
func openMPI(ctx context.Context) (*mpiWorld, error) {
	type opened struct {
		*mpiWorld
		err error
	}
	done := make(chan opened, 1)
	go func() {
		theWorld.Lock()
		defer theWorld.Unlock()
		w := &theWorld
		if w.lib == nil && w.err == nil {
			w.mpiWorld, w.lib, w.err = openWorld()
		}
		done <- opened{w.mpiWorld, w.err}
	}()
	select {
	case o := <-done:
		return o.mpiWorld, o.err
	case <-ctx.Done():
		return nil, fmt.Errorf("MPI could not be initialised: %w; have all processes of the launcher started?",
			context.Cause(ctx))
	}
}

func openWorld() (*mpiWorld, *mpiLib, error) {
	lib, err := openMPILibrary()
	if err != nil {
		return nil, nil, err
	}
	rank, size, err := lib.start()
	if err != nil {
		return nil, nil, err
	}
	if want := launchedSize(); want > 1 && size == 1 {
		return nil, nil, fmt.Errorf("the launcher has started %d processes but %s sees one: it is not the "+
			"launcher's library; name that in STARLING_MPI", want, lib.library())
	}
	return &mpiWorld{mpi: lib, rank: rank, size: size, library: lib.library()}, lib, nil
}

// launchedSize is how many processes the launcher of an MPI says it has started.
func launchedSize() int {
	for _, v := range []string{"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"} {
		if n, err := strconv.Atoi(os.Getenv(v)); err == nil {
			return n
		}
	}
	return 0
}

// CloseMPI ends MPI, if it was opened: in good order where all went well; otherwise
// not at all, because MPI's end waits for everybody; the launcher sees a process end
// without it, and ends the others. All ranks must call it, with no endpoint open.
func CloseMPI(within time.Duration) error {
	late, timer := Alarm(Real, within)
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
		w.mpiWorld.Lock()
		defer w.mpiWorld.Unlock()
		done <- w.lib.finish()
	}()
	select {
	case err := <-done:
		return err
	case <-late:
		return fmt.Errorf("rank %d waited %v for the other ranks to end MPI", w.rank, within)
	}
}

// JoinMPI connects this worker with its peers over MPI, which must have been
// started by its launcher, as mpirun. Ranks are MPI's; if cfg has
// a Size they must be those of cfg. It needs no addresses, no listener (one that is
// given is closed) and no token: whom MPI starts is MPI's business. Like Join it
// returns when all are there or names who is missing.
func JoinMPI(ctx context.Context, cfg Config) (Endpoint, error) {
	if cfg.Listener != nil {
		cfg.Listener.Close()
	}
	cfg.Options = cfg.Options.withDefaults()
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = WithTimeout(ctx, cfg.Clock, cfg.Timeout)
		defer cancel()
	}
	w, err := openMPI(ctx)
	if err != nil {
		return nil, err
	}
	if cfg.Size != 0 && (cfg.Size != w.size || cfg.Rank != w.rank) {
		return nil, fmt.Errorf("rank %d of %d is rank %d of %d to MPI (%s): start as many processes as there are "+
			"workers, each with MPI's rank", cfg.Rank, cfg.Size, w.rank, w.size, w.library)
	}
	return w.join(ctx, cfg)
}

// mpiHello is what ranks tell each other first.
type mpiHello struct {
	Version int
	Turn    int
	Job     string
}

func (w *mpiWorld) join(ctx context.Context, cfg Config) (Endpoint, error) {
	cfg.Rank, cfg.Size = w.rank, w.size
	if err := cfg.validateMPI(); err != nil {
		return nil, err
	}
	h := newMPIHub(w, &cfg)
	if err := h.connect(ctx); err != nil {
		h.endpoint.Fail(err)
		h.endpoint.Close()
		return nil, h.endpoint.Err()
	}
	return h.endpoint, nil
}

func (c *Config) validateMPI() error {
	for _, l := range []struct {
		name string
		n    int
	}{{"Addrs", len(c.Addrs)}, {"HostIDs", len(c.HostIDs)}, {"ServerOf", len(c.ServerOf)}} {
		if l.n != 0 && l.n != c.Size {
			return fmt.Errorf("wire: %s has %d entries for %d ranks", l.name, l.n, c.Size)
		}
	}
	if len(c.Job) > maxCause/8 || c.Size > 1<<16-1 {
		return fmt.Errorf("wire: a Job of %d bytes and %d ranks, expected at most %d and %d", len(c.Job), c.Size,
			maxCause/8, 1<<16-1)
	}
	return nil
}

// connect sends a hello to all peers and waits for theirs.
func (h *mpiHub) connect(ctx context.Context) error {
	text, _ := json.Marshal(mpiHello{Version: version, Turn: h.turn, Job: h.job})
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
			who = append(who, name(p.peer, h.endpoint.addr(p.peer)))
		}
	}
	h.world.Unlock()
	return fmt.Errorf("rank %d waited too long to connect with %s over MPI", h.endpoint.rank, strings.Join(who, ", "))
}

// greet checks a peer's hello.
func (p *mpiPeer) greet(text []byte) error {
	var hello mpiHello
	h := p.hub
	if err := json.Unmarshal(text, &hello); err != nil {
		return fmt.Errorf("%w: an invalid hello: %w", ErrFrame, err)
	}
	if hello.Version != version || hello.Turn != h.turn || hello.Job != h.job {
		return fmt.Errorf("it is of another run: version %d, turn %d, job %q; here version %d, turn %d, job %q",
			hello.Version, hello.Turn, hello.Job, version, h.turn, h.job)
	}
	p.greeted = true
	if h.missing--; h.missing == 0 {
		close(h.greeted)
	}
	return nil
}

package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"strconv"
	"sync"

	"starling/cluster"
	"starling/event"
	"starling/train"
)

// keeper has the newest state of a run of several workers: in memory, for workers
// that start again, and on disk where --checkpoint-dir says. Rank 0 sends the state;
// where a strategy needs more than that from one epoch to the next, every worker
// sends its caches, and the state is whole when all have.
type keeper struct {
	spec   *Spec
	mark   dataMark
	cut    string // the partition's id: caches are of no use with another
	events event.Listener
	stop   context.CancelCauseFunc // ends the run when the disk fails

	mu     sync.Mutex
	newest *kept
	parts  map[int]*kept // not whole yet, by epoch
	write  chan *kept    // the newest not yet on disk
	done   chan struct{}
	failed error // why states are not on disk; for whoever waited for done
}

// kept is a state as workers sent it.
type kept struct {
	from *checkpoint
	blob []byte
	own  [][]byte // caches, by rank
}

// start is a state to start from, with the caches of all workers.
type start struct {
	*train.State
	caches [][]byte // safetensors, by rank
	cut    string
	spec   *Spec
}

// saves tells whether workers hand out their state while they train, for those that start
// again, and whether they do so at the end.
func (s *Spec) saves() (midway, last bool) {
	last = s.CheckpointDir != ""
	return last || s.processes() && s.OnFailure != "stop", last
}

// states is how many a keeper has at once: the newest, the one that comes, and one on its
// way to disk; fewer in a run that does not save as often.
func (c *clusterRun) states() int64 {
	s, n, done := &c.spec, 0, 0
	midway, last := s.saves()
	if c.from != nil {
		n, done = 1, c.from.Epoch
	}
	if midway && s.CheckpointEvery > 0 {
		n += max((s.Epochs-1)/s.CheckpointEvery-done/s.CheckpointEvery, 0)
	}
	if last {
		return int64(min(n+1, 3))
	}
	return int64(min(n, 2))
}

func newKeeper(c *clusterRun, events event.Listener, stop context.CancelCauseFunc) (*keeper, error) {
	k := &keeper{spec: &c.spec, mark: markOf(&c.parts.meta), cut: c.parts.book.ID, events: events, stop: stop,
		parts: map[int]*kept{}, write: make(chan *kept, 1), done: make(chan struct{})}
	last := -1
	if c.from != nil {
		if err := k.startFrom(c.from); err != nil {
			return nil, err
		}
		last = c.from.Epoch
	}
	go k.save(last)
	return k, nil
}

// startFrom takes a state from disk.
func (k *keeper) startFrom(from *start) (err error) {
	k.newest = &kept{}
	var blob *cluster.Stream
	if k.newest.from, blob, err = packState(from.State); err != nil {
		return err
	}
	if k.newest.blob, err = blob.Bytes(); err != nil || len(from.caches) == 0 {
		return err
	}
	if from.cut != k.cut || len(from.caches) != k.spec.Workers || !k.spec.keepsAs(from.spec) {
		k.events.On(event.Note{Text: "the checkpoint's caches are of another partition or strategy and are left out: the strategy starts anew, as in its first epoch"})
		return nil
	}
	k.newest.own = from.caches
	return nil
}

// keepsAs reports whether caches of another run mean the same here: rows that are passed
// on inside servers come in another order.
func (s *Spec) keepsAs(o *Spec) bool {
	return s.strategyName() == o.strategyName() && s.Relay == o.Relay && (!s.Relay || s.Servers == o.Servers)
}

// keep is where a rank's state goes that runs in this process.
func (k *keeper) keep(rank int) func(body json.RawMessage, state *cluster.Stream) error {
	return func(body json.RawMessage, state *cluster.Stream) error {
		blob, err := state.Bytes()
		if err == nil {
			k.take(rank, body, blob)
		}
		return err
	}
}

// take keeps what a rank says is its state, or its caches.
func (k *keeper) take(rank int, body json.RawMessage, blob []byte) {
	var c checkpoint
	if err := json.Unmarshal(body, &c); err != nil {
		k.events.On(event.Note{Text: fmt.Sprintf("warning: a state that makes no sense was not kept: %v", err)})
		return
	}
	if n := k.whole(rank, &c, blob); n != nil {
		k.put(n)
	}
}

// whole adds to the state of an epoch, and returns it if nothing is missing.
func (k *keeper) whole(rank int, c *checkpoint, blob []byte) *kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.parts[c.Epoch]
	if n == nil {
		n = &kept{own: make([][]byte, k.spec.Workers)}
		k.parts[c.Epoch] = n
	}
	if c.Only {
		n.own[rank] = blob
	} else {
		n.from, n.blob = c, blob
	}
	if n.from == nil {
		return nil
	}
	for _, own := range n.own {
		if n.from.Caches && own == nil {
			return nil
		}
	}
	if !n.from.Caches {
		n.own = nil
	}
	for epoch := range k.parts {
		if epoch <= c.Epoch {
			delete(k.parts, epoch)
		}
	}
	k.newest = n
	n.collect()
	return n
}

// put has a state written; whoever waits for the disk makes room for the newest.
func (k *keeper) put(n *kept) {
	for {
		select {
		case k.write <- n:
			return
		default:
		}
		select {
		case <-k.write:
		default:
		}
	}
}

// state is the newest; nil: none yet.
func (k *keeper) state() *kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.newest
}

// restore is the newest state as a rank starts from it.
func (k *keeper) restore(rank int) (*train.State, error) {
	n := k.state()
	if n == nil {
		return nil, nil
	}
	var own []byte
	if n.own != nil {
		own = n.own[rank]
	}
	return unpackState(n.from, n.blob, own)
}

// epoch is how many are safe.
func (k *keeper) epoch() int {
	if n := k.state(); n != nil {
		return n.from.Epoch
	}
	return 0
}

// save writes states to disk, until close.
func (k *keeper) save(last int) {
	defer close(k.done)
	saver := cluster.NewSaver(k.spec.CheckpointDir, k.spec.KeepCheckpoints, last, func(path string, epoch int, bytes int64) {
		k.events.On(event.Saved{Path: path, Epoch: epoch, Bytes: bytes})
	})
	for n := range k.write {
		if k.spec.CheckpointDir == "" {
			continue
		}
		c, err := k.checkpoint(n)
		if err == nil {
			err = errors.Join(saver.Save(c), saver.Wait())
		}
		if err != nil {
			k.failed = unsaved(err)
			if n.from.Epoch < k.spec.Epochs { // else there is nothing left to stop
				k.stop(k.failed)
			}
			return
		}
		n.collect()
	}
}

// collect gives states back to the system that nobody needs any more, after one that has
// caches: they may be as large as all else, and what comes next may not fit in their place.
func (n *kept) collect() {
	if n.own != nil {
		debug.FreeOSMemory()
	}
}

// checkpoint is a state as the disk keeps it.
func (k *keeper) checkpoint(n *kept) (*cluster.Checkpoint, error) {
	st, err := unpackState(n.from, n.blob, nil)
	if err != nil {
		return nil, err
	}
	c, err := toCheckpoint(k.spec, k.mark, k.cut, st)
	if err != nil {
		return nil, err
	}
	c.Files = map[string][]byte{}
	for rank, own := range n.own {
		c.Files[cachesOf(rank)] = own
	}
	return c, nil
}

// cachesOf names the caches of a rank on disk.
func cachesOf(rank int) string { return fmt.Sprintf("caches-%d", rank) }

// close returns when all is on disk, with the error that kept it from there, or
// else that of the run.
func (k *keeper) close(err error) error {
	close(k.write)
	<-k.done
	if k.failed != nil {
		return k.failed
	}
	return err
}

// keepWith sends what a rank has to keep.
func keepWith(rank int, send func(body json.RawMessage, state *cluster.Stream) error) func(*train.State) error {
	return func(st *train.State) error {
		if rank == 0 { // all have the same weights
			c, blob, err := packState(st)
			if err == nil {
				err = sendKept(send, c, blob)
			}
			if err != nil {
				return err
			}
		}
		if st.Caches == nil {
			return nil
		}
		blob, err := packTensors(st.Caches, map[string]string{"epoch": strconv.Itoa(st.Epoch)})
		if err != nil {
			return err
		}
		return sendKept(send, &checkpoint{Epoch: st.Epoch, Only: true}, blob)
	}
}

func sendKept(send func(body json.RawMessage, state *cluster.Stream) error, c *checkpoint, state *cluster.Stream) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return send(text, state)
}

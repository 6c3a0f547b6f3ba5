package supervise

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"
	"slices"
	"sync"

	"starling/cluster"
	"starling/disk"
	"starling/event"
	"starling/resume"
	"starling/setup"
	"starling/spec"
	"starling/train"
)

// keeper has the newest state of a run of several workers: in memory, for workers that are
// restarted, and on disk, if there is a --checkpoint-dir. Rank 0 sends the state; if a strategy
// needs more than that from one epoch to the next, every worker sends its caches, and the state
// is complete when all have. With a --checkpoint-dir that a worker sees, it writes its caches there
// itself, as a file of a hidden folder, and tells the keeper, which moves the files of all into the checkpoint.
type keeper struct {
	spec   *spec.Spec
	data   resume.Identity // caches are of no use with another partition
	events event.Listener
	stop   context.CancelCauseFunc // ends the run when the disk fails

	mu         sync.Mutex
	newest     *kept
	incomplete map[cluster.Position]*kept
	write      chan *kept         // the newest that is not on disk yet
	skipped    []cluster.Position // of states that a newer one replaced before they were on disk
	done       chan struct{}
	failed     error        // why states are not on disk; read after done
	shards     *disk.Folder // nil: workers send their caches
}

// kept is a state as workers sent it.
type kept struct {
	from *resume.StateHeader
	blob []byte
	own  [][]byte // caches, by rank
	// shards are caches that are files, by rank, until the checkpoint has them; onDisk is closed then. nil: there are none.
	shards []*cluster.Shard
	onDisk chan struct{}
}

// drop removes the files of a state that will not be written.
func (n *kept) drop() {
	for _, s := range n.shards {
		s.Remove()
	}
}

func newKeeper(c *Run, events event.Listener, stop context.CancelCauseFunc) (*keeper, error) {
	k := &keeper{spec: &c.Spec, data: resume.PartsIdentity(c.Parts), events: events, stop: stop,
		incomplete: map[cluster.Position]*kept{}, write: make(chan *kept, 1), done: make(chan struct{})}
	return k, k.start(c.From)
}

// start keeps the state that the run starts from (nil: from the beginning), and begins to write.
func (k *keeper) start(from *resume.Start) (err error) {
	var last *cluster.Position
	if from != nil {
		if err := k.startFrom(from); err != nil {
			return err
		}
		if at := k.newest.from.Position; at.Epoch > 0 || at.Batch > 0 {
			last = &at
		}
	}
	if dir := k.spec.Checkpoints.Dir; dir != "" {
		if k.shards, err = disk.NewFolder(filepath.Join(dir, "shards")); err != nil {
			return resume.NotSaved(err)
		}
	}
	go k.save(last)
	return nil
}

// folder is where workers write their caches; "": they send them.
func (k *keeper) folder() string {
	if k.shards == nil {
		return ""
	}
	return k.shards.Tmp
}

// startFrom takes a state from disk.
func (k *keeper) startFrom(from *resume.Start) (err error) {
	k.newest = &kept{}
	var blob *cluster.Stream
	if k.newest.from, blob, err = resume.PackState(from.State); err != nil {
		return err
	}
	if k.newest.blob, err = blob.Bytes(); err != nil || len(from.OwnCaches) == 0 {
		return err
	}
	if from.PartitionID != k.data.PartitionID || len(from.OwnCaches) != k.spec.Cluster.Workers ||
		!sameCaches(k.spec, from.Spec) {
		return k.startFromLearnt(from)
	}
	k.newest.own = from.OwnCaches
	return nil
}

// startFromLearnt leaves caches out that belong to another partition or strategy. Learnt rows know their vertices: every
// worker takes its own, of the checkpoint's files where it is on this host, of what it is sent elsewhere.
func (k *keeper) startFromLearnt(from *resume.Start) error {
	learnt, others, err := from.Learnt()
	if err != nil {
		return err
	}
	if others || len(learnt) == 0 {
		k.events.On(event.Note{Text: "the checkpoint's caches are of another partition or strategy and are left out: " +
			"the strategy starts as in its first epoch"})
	}
	switch {
	case len(learnt) == 0:
		return nil
	case from.Folder != "" && !setup.RemoteWorkers(k.spec):
		k.newest.from.Shards = from.Shards()
		return nil
	}
	packed, err := resume.PackTensors(learnt, nil)
	if err != nil {
		return err
	}
	all, err := packed.Bytes()
	for range k.spec.Cluster.Workers {
		k.newest.own = append(k.newest.own, all)
	}
	return err
}

// sameCaches reports whether caches of another run can be used in this one: rows that are
// relayed inside servers are in another order.
func sameCaches(s, o *spec.Spec) bool {
	relays := setup.Relays(s)
	return s.StrategyName() == o.StrategyName() && relays == setup.Relays(o) &&
		(!relays || s.Cluster.Servers == o.Cluster.Servers)
}

// keep takes the state of a rank that is in this process.
func (k *keeper) keep(rank int) resume.Sender {
	return func(body json.RawMessage, state *cluster.Stream) error {
		blob, err := state.Bytes()
		if err == nil {
			k.take(rank, body, blob)
		}
		return err
	}
}

// take keeps a state, or the caches of a rank.
func (k *keeper) take(rank int, body json.RawMessage, blob []byte) {
	var c resume.StateHeader
	if err := json.Unmarshal(body, &c); err != nil {
		k.events.On(event.Note{Text: fmt.Sprintf("warning: an invalid state was not kept: %v", err)})
		return
	}
	if c.Shard != nil {
		if blob = nil; filepath.Dir(c.Shard.Path) != k.folder() {
			k.events.On(event.Note{Text: fmt.Sprintf("warning: a state in %s was not kept: rank %d writes to %s", c.Shard.Path,
				rank, k.folder())})
			return
		}
	}
	if n := k.complete(rank, &c, blob); n != nil {
		k.enqueue(n)
	}
}

// complete adds to the state of a position, and returns it if nothing is missing.
func (k *keeper) complete(rank int, c *resume.StateHeader, blob []byte) *kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	n := k.incomplete[c.Position]
	if n == nil {
		workers := k.spec.Cluster.Workers
		n = &kept{own: make([][]byte, workers), shards: make([]*cluster.Shard, workers)}
		k.incomplete[c.Position] = n
	}
	if c.Only {
		n.shards[rank].Remove() // of before a restart
		n.own[rank], n.shards[rank] = blob, c.Shard
	} else {
		n.from, n.blob = c, blob
	}
	if n.from == nil {
		return nil
	}
	for r, own := range n.own {
		if n.from.Caches && own == nil && n.shards[r] == nil {
			return nil
		}
	}
	if !n.from.Caches {
		n.own = nil
	}
	if n.onDisk = make(chan struct{}); !slices.ContainsFunc(n.shards, func(s *cluster.Shard) bool { return s != nil }) {
		n.shards, n.onDisk = nil, nil
	}
	for at, other := range k.incomplete {
		if at.Compare(c.Position) > 0 {
			continue
		}
		if delete(k.incomplete, at); other != n {
			other.drop()
		}
	}
	k.newest = n
	n.collect()
	return n
}

// enqueue has a state written; it replaces one that still waits for the disk.
func (k *keeper) enqueue(n *kept) {
	for {
		select {
		case k.write <- n:
			return
		default:
		}
		select {
		case old := <-k.write:
			k.mu.Lock()
			k.skipped = append(k.skipped, old.from.Position)
			k.mu.Unlock()
			old.drop()
		default:
		}
	}
}

// tellSkipped says which checkpoints will not be on disk, and why.
func (k *keeper) tellSkipped() {
	k.mu.Lock()
	list := k.skipped
	k.skipped = nil
	k.mu.Unlock()
	if len(list) == 0 || k.spec.Checkpoints.Dir == "" {
		return
	}
	which := fmt.Sprintf("the checkpoint of %v was", list[0])
	if len(list) > 1 {
		which = fmt.Sprintf("%d checkpoints, of %v to %v, were", len(list), list[0], list[len(list)-1])
	}
	k.events.On(event.Note{Text: which + " skipped: newer ones came while the disk was still writing; " +
		"a larger --checkpoint-every skips none"})
}

// state is the newest; nil: none yet.
func (k *keeper) state() *kept {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.newest
}

// settled is the newest state once its caches are on disk, from where they are read.
func (k *keeper) settled() (*kept, error) {
	n := k.state()
	if n == nil || n.onDisk == nil {
		return n, nil
	}
	select {
	case <-n.onDisk:
	case <-k.done:
		return nil, k.failed
	}
	for rank := range n.own {
		if n.own[rank] != nil {
			continue
		}
		path := filepath.Join(n.from.Folder(k.spec.Checkpoints.Dir), resume.CachesFile(rank)+".safetensors")
		var err error
		if n.own[rank], err = disk.Map(path); err != nil {
			return nil, err
		}
	}
	return n, nil
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
	return resume.UnpackState(n.from, n.blob, own)
}

// at is how far the newest state is.
func (k *keeper) at() (at cluster.Position) {
	if n := k.state(); n != nil {
		at = n.from.Position
	}
	return at
}

// save writes states to disk, until close.
func (k *keeper) save(last *cluster.Position) {
	defer close(k.done)
	saver := resume.NewSaver(k.spec, last, k.events)
	for n := range k.write {
		k.tellSkipped()
		if k.spec.Checkpoints.Dir == "" {
			continue
		}
		c, err := k.checkpoint(n)
		if err == nil {
			err = errors.Join(saver.Save(c), saver.Wait())
		}
		if err != nil {
			k.failed = resume.NotSaved(err)
			if n.from.Epoch < k.spec.Training.Epochs { // else there is nothing left to stop
				k.stop(k.failed)
			}
			return
		}
		n.collect()
		if n.onDisk != nil {
			n.drop() // the checkpoint has them
			close(n.onDisk)
		}
	}
}

// collect returns the memory of older states to the system, if states have caches: these may be
// as large as everything else, and the next ones may not fit beside them.
func (n *kept) collect() {
	if n.own != nil {
		debug.FreeOSMemory()
	}
}

// checkpoint is a state as it is on disk.
func (k *keeper) checkpoint(n *kept) (*cluster.Checkpoint, error) {
	st, err := resume.UnpackState(n.from, n.blob, nil)
	if err != nil {
		return nil, err
	}
	c, err := resume.ToCheckpoint(k.spec, k.data, st)
	if err != nil {
		return nil, err
	}
	c.Files, c.Shards = map[string][]byte{}, map[string]*cluster.Shard{}
	for rank, own := range n.own {
		if n.shards != nil && n.shards[rank] != nil {
			c.Shards[resume.CachesFile(rank)] = n.shards[rank]
		} else {
			c.Files[resume.CachesFile(rank)] = own
		}
	}
	return c, nil
}

// close returns when everything is on disk, with the error of writing it, or else the error of
// the run.
func (k *keeper) close(err error) error {
	close(k.write)
	<-k.done
	if k.shards != nil {
		k.shards.Abort()
	}
	if k.failed != nil {
		return k.failed
	}
	return err
}

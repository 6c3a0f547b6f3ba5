package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync"
	"time"

	"starling/cluster"
	"starling/event"
	"starling/train"
)

// keeper has the newest state of a run of processes: in memory, for workers that
// start again, and on disk where --checkpoint-dir says.
type keeper struct {
	spec   *Spec
	mark   dataMark
	events event.Listener
	stop   context.CancelCauseFunc // ends the run when the disk fails

	mu     sync.Mutex
	newest *kept
	write  chan *kept // the newest not yet on disk
	done   chan struct{}
}

// kept is a state as rank 0 sent it.
type kept struct {
	from *checkpoint
	blob []byte
}

func newKeeper(s *Spec, mark dataMark, from *train.State, events event.Listener, stop context.CancelCauseFunc) (*keeper, error) {
	k := &keeper{spec: s, mark: mark, events: events, stop: stop, write: make(chan *kept, 1), done: make(chan struct{})}
	last := -1
	if from != nil {
		c, blob, err := packState(from)
		if err != nil {
			return nil, err
		}
		k.newest, last = &kept{c, blob}, from.Epoch
	}
	go k.save(last)
	return k, nil
}

// take keeps what rank 0 says is its state.
func (k *keeper) take(_ int, body json.RawMessage, blob []byte) {
	n := &kept{blob: blob}
	if err := json.Unmarshal(body, &n.from); err != nil || n.from == nil {
		k.events.On(event.Note{Text: fmt.Sprintf("warning: a state that makes no sense was not kept: %v", err)})
		return
	}
	k.mu.Lock()
	k.newest = n
	k.mu.Unlock()
	for { // whoever waits for the disk makes room for the newest
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
		st, err := unpackState(n.from, n.blob)
		var c *cluster.Checkpoint
		if err == nil {
			c, err = toCheckpoint(k.spec, k.mark, st)
		}
		if err == nil {
			err = errors.Join(saver.Save(c), saver.Wait())
		}
		if err != nil {
			k.stop(fmt.Errorf("checkpoint: %w", err))
			return
		}
	}
}

// close returns when all is on disk.
func (k *keeper) close() {
	close(k.write)
	<-k.done
}

// runProcesses trains with a process a worker. When one is lost, it and those that
// are left meet again and go on from the newest state.
func (c *clusterRun) runProcesses(ctx context.Context, events event.Listener) ([]*share, error) {
	s := &c.spec
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	k, err := newKeeper(s, markOf(&c.parts.meta), c.from, events, stop)
	if err != nil {
		return nil, err
	}
	r := &recovery{clusterRun: c, kept: k, events: events, job: cluster.NewSecret()[:12], at: k.epoch()}
	shares, err := r.run(ctx)
	k.close()
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause // the disk's
	}
	return shares, err
}

// recovery is a run of processes that outlives them.
type recovery struct {
	*clusterRun
	kept   *keeper
	events event.Listener
	job    string
	co     *cluster.Coordinator
	procs  *cluster.Processes

	at     int       // the epoch that the workers last started from
	tries  int       // starts without a newer state
	lostAt time.Time // when the last loss was noticed
}

// mostTries bounds starts that lead nowhere: what ends a run at the same place again
// and again is no accident.
const mostTries = 3

func (r *recovery) run(ctx context.Context) ([]*share, error) {
	s := &r.spec
	task, blob, err := r.task()
	if err != nil {
		return nil, err
	}
	r.co, err = cluster.Listen(cluster.Config{Addr: s.Listen, Workers: s.Workers, Servers: s.Servers, Job: r.job, Version: Version(), Token: r.token,
		Identity: r.id, Insecure: s.Insecure, Timeout: s.timeout(), Silence: s.heartbeat(), Task: task, Blob: blob, Again: s.OnFailure != "stop", State: r.kept.take, Events: r.hears(),
		Refused: func(from, reason string) { r.events.On(event.Note{Text: fmt.Sprintf("refused %s: %s", from, reason)}) }})
	if err != nil {
		return nil, mistake("--listen", err.Error(), "an address of this host", "")
	}
	defer r.co.Close()
	if r.procs, err = r.launch(); err != nil {
		return nil, err
	}
	if r.procs != nil {
		r.procs.Hold()
		defer r.procs.Wait()
		defer r.procs.Release()
	}
	for {
		results, err := r.co.Run(ctx, r.procs)
		if err == nil {
			return unpackShares(results)
		}
		if err := r.again(ctx, err); err != nil {
			r.dismiss()
			return nil, ended(err)
		}
	}
}

// again prepares another start after a loss, or says why there is none.
func (r *recovery) again(ctx context.Context, cause error) error {
	var died *cluster.Died
	if ctx.Err() != nil || r.spec.OnFailure == "stop" || !errors.As(cause, &died) || !died.Lost() {
		return cause
	}
	if now := r.kept.epoch(); now > r.at {
		r.at, r.tries = now, 0
	}
	if r.tries++; r.tries > mostTries {
		return fmt.Errorf("%w; after %d starts from epoch %d that ended so there will be no other", cause, r.tries, r.at)
	}
	r.lostAt = time.Now()
	lost := r.co.Lost()
	task, blob, err := r.task()
	if err != nil {
		return err
	}
	how := "waiting " + r.spec.timeout().String() + " for it to come again"
	if r.procs != nil && r.spec.OnFailure == "restart" {
		how = "starting it again"
		if err := r.start(lost); err != nil {
			return err
		}
	}
	r.co.Next(task, blob, r.procs)
	r.events.On(event.Note{Text: fmt.Sprintf("lost %v; %s, to go on from epoch %d", cause, how, r.kept.epoch())})
	return nil
}

// start starts processes of lost ranks anew.
func (r *recovery) start(lost []int) error {
	for _, rank := range lost {
		cmd, err := r.command(rank)
		if err == nil {
			err = r.procs.Start(rank, cmd)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// dismiss sends everybody home.
func (r *recovery) dismiss() {
	if r.procs != nil {
		r.procs.Stop(time.Second)
		return
	}
	if r.spec.OnFailure != "stop" {
		r.co.Dismiss(2 * time.Second)
	}
}

// task is what workers are told when they start, and the state they start from.
func (r *recovery) task() (json.RawMessage, []byte, error) {
	t := r.clusterRun.task()
	var blob []byte
	if n := r.kept.state(); n != nil {
		t.From, blob = n.from, n.blob
	}
	text, err := json.Marshal(t)
	return text, blob, err
}

// hears passes on what workers say. When training has started all have mapped
// their parts, and a temporary partition can go, unless workers may start again:
// then none is left behind, whatever happens.
func (r *recovery) hears() func(int, event.Event) {
	return func(_ int, e event.Event) {
		if _, ok := e.(event.Started); ok {
			if r.spec.OnFailure == "stop" {
				r.parts.remove()
			}
			if !r.lostAt.IsZero() {
				took := time.Since(r.lostAt).Seconds()
				r.restarts = append(r.restarts, Restart{Epoch: r.kept.epoch(), Seconds: took})
				r.events.On(event.Note{Text: fmt.Sprintf("training goes on from epoch %d, %.1f s after the loss was noticed", r.kept.epoch(), took)})
				r.lostAt = time.Time{}
			}
		}
		r.events.On(e)
	}
}

// launch starts the workers, unless others do.
func (r *recovery) launch() (*cluster.Processes, error) {
	s := &r.spec
	if s.NoLaunch {
		r.events.On(event.Note{Text: fmt.Sprintf("waiting %s for %d workers: starling worker --join %s --rank R, R from 0 to %d", s.timeout(), s.Workers, r.co.Addr(), s.Workers-1)})
		return nil, nil
	}
	var cmds []*exec.Cmd
	for rank := range s.Workers {
		cmd, err := r.command(rank)
		if err != nil {
			return nil, err
		}
		cmds = append(cmds, cmd)
	}
	return cluster.Launch(cmds, func(rank int, line string) {
		r.events.On(event.Note{Text: fmt.Sprintf("[rank %d] %s", rank, line)})
	})
}

// command starts the worker of a rank.
func (r *recovery) command(rank int) (*exec.Cmd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self, "worker", "--join", r.co.Addr(), "--rank", fmt.Sprint(rank), "--job", r.job, "--timeout", fmt.Sprint(r.spec.Timeout),
		"--heartbeat", fmt.Sprint(r.spec.Heartbeat), "--quiet", "--tls", r.spec.TLS)
	cmd.Env = append(os.Environ(), TokenVariable+"="+string(r.token))
	return cmd, nil
}

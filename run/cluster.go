package run

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"starling/cluster"
	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/tensor"
	"starling/tensor/simd"
	"starling/train"
	"starling/wire"
)

// clusterRun is a run of several workers that can start.
type clusterRun struct {
	spec  Spec
	parts *parts
	plans *Plan  // nil: the workers are elsewhere
	from  *start // nil: from the beginning
	token []byte
	id    *cluster.Identity
	meet  *meeting       // how workers that others start find us; nil: they are told
	slots []cluster.Host // of every worker, with --hosts

	restarts []Restart
	watch    *watcher
}

// prepareCluster checks all that can be checked before the workers start.
func prepareCluster(ctx context.Context, s Spec, m *meeting, events event.Listener) (c *clusterRun, err error) {
	c = &clusterRun{spec: s, meet: m}
	if err := c.settleMeeting(); err != nil {
		return nil, err
	}
	s = c.spec
	if err := s.check(); err != nil {
		return nil, err
	}
	if c.id, err = identity(s.TLS); err != nil {
		return nil, err
	}
	if c.token, err = s.token(c.meet); err != nil {
		return nil, err
	}
	if c.parts, err = s.findParts(ctx, events); err != nil {
		return nil, err
	}
	if err := c.settle(events); err != nil {
		c.parts.remove()
		return nil, err
	}
	return c, nil
}

// settle compares the spec with the data and the checkpoints.
func (c *clusterRun) settle(events event.Listener) (err error) {
	s := &c.spec
	if s.Patience > 0 && c.parts.book.Val == 0 {
		return mistake("--patience", fmt.Sprint(s.Patience), "0 for a dataset without a validation split", "")
	}
	if s.EdgeFeatures && c.parts.book.EdgeDim == 0 {
		return &graph.InputError{File: c.parts.dir, Field: "--edge-features", Found: "a partition whose edges have none", Want: "edge_features.npy in its parts",
			Fix: "add the file to the dataset (see docs/data.md) and partition it again, or leave the flag out"}
	}
	if err := s.settleTask(&c.parts.meta); err != nil {
		return err
	}
	if s.CheckpointDir != "" { // rank 0 writes there, wherever it was started
		if s.CheckpointDir, err = filepath.Abs(s.CheckpointDir); err != nil {
			return err
		}
	}
	if c.from, err = s.checkpoints(&c.parts.meta, events); err != nil {
		return err
	}
	s.resolve(&c.parts.meta, simd.Best().String())
	if s.elsewhere() { // parts and memory are those of other hosts
		_, err = s.options(&c.parts.meta)
		return err
	}
	if c.plans, err = c.plan(events); err != nil {
		return err
	}
	return c.fits(c.plans, tensor.MemoryFree())
}

// token is the secret that workers share. Workers that we start ourselves get one
// of their own; on loopback others may go without.
func (s *Spec) token(m *meeting) ([]byte, error) {
	if known, err := s.knownToken(); known != nil || err != nil {
		return known, err
	}
	switch {
	case !s.NoLaunch || m != nil && m.at.Secret() && s.TLS == "" && !s.Insecure: // then there is a way to tell them
		return []byte(cluster.NewSecret()), nil
	case s.TLS != "":
	case exposed(s.Listen) && !s.Insecure:
		return nil, mistake("--listen", s.Listen+", which others can reach", "--tls or a --token-file", "or let in whoever comes with --insecure")
	}
	return nil, nil
}

// exposed tells whether others can reach an address. What is none, nobody can listen on.
func exposed(addr string) bool {
	_, _, err := net.SplitHostPort(addr)
	return err == nil && !cluster.Loopback(addr)
}

// knownToken is what the user gives; nil: none.
func (s *Spec) knownToken() ([]byte, error) {
	switch text := os.Getenv(TokenVariable); {
	case s.TokenFile != "":
		return ReadToken(s.TokenFile)
	case text != "":
		return tokenOf(TokenVariable, []byte(text))
	}
	return nil, nil
}

const shortestToken, longestToken = 16, 4096

// ReadToken reads the secret that workers share from a file, or standard input.
func ReadToken(path string) ([]byte, error) {
	if path == "-" {
		return readToken(os.Stdin)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, mistake("--token-file", unread(err), "a file with the secret that workers share", "make one: head -c 32 /dev/urandom | base64 > token")
	}
	defer f.Close()
	return readToken(f)
}

func readToken(f io.Reader) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(f, longestToken+1))
	if err != nil {
		return nil, err
	}
	return tokenOf("--token-file", b)
}

// tokenOf is the secret in a text.
func tokenOf(from string, b []byte) ([]byte, error) {
	b = bytes.TrimSpace(b)
	if len(b) < shortestToken || len(b) > longestToken {
		return nil, mistake(from, fmt.Sprintf("%d characters", len(b)), fmt.Sprintf("%d to %d", shortestToken, longestToken), "make one: head -c 32 /dev/urandom | base64 > token")
	}
	return b, nil
}

// trainCluster runs s on several workers, as Train does on one.
func trainCluster(ctx context.Context, s Spec, m *meeting, events event.Listener) (*Report, error) {
	start := time.Now()
	c, err := prepareCluster(ctx, s, m, events)
	if err != nil {
		return nil, err
	}
	defer c.parts.remove()
	release, err := c.spec.claimCheckpoints()
	if err != nil {
		return nil, err
	}
	defer release()
	events, finish, err := c.spec.listeners(ctx, events)
	if err != nil {
		return nil, err
	}
	c.watch = newWatcher(c.spec.Workers, events, time.Now)
	events = event.All(c.watch, events)
	metrics, err := c.serveMetrics()
	if err != nil {
		return nil, errors.Join(err, finish())
	}
	defer metrics.close()
	run := c.runProcesses
	if c.spec.inProcess() {
		run = c.runGoroutines
	}
	shares, notSaved := run(ctx, events)
	if shares == nil {
		return nil, errors.Join(notSaved, finish())
	}
	r, err := result(shares)
	if err != nil || notSaved != nil && r.Reason == "interrupted" && ctx.Err() == nil { // by the full disk
		return nil, errors.Join(err, notSaved, finish())
	}
	err = errors.Join(notSaved, c.spec.conclude(&c.parts.meta, c.parts.book.Weighted, r, start, events), finish())
	return c.report(shares, r, time.Since(start)), err
}

// report adds to the report of one worker what concerns many.
func (c *clusterRun) report(shares []*share, r *train.Result, took time.Duration) *Report {
	out := newReport(&c.spec, &c.parts.meta, &Plan{}, r)
	if c.plans != nil {
		out.DevicePlannedBytes, out.MemoryPlannedBytes = c.plans.Peak, c.plans.Needed()
	}
	out.Bytes, out.Seconds, out.Servers, out.Threads = addUp(shares), took.Seconds(), max(c.spec.Servers, 1), shares[0].Threads
	for _, s := range shares {
		out.PeakRSSBytes = max(out.PeakRSSBytes, s.PeakRSS)
		if !c.spec.inProcess() { // else it is that of all together
			out.WorkerPeakRSSBytes = append(out.WorkerPeakRSSBytes, s.PeakRSS)
		}
	}
	out.addTimes(shares)
	out.Restarts = c.restarts
	return out
}

// addTimes adds what workers waited for, as means over them.
func (r *Report) addTimes(shares []*share) {
	var waited, transfer, exposed float64
	for _, s := range shares {
		m := s.Metered
		if m.Trained > 0 {
			waited += m.Waited / m.Trained / float64(len(shares))
			transfer += m.Transfer / float64(m.Epochs) / float64(len(shares))
			exposed += m.Exposed / float64(m.Epochs) / float64(len(shares))
		}
	}
	r.WaitShare, r.TransferSeconds, r.HiddenShare = Number(waited), Number(transfer), Number(1-exposed/transfer)
}

// task is what the workers are told.
func (c *clusterRun) task() *task {
	return &task{Spec: c.spec, Data: c.parts.meta, Parts: c.parts.dir, ID: c.parts.book.ID}
}

// servers is the server of each rank, nil where every host is one.
func (c *clusterRun) servers() (of []int) {
	if c.spec.Servers == 0 {
		return nil
	}
	for r := range c.spec.Workers {
		of = append(of, c.spec.server(r))
	}
	return of
}

// runGoroutines trains with the workers in this process. As with runProcesses, there are
// shares beside the error if only the last state could not be saved.
func (c *clusterRun) runGoroutines(ctx context.Context, events event.Listener) ([]*share, error) {
	n := c.spec.Workers
	opt := wire.DefaultOptions()
	opt.Timeout, opt.ServerOf = c.spec.timeout(), c.servers()
	ends := wire.NewGroup(n, opt)
	shares, errs := make([]*share, n), make([]error, n)
	t := c.task()
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	k, err := newKeeper(c, events, stop)
	if err != nil {
		return nil, err
	}
	var wg sync.WaitGroup
	tasks, reporters := make([]task, n), make([]*reporter, n)
	for r, end := range ends {
		tasks[r], reporters[r] = *t, newReporter(r, end)
		tasks[r].watch = reporters[r]
	}
	defer c.watch.poll(reporters)()
	for r, end := range ends {
		wg.Go(func() {
			shares[r], errs[r] = tasks[r].onGoroutine(ctx, end, c.spec.threadsOf(n), k, events)
			if errs[r] != nil {
				end.Fail(errs[r])
			}
		})
	}
	wg.Wait()
	for _, end := range ends {
		end.Close()
	}
	if err := firstOf(errs); err != nil {
		return nil, k.close(err)
	}
	return shares, k.close(nil)
}

func (t *task) onGoroutine(ctx context.Context, end wire.Endpoint, threads int, k *keeper, events event.Listener) (*share, error) {
	part, err := t.openPart(end.Rank(), "")
	if err != nil {
		return nil, err
	}
	defer part.Close()
	from, err := k.restore(end.Rank())
	if err != nil {
		return nil, err
	}
	return t.work(ctx, part, end, threads, from, keepWith(end.Rank(), k.keep(end.Rank())), events)
}

// firstOf is the error that the others followed from.
func firstOf(errs []error) error {
	var any error
	for r, err := range errs {
		switch f, told := errors.AsType[*wire.Failure](err); {
		case err == nil:
		case !told || f.Rank == r:
			return fmt.Errorf("rank %d: %w", r, err)
		case any == nil:
			any = fmt.Errorf("rank %d: %w", r, err)
		}
	}
	return any
}

// TokenVariable is where a worker that we start finds its token.
const TokenVariable = "STARLING_TOKEN"

// ended is the error of a job as the command reports it.
func ended(err error) error {
	var d *cluster.Died
	switch {
	case errors.Is(err, context.Canceled):
		return ErrInterrupted
	case errors.As(err, &d) && d.Input:
		return &workerMistake{d}
	}
	return err
}

// workerMistake is a user's mistake that a worker found.
type workerMistake struct{ *cluster.Died }

func (*workerMistake) Is(target error) bool { return target == graph.ErrInput }

// checkpoint is a state to go on from, its arrays apart.
type checkpoint struct {
	Epoch   int     `json:"epoch"`
	Steps   int     `json:"steps"`
	History history `json:"history"`
	Caches  bool    `json:"caches,omitempty"` // every worker sends its own beside
	Only    bool    `json:"only,omitempty"`   // these are a worker's caches and no more
}

// packState is a state as text and arrays; the arrays of a group have its name
// before theirs.
func packState(st *train.State) (*checkpoint, *cluster.Stream, error) {
	var all []nn.Tensor
	for _, g := range []struct {
		name string
		list []nn.Tensor
	}{{"model", st.Model}, {"optimiser", st.Optim}, {"best", st.Best}} {
		for _, t := range g.list {
			t.Name = g.name + "/" + t.Name
			all = append(all, t)
		}
	}
	blob, err := packTensors(all, nil)
	return &checkpoint{Epoch: st.Epoch, Steps: st.Steps, History: historyOf(&st.History), Caches: st.Caches != nil}, blob, err
}

// unpackState is the way back; own are the worker's caches, or nothing.
func unpackState(c *checkpoint, blob, own []byte) (st *train.State, err error) {
	if c == nil {
		return nil, nil
	}
	all, err := unpackTensors(blob)
	if err != nil {
		return nil, err
	}
	var caches []nn.Tensor
	if len(own) > 0 {
		if caches, err = nn.OpenSafetensors(own); err != nil {
			return nil, err
		}
	}
	st = &train.State{Epoch: c.Epoch, Steps: c.Steps, History: c.History.floats(), Caches: caches}
	for _, t := range all {
		group, name, _ := strings.Cut(t.Name, "/")
		t.Name = name
		switch group {
		case "model":
			st.Model = append(st.Model, t)
		case "optimiser":
			st.Optim = append(st.Optim, t)
		case "best":
			st.Best = append(st.Best, t)
		}
	}
	return st, nil
}

// packTensors is arrays as the bytes of a safetensors file.
func packTensors(list []nn.Tensor, metadata map[string]string) (*cluster.Stream, error) {
	size, err := nn.SafetensorsSize(list, metadata)
	return &cluster.Stream{Size: size, Write: func(w io.Writer) error { return nn.WriteSafetensors(w, list, metadata) }}, err
}

func unpackTensors(blob []byte) ([]nn.Tensor, error) {
	list, _, err := nn.ReadSafetensors(bytes.NewReader(blob), int64(len(blob)))
	return list, err
}

// unpackShares reads what the workers ended with; the first sends weights along.
func unpackShares(results []cluster.Result) (shares []*share, err error) {
	for _, r := range results {
		s := &share{}
		if err := json.Unmarshal(r.Body, s); err != nil {
			return nil, fmt.Errorf("rank %d: its result: %w", r.Rank, err)
		}
		if len(r.Blob) > 0 {
			if s.best, err = unpackTensors(r.Blob); err != nil {
				return nil, fmt.Errorf("rank %d: its weights: %w", r.Rank, err)
			}
		}
		shares = append(shares, s)
	}
	return shares, nil
}

package run

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"starling/cluster"
	"starling/coflow"
	"starling/event"
	"starling/graph"
	"starling/internal/testseed"
	"starling/partition"
	"starling/setup"
	"starling/spec"
	"starling/supervise"
	"starling/tensor/cpu/simd"
	"starling/train"
	"starling/train/traintest"
	"starling/watch"
	"starling/wire"
	"starling/wire/paths"
	"starling/wire/tcp"
	"starling/worker"
)

// exactSettings make strategies exact that are not by default.
var exactSettings = map[string]string{"bns": "bns:1", "pipegcn": "pipegcn:0", "sancus": "sancus:epoch:0",
	"skipg": "skipg:0"}

// TestEveryPairTrains: runs that together have every pair of values that is not refused. An exact one
// follows the loss curve of one worker; in an approximate one the loss falls. GPUs are tested in
// tensor/cuda, and MPI needs its launcher. To save time it is a third of them, drawn by the seed;
// STARLING_RUNS=all is all.
func TestEveryPairTrains(t *testing.T) {
	dims := dimensions()
	runs := coverPairs(dims, func(dim, value string) bool {
		return value != "cuda" && value != "mpi" && value != "metis" && !partition.IsEngine(value) && value != oneWorker
	})
	c := &composed{t: t, dims: dims, dir: t.TempDir(), parts: map[string]string{}, curves: map[string][]float64{}}
	c.prepare()
	third := int(testseed.New(t) % 3)
	for i, r := range runs {
		if i%3 == third || os.Getenv("STARLING_RUNS") == "all" {
			c.run(i, r)
		}
	}
	t.Logf("%d runs, %d of them exact, on %d partitions", len(runs), c.exact, len(c.parts))
}

// composed is the runs of a test, and what they share.
type composed struct {
	t      *testing.T
	dims   []dimension
	dir    string
	data   map[string]*graph.Dataset // by task
	parts  map[string]string
	curves map[string][]float64 // of one worker
	exact  int
}

// twoPaths are two addresses of this host.
func twoPaths() string {
	return paths.Attached([]paths.Attachment{{Prefix: netip.MustParsePrefix("127.0.0.1/32"), Rate: 1e9},
		{Prefix: netip.MustParsePrefix("127.0.0.2/32"), Rate: 1e9}}).YAML()
}

// prepare writes what runs name: certificates, paths, and a graph for every task.
func (c *composed) prepare() {
	if _, err := MakeCerts(filepath.Join(c.dir, "certs"), []string{"here"}, 1, false); err != nil {
		c.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(c.dir, "paths.yaml"), []byte(twoPaths()), 0o600); err != nil {
		c.t.Fatal(err)
	}
	plain := traintest.Communities(c.t, 64, false)
	c.data = map[string]*graph.Dataset{"": plain, "classify": plain, "link": plain, "unsupervised": plain}
	for _, kind := range traintest.Tasks {
		c.data[map[string]string{graph.MultiLabel: "multilabel", graph.Regression: "regression"}[kind]] =
			traintest.WithTask(c.t, kind)
	}
}

// names are the values of a run by dimension.
func (c *composed) names(r composedRun) map[string]string {
	out := map[string]string{}
	for d, v := range r {
		if v >= 0 {
			out[c.dims[d].Name] = c.dims[d].Values[v].Name
		}
	}
	return out
}

func (c *composed) run(i int, r composedRun) {
	is := c.names(r)
	s := c.small(i, r, is)
	exact := is["codec"] != "bf16" && is["codec"] != "int8" && is["columns"] == "" &&
		!strings.HasPrefix(is["sampler"], "cluster") // of which workers make their own
	if text, ok := exactSettings[is["strategy"]]; ok && exact {
		if exact = i%2 == 0; exact {
			s.Strategy = text
			if is["strategy"] == "sancus" {
				if err := s.Set("clip", "0"); err != nil {
					c.t.Fatal(err)
				}
			}
		}
	}
	what := fmt.Sprintf("run %d: %v", i, is)
	loss, err := c.train(&s, is)
	switch {
	case err != nil:
		c.t.Errorf("%s: %v", what, err)
	case !exact:
		if last := slices.Min(loss[1:]); !(last < loss[0]) {
			c.t.Errorf("%s: losses %v", what, loss)
		}
	default:
		c.exact++
		want, tol := c.alone(s, is["task"]), tolerance(&s, is)
		for e := range want {
			if d := math.Abs(loss[e] - want[e]); !(d <= tol*math.Abs(want[e])) {
				c.t.Errorf("%s: losses %v, one worker's %v", what, loss, want)
				break
			}
		}
	}
}

// small is the spec of a run on a graph of a few vertices.
func (c *composed) small(i int, r composedRun, is map[string]string) spec.Spec {
	s := r.Spec(c.dims)
	s.Model.Hidden, s.Model.Dropout, s.Optimizer.LR, s.Training.EvalEvery, s.Training.Epochs, s.Seed = 8, 0, 0.02, 0, 4,
		uint64(i)
	s.Output.Quiet, s.Machine.Threads = true, 1
	if s.Mode == "mini" {
		s.Batches.Size = 24
	}
	if s.Model.Layers == spec.Auto {
		s.Model.Layers = 2
	}
	if is["dtype"] == "f64" {
		s.Machine.Threads = 0
	}
	if s.Cluster.Servers == 0 {
		s.Cluster.Workers, s.Cluster.Servers = 2, 2
	}
	if is["strategy"] == "cobatch" {
		s.Cluster.Workers = 4
	}
	if is["paths"] != "" {
		s.Cluster.Paths = filepath.Join(c.dir, "paths.yaml")
	}
	if is["trust"] == "tls" {
		s.Launch.TLS = filepath.Join(c.dir, "certs", "here")
	}
	return s
}

// tolerance is how near an exact run comes to one worker's losses.
func tolerance(s *spec.Spec, is map[string]string) float64 {
	switch {
	case s.Machine.DType == "bf16":
		return 5e-2
	case is["strategy"] == "switchgnn" || s.Machine.DType == "f32":
		return 5e-3
	}
	return 1e-9
}

// cut is a partition of the task's graph, made once.
func (c *composed) cut(s *spec.Spec, task string) (dir string) {
	key := fmt.Sprintf("%s %s %d %d", task, s.Cluster.Partitioner, s.Cluster.Workers, s.Cluster.Servers)
	if c.parts[key] != "" {
		return c.parts[key]
	}
	d := c.data[task]
	of, err := partition.Hierarchical(context.Background(), s.Cluster.Partitioner, &partition.Problem{Graph: d.Graph,
		Parts: s.Cluster.Workers, Seed: 1, Splits: d.Splits}, s.Cluster.Servers)
	if of == nil {
		c.t.Fatal(key, err)
	}
	dir = filepath.Join(c.dir, strings.ReplaceAll(key, " ", "-"))
	q := partition.Measure(d.Graph, of, s.Cluster.Workers, nil, true, 0)
	if err := partition.Write(context.Background(), d, of, s.Cluster.Workers, q,
		partition.WriteOptions{Dir: dir, Servers: s.Cluster.Servers}); err != nil {
		c.t.Fatal(key, err)
	}
	c.parts[key] = dir
	return dir
}

// train runs a spec's workers in this process, over the transport that it names, and returns the losses.
func (c *composed) train(s *spec.Spec, is map[string]string) ([]float64, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	dir := c.cut(s, is["task"])
	book, err := partition.OpenBook(dir)
	if err != nil {
		return nil, err
	}
	p := setup.PartsOf(dir, book)
	s.Cluster.Partition, s.Cluster.Partitioner = dir, spec.Default().Cluster.Partitioner
	if err := s.Complete(); err != nil {
		return nil, err
	}
	if err := errors.Join(worker.CheckPaths(s), p.Suits(s), s.ForLabels(&p.Meta)); err != nil {
		return nil, err
	}
	run := &supervise.Run{Spec: *s, Parts: p}
	run.Spec.ForData(&p.Meta, simd.Best().String())
	ends, err := c.ends(run)
	if err != nil {
		return nil, err
	}
	shares, errs := make([]*worker.Share, s.Cluster.Workers), make([]error, s.Cluster.Workers)
	traintest.Each(s.Cluster.Workers, func(r int) {
		if shares[r], errs[r] = c.work(run, ends[r]); errs[r] != nil {
			ends[r].Fail(errs[r])
		}
	})
	traintest.Close(ends)
	if err := worker.FirstError(errs); err != nil {
		return nil, err
	}
	result, err := worker.JoinShares(shares)
	if err != nil {
		return nil, err
	}
	return result.Loss, nil
}

// work is a worker of a run.
func (c *composed) work(run *supervise.Run, end wire.Endpoint) (*worker.Share, error) {
	one := *run.Task()
	part, err := one.OpenPart(end.Rank(), "")
	if err != nil {
		return nil, err
	}
	defer part.Close()
	one.Watch = watch.NewReporter(end.Rank(), end)
	keep := func(*train.State) error { return nil }
	return one.Work(context.Background(), part, end, run.Spec.Machine.CoresOf(run.Spec.Cluster.Workers), nil, keep,
		event.All())
}

// ends are the endpoints of a run: in this process, or as its processes would join.
func (c *composed) ends(run *supervise.Run) ([]wire.Endpoint, error) {
	s, n := &run.Spec, run.Spec.Cluster.Workers
	if s.Cluster.Transport == "inprocess" || s.Cluster.Transport == "auto" && s.Cluster.Paths == "" &&
		s.Launch.TokenFile == "" && s.Launch.TLS == "" {
		opt := wire.DefaultOptions()
		opt.ServerOf, opt.Order = setup.ServersOf(s), coflow.OrderNamed(s.Cluster.SendOrder)
		return wire.NewGroup(n, opt), nil
	}
	members := make([]*cluster.Member, n)
	var peers []cluster.Peer
	for r := range members {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		members[r] = &cluster.Member{Rank: r, Job: "test", Listener: l}
		peers = append(peers, cluster.Peer{Rank: r, Addr: l.Addr().String(), Host: "here", Server: setup.ServerOf(s, r)})
	}
	ends, errs := make([]wire.Endpoint, n), make([]error, n)
	var wg sync.WaitGroup
	for r, m := range members {
		m.Peers = peers
		w := &worker.Spec{Rank: r, TLS: s.Launch.TLS, Token: []byte("secret of the test")}
		wg.Go(func() {
			cfg, err := w.WireConfig(m, s)
			if err == nil {
				ends[r], err = tcp.Join(context.Background(), cfg)
			}
			errs[r] = err
		})
	}
	wg.Wait()
	return ends, errors.Join(errs...)
}

// alone is the curve of one worker with what decides the result.
func (c *composed) alone(s spec.Spec, task string) []float64 {
	one := spec.Default()
	one.Task, one.Model.Name, one.Mode, one.Model.Layers = s.Task, s.Model.Name, s.Mode, s.Model.Layers
	one.Model.Hidden, one.Model.Heads = s.Model.Hidden, s.Model.Heads
	one.Model.Dropout, one.Optimizer.LR, one.Training.EvalEvery, one.Training.Epochs, one.Seed = s.Model.Dropout,
		s.Optimizer.LR, s.Training.EvalEvery, s.Training.Epochs, s.Seed
	one.Batches.Size, one.Batches.Sampler, one.Machine.DType, one.Machine.Threads = s.Batches.Size, s.Batches.Sampler,
		s.Machine.DType, s.Machine.Threads
	one.Model.Norm, one.Optimizer.WeightDecay, one.Model.InputDropout, one.Pairs.Embedding = s.Model.Norm,
		s.Optimizer.WeightDecay, s.Model.InputDropout, s.Pairs.Embedding
	one.Cluster.Workers, one.Strategy = 1, "none"
	key := one.String()
	if c.curves[key] != nil {
		return c.curves[key]
	}
	data := c.data[task]
	if err := errors.Join(one.Complete(), one.Validate(), one.ForLabels(&data.Meta)); err != nil {
		c.t.Fatal(err)
	}
	p := &prepared{spec: one, data: data}
	p.spec.ForData(&data.Meta, simd.Best().String())
	r, err := p.train(context.Background(), event.All())
	if err != nil {
		c.t.Fatal(key, err)
	}
	c.curves[key] = r.Loss
	return r.Loss
}

package full

import (
	"context"
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"starling/internal/testseed"
	"starling/nn"
	"starling/partition"
	"starling/rng"
	"starling/train/traintest"
)

// exactChoices are strategies that follow one worker's loss curve.
var exactChoices = []string{"halo", "cagnet", "bns:1", "bns:1:cached", "pipegcn:0", "sancus:epoch:0",
	"sancus:variation:0", "skipg:0",
	"g3", "g3:none", "g3:inter", "g3:intra", "granndis:0", "granndis:1", "granndis:2", "granndis:auto", "neutronstar"}

// drawn is one combination of what must not change a result.
type drawn struct {
	model, norm, method, transport, strategy string
	layers, workers, servers, vertices       int
	sparse, cacheFirst, weighted, inductive  bool
	relay, sparseRows                        bool
}

func draw(key rng.Key) drawn {
	at := uint64(0)
	pick := func(n int) int { at++; return int(key.IntN(at, n)) }
	of := func(list ...string) string { return list[pick(len(list))] }
	methods := slices.DeleteFunc(partition.Names(), func(m string) bool { return m == "metis" }) // not on every machine
	d := drawn{model: of("gcn", "sage", "sage-pool", "gat", "gatv2", "gin", "film", "ressage+"),
		norm: of("none", "batch", "layer"), method: of(methods...),
		transport: of("inprocess", "tcp", "shm"), strategy: of(exactChoices...), layers: 1 + pick(3),
		workers: []int{1, 2, 3, 4, 8}[pick(5)],
		servers: 1, vertices: 60 + pick(100), sparse: pick(2) == 0, cacheFirst: pick(2) == 0}
	if d.workers%2 == 0 && pick(2) == 0 {
		d.servers = 2
		d.relay = d.workers > 2 && has(d.strategy, "relay") && pick(2) == 0
	}
	d.weighted = !nn.Attends(d.model) && pick(3) == 0 // attention makes weights of its own
	d.inductive = pick(3) == 0
	d.sparseRows = pick(2) == 0
	if d.model == "ressage+" {
		d.layers = 28
		if d.norm == "none" {
			d.norm = "layer"
		}
	}
	return d
}

// sendsZeros reports whether some layer of a model sends rows that have zeros to leave out.
func sendsZeros(c nn.Config) bool {
	for layer := range c.Layers {
		if c.SendsZeros(layer) {
			return true
		}
	}
	return false
}

// TestAnyCombinationIsExact draws models, worker counts, partitions, transports and
// exact strategies at random: all follow one worker's loss. STARLING_SEED repeats a
// run that failed, STARLING_RUNS makes it longer.
func TestAnyCombinationIsExact(t *testing.T) {
	seed, runs := testseed.New(t), 10
	if n, err := strconv.Atoi(os.Getenv("STARLING_RUNS")); err == nil {
		runs = n
	}
	for i := range runs {
		c := draw(rng.New(seed).Fold(uint64(i)))
		t.Run(fmt.Sprintf("%d", i), func(t *testing.T) {
			t.Logf("%s=%d: %+v", testseed.Env, seed, c)
			followsOneWorker(t, c)
		})
	}
}

func followsOneWorker(t *testing.T, c drawn) {
	d := traintest.Communities(t, c.vertices, c.sparse)
	if c.weighted {
		d.Graph.Weights = make([]float32, d.Graph.Edges())
		for e := range d.Graph.Weights {
			d.Graph.Weights[e] = 0.5 + rng.New(5).Float32(uint64(e))
		}
	}
	o := traintest.Options(c.model)
	o.Epochs, o.EvalEvery, o.CacheFirst, o.Inductive = 4, 2, c.cacheFirst, c.inductive
	o.Model.Layers, o.Model.Norm = c.layers, c.norm
	want := traintest.Full(t, traintest.Ref(), d, o)
	parts := traintest.CutForServers(t, d, c.method, c.workers, c.servers)
	sparse := c.sparseRows && sendsZeros(o.Model)
	o.Strategy = traintest.Strategy(t, c.strategy, optionIf(strings.HasPrefix(c.strategy, "sancus"), "clip=0"),
		optionIf(c.relay, "relay"), optionIf(sparse, "sparse_rows"))
	for _, r := range traintest.TrainOver(t, traintest.Over(t, c.transport, c.workers), parts, traintest.Ref, o) {
		traintest.SameCurve(t, "float64", r.Loss, want.Loss, 1e-9)
		traintest.SameCurve(t, "float64, validation", r.Val, want.Val, 1e-9)
	}
	// 28 layers with batch norm magnify rounding: one worker's own distance from
	// float64 says by how much.
	one := traintest.Full(t, traintest.CPU(t, 1), d, o)
	tol := inSingle(c.model)
	if nn.Attends(c.model) { // rounding may carry a score over the bend of its LeakyReLU, on workers or on one
		tol = max(tol, 1e-3)
	}
	for e := range want.Loss {
		tol = max(tol, 10*math.Abs(one.Loss[e]-want.Loss[e])/want.Loss[e])
	}
	for _, r := range traintest.TrainParts(t, parts, traintest.Single, o) {
		traintest.SameCurve(t, "float32", r.Loss, want.Loss, min(tol, 1e-2))
	}
}

// TestDeepOnEveryTransportAndPartition: 28 residual layers with dropout on 1, 2, 3,
// 4 and 8 workers, over every transport and every way to cut a graph.
func TestDeepOnEveryTransportAndPartition(t *testing.T) {
	d := traintest.Communities(t, 90, false)
	o := traintest.Options("ressage+")
	o.Epochs, o.EvalEvery, o.Model.Hidden = 2, 0, 8
	want := traintest.Full(t, traintest.Ref(), d, o)
	methods, transports := partition.Names(), []string{"inprocess", "tcp", "shm"}
	for i, method := range methods {
		if _, err := partition.By(context.Background(), method,
			&partition.Problem{Graph: d.Graph, Parts: 2, Seed: 1, Splits: d.Splits}); method == "metis" && err != nil {
			t.Logf("%v", err) // the library is not on this machine
			continue
		}
		for j, w := range []int{1, 2, 3, 4, 8} {
			if (i+j)%2 > 0 { // half of them, in turn
				continue
			}
			transport := transports[(i+j)%len(transports)]
			parts := traintest.Cut(t, d, method, w)
			for _, r := range traintest.TrainOver(t, traintest.Over(t, transport, w), parts, traintest.Ref, o) {
				traintest.SameCurve(t, fmt.Sprintf("%s into %d over %s", method, w, transport), r.Loss, want.Loss, 1e-9)
			}
		}
	}
}

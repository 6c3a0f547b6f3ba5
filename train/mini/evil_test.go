package mini_test

import (
	"os"
	"slices"
	"strconv"
	"testing"

	"starling/internal/testseed"
	"starling/train"
	"starling/train/traintest"
)

// evilCase is what workers train; without a sampler, on the full graph.
type evilCase struct {
	strategy, sampler string
	fanouts           []int
	options           []string
}

// embedded is the option of a case that learns embeddings, which the strategy does not have.
const embedded = "embeddings"

// TestEvilPeer trains beside a peer that is authenticated and mutates, truncates, replays, delays and reorders its own
// messages. STARLING_EVIL_RUNS is how often; each run has a seed that is logged where it fails, and STARLING_SEED
// repeats from it.
func TestEvilPeer(t *testing.T) {
	runs, _ := strconv.Atoi(os.Getenv("STARLING_EVIL_RUNS"))
	if runs == 0 {
		runs = 12
	}
	cases := []evilCase{
		{"distdgl", "neighbour", []int{3, 3}, nil},
		{"distdgl", "neighbour", []int{3, 3}, []string{"dgs", "dgs_every=2", "dgs_epochs=3"}},
		{"distdgl", "neighbour", []int{3, 3}, []string{embedded}},
		{"distdgl", "fastgcn", []int{20, 20}, nil},
		{"distdgl", "ladies", []int{20, 20}, nil},
		{"distdgl", "saint-walk", nil, nil},
		{"distdgl", "saint-edge", nil, nil},
		{"distdgl", "cluster", nil, nil},
		{"distdgl", "saint-node", nil, nil},
		{"bytegnn", "neighbour", []int{3, 3}, nil},
		{"hopgnn", "neighbour", []int{3, 3}, nil},
		{"naive-hop", "neighbour", []int{3, 3}, nil},
		{"salient", "neighbour", []int{3, 3}, nil},
		{"p3", "neighbour", []int{3, 3}, nil},
		{"cobatch", "neighbour", []int{3, 3}, nil},
		{"lookahead", "neighbour", []int{3, 3}, nil},
		{"lookahead", "neighbour", []int{3, 3}, []string{embedded}},
	}
	for _, full := range []string{"halo", "bns", "pipegcn", "cagnet", "sancus", "skipg", "granndis",
		"neutronstar", "neutrontp", "plexus", "g3"} {
		cases = append(cases, evilCase{strategy: full})
	}
	seed, outcomes := testseed.New(t), map[string]int{}
	d := traintest.Communities(t, 90, false)
	parts := traintest.Cut(t, d, "random", 3)
	for i := range uint64(runs) {
		c := cases[(seed+i)%uint64(len(cases))]
		o := traintest.Options("sage")
		if slices.Equal(c.options, []string{embedded}) {
			o, c.options = traintest.WithEmbeddings("sage", d, 4), nil
		}
		o.Epochs, o.Model.Layers, o.Model.Norm = 2, 2, "none"
		if c.sampler != "" {
			o.Batches = &train.BatchSettings{Sampler: c.sampler, Size: 15, Fanouts: c.fanouts, Threads: 1}
		}
		o.Strategy = traintest.Strategy(t, c.strategy, c.options...)
		outcomes[traintest.EvilPeer(t, seed+i, parts, o)]++
	}
	t.Logf("how %d runs ended: %v", runs, outcomes)
}

// TestTypedEvilPeer: likewise on a typed graph, some of whose types have learnt rows.
func TestTypedEvilPeer(t *testing.T) {
	runs, _ := strconv.Atoi(os.Getenv("STARLING_EVIL_RUNS"))
	if runs == 0 {
		runs = 10
	}
	seed, outcomes := testseed.New(t), map[string]int{}
	d := traintest.Typed(t, 40)
	parts := traintest.CutForServers(t, d, "random", 3, 1)
	for i := range uint64(runs) {
		o := traintest.TypedOptions(d, "hsage")
		o.Epochs, o.Batches = 2, &train.BatchSettings{Sampler: "neighbour", Size: 16, Fanouts: []int{3, 2},
			RelationFanouts: [][]int{{1}}, Threads: 1}
		o.Strategy = traintest.Strategy(t, []string{"distdgl", "salient", "bytegnn", "hopgnn", "cobatch",
			"lookahead"}[(seed+i)%6])
		outcomes[traintest.EvilPeer(t, seed+i, parts, o)]++
	}
	t.Logf("how %d runs ended: %v", runs, outcomes)
}

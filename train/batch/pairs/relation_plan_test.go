package pairs_test

import (
	"maps"
	"math"
	"slices"
	"testing"

	"starling/nn"
	"starling/partition"
	"starling/train"
	"starling/train/traintest"
	"starling/wire"
)

// TestRelationBatchesSendWhatIsPlanned: plans are made of the batches of epoch 1, all of which are drawn where they are
// few. What workers send in that epoch for pairs of relations is planned to the byte, whatever negatives they have and
// however a batch is divided. What is asked for hop by hop comes close.
func TestRelationBatchesSendWhatIsPlanned(t *testing.T) {
	d := traintest.Typed(t, 40)
	link := relationBatches(30, len(d.Meta.Schema.Relations))
	negatives := append(slices.Sorted(maps.Keys(relationNegatives)), "uniform")
	for i, c := range [][]string{{"distdgl"}, {"distdgl", "roots=random", "pull_dtype=bf16"},
		{"distdgl", "roots=local"}, {"distdgl", "cache=degree", "cache_budget=1KiB"},
		{"salient", "cache_budget=1KiB"}, {"salient", "roots=random"}, {"bytegnn"}, {"bytegnn", "roots=random"}} {
		for w, workers := range []int{2, 3, 5} {
			o := traintest.RelationOptions(d, nn.TypedModels[(i+w)%len(nn.TypedModels)], "distmult", "has", "knows")
			o.EvalEvery = 0
			kind := negatives[(2*i+w)%len(negatives)]
			if change := relationNegatives[kind]; change != nil {
				change(o.Pairs)
			}
			o.Strategy, o.Batches = traintest.Strategy(t, c[0], c[1:]...), &link.Batches
			parts := traintest.CutForServers(t, d, "random", workers, workers)
			planned, sent := inEpoch1(t, parts, o)
			for class := range maps.Keys(plus(planned, sent)) {
				within := 0.0
				if c[0] == "bytegnn" && class.Kind == wire.Topology {
					within = 0.01
				}
				if math.Abs(float64(planned[class]-sent[class])) > within*float64(sent[class]) {
					t.Errorf("%s negatives, %v on %d workers: planned %d bytes of %v, sent %d", kind, c, workers,
						planned[class], class, sent[class])
				}
			}
		}
	}
}

// inEpoch1 are the bytes of all workers in epoch 1 of 3, by kind and link: as planned, and as counted without what is
// sent before training, to plan.
func inEpoch1(t *testing.T, parts []*partition.Part, o train.Options) (planned, sent wire.Bytes) {
	t.Helper()
	planned, sent = wire.Bytes{}, wire.Bytes{}
	for epochs, sign := range map[int]int64{0: -1, 3: 1} {
		ends := traintest.BatchEnds(len(parts), true)
		o.Epochs = epochs
		results, errs := make([]*train.Result, len(parts)), make([]error, len(parts))
		traintest.Each(len(parts), func(k int) {
			results[k], errs[k] = traintest.Work(parts[k], ends[k], traintest.Ref, o, nil)
		})
		for k, r := range results {
			if errs[k] != nil {
				t.Fatalf("worker %d: %v", k, errs[k])
			}
			if epochs > 0 {
				for c, bytes := range plus(r.Plan.Drawn, r.Plan.In(1), r.Plan.Begin) {
					planned[wire.Class{Kind: c.Kind, Link: c.Link}] += bytes
				}
			}
			for e, c := range ends[k].Ledger().Counts() {
				if e.Sent && e.Epoch == 1 {
					sent[wire.Class{Kind: e.Kind, Link: e.Link}] += sign * c.Bytes
				}
			}
		}
		traintest.Close(ends)
	}
	return planned, sent
}

// plus is the sum of bytes.
func plus(all ...wire.Bytes) wire.Bytes {
	sum := wire.Bytes{}
	for _, b := range all {
		sum.AddAll(b, 1)
	}
	return sum
}

package traintest

import (
	"context"
	"errors"
	"maps"
	"testing"
	"time"

	"starling/collective"
	"starling/partition"
	"starling/tensor"
	"starling/train"
	"starling/wire"
)

// TrainReduced trains on workers whose devices sum gradients by themselves, within a time for each sum; err says why
// they do not.
func TrainReduced(t testing.TB, parts []*partition.Part, device func(rank int) tensor.Device, o train.Options,
	within time.Duration) (results []*train.Result, parameterBytes int64, err error) {
	t.Helper()
	ends, ctx := Ends(len(parts)), context.Background()
	defer Close(ends)
	results = make([]*train.Result, len(parts))
	errs := make([]error, len(parts))
	Each(len(parts), func(k int) {
		dev := device(k)
		defer dev.Close()
		g := train.NewGroup(ctx, ends[k], dev, 1)
		r, err := collective.JoinReducer(ctx, dev, ends[k], within)
		if errs[k] = err; err != nil {
			return
		}
		g.ReduceBy(r, within)
		results[k], errs[k] = train.Worker(ctx, dev, parts[k], ends[k], g, o, nil)
	})
	counts := ends[0].Ledger().SentBytes()
	for c, n := range counts {
		if c.Kind == wire.Parameter {
			parameterBytes += n
		}
	}
	if errs[0] == nil && !maps.Equal(counts, results[0].Plan.Total(0, o.Epochs, len(results[0].Measured), o.Epochs)) {
		t.Errorf("worker 0 sent %v, which was not planned", counts)
	}
	return results, parameterBytes, errors.Join(errs...)
}

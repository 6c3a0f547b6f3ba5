package report

import (
	"testing"

	"starling/train"
	_ "starling/train/full" // registers the strategies
	_ "starling/train/mini" // likewise
)

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"dataset":"d","strategy":"halo","workers":2,"loss":[1,null],"epoch_seconds":[1],` +
		`"bytes":{"by_kind":{"a":1}}}`))
	f.Add([]byte(`{"rows":[]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		if r, err := parse(b); err == nil {
			c := Compare([]*Rounds{{Strategy: train.Label(r.Strategy, r.StrategySettings), Runs: []*Run{r}}})
			_, _, _ = c.String(), c.Papers(), c.HTML()
		}
	})
}

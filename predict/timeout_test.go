package predict

import (
	"context"
	"path/filepath"
	"testing"

	"starling/partition"
	"starling/serve"
	"starling/setup/setuptest"
	_ "starling/train/full" // the default strategy
)

// TestStoppedWorkersEndWithinTimeout: workers are started four times, and each start ends after a silence, all within
// --timeout. A timeout that cannot be kept, or that is for nothing, is refused.
func TestStoppedWorkersEndWithinTimeout(t *testing.T) {
	data, parts := setuptest.Block(t, nil), filepath.Join(t.TempDir(), "parts")
	cut := partition.Options{Parts: 2, Method: "hash", Out: parts}
	if _, err := partition.Run(context.Background(), data, cut); err != nil {
		t.Fatal(err)
	}
	for _, timeout := range []int{0, 6, 10, 30, 300} {
		o := Options{Dataset: parts, What: serve.Labels, Timeout: timeout}
		c, err := o.inferenceOf(&serve.Trained{})
		if err != nil {
			t.Fatal(err)
		}
		const starts, ending = 4, 2
		silence, wait := c.Spec.Cluster.Heartbeat, c.Spec.Cluster.Timeout
		if silence < 1 || timeout > 0 && (wait != timeout || starts*silence+ending > timeout) {
			t.Errorf("timeout %d: a silence of %d s, waits of %d s", timeout, silence, wait)
		}
	}
	for _, o := range []Options{{Dataset: parts, Timeout: 2}, {Dataset: parts, Timeout: -6}, {Dataset: data, Timeout: 60}} {
		if err := checkTimeout(o.Timeout, o.Dataset); !setuptest.IsMistake(err, "--timeout") {
			t.Errorf("%d with %s: %v", o.Timeout, o.Dataset, err)
		}
	}
}

package batch

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"starling/event"
	"starling/graph"
	"starling/sample"
	"starling/tensor"
	"starling/train"
	"starling/train/traintest"
)

// leastMemory is what a run needs for rows from disk, and a little for rows that are needed again.
func leastMemory(t *testing.T, d *graph.Dataset, o train.Options, m train.BatchSettings) int64 {
	t.Helper()
	memory := int64(1)
	for o.Epochs = 1; ; {
		o.Disk = &train.DiskOptions{Memory: memory}
		_, err := Run(context.Background(), traintest.CPU(t, 1), d, o, m, nil)
		found := regexp.MustCompile(`plans take (\d+)`).FindStringSubmatch(fmt.Sprint(err))
		if found == nil {
			return memory
		}
		n, _ := strconv.ParseInt(found[1], 10, 64)
		memory = n + 3000
	}
}

// TestOnDiskSameBits: rows that are read from disk ahead of batches are those that are mapped, for every sampler,
// also after a checkpoint inside an epoch.
func TestOnDiskSameBits(t *testing.T) {
	d := traintest.Saved(t, traintest.Communities(t, 400, false))
	for _, sampler := range sample.Names {
		for _, rows := range []tensor.DType{tensor.F32, tensor.BF16} {
			o := traintest.Options("sage")
			o.Epochs, o.EvalEvery, o.Rows, o.Model.InputDropout = 3, 2, rows, rows == tensor.F32
			m := samplerOptions(sampler, 2)
			mapped := mustMini(t, traintest.CPU(t, 2), d, o, m)
			var saved *train.State
			o.SaveSteps, o.Save = 1, func(s *train.State) error {
				if s.Batch > 0 && s.Epoch == 1 && saved == nil {
					c := *s
					saved = &c
				}
				return nil
			}
			o.Disk = &train.DiskOptions{Memory: leastMemory(t, d, o, m), Packed: 1 << 20, Scratch: t.TempDir()}
			said := ""
			listener := event.Func(func(e event.Event) {
				if n, ok := e.(event.Note); ok && strings.HasPrefix(n.Text, "rows of features") {
					said = n.Text
				}
			})
			disk := traintest.Ran(t)(Run(context.Background(), traintest.CPU(t, 2), d, o, m, listener))
			if !slices.Equal(mapped.Loss, disk.Loss) || !sameTensors(mapped.Final, disk.Final) {
				t.Errorf("%s, %v: losses %v, mapped %v", sampler, rows, disk.Loss, mapped.Loss)
			}
			if !strings.Contains(said, "needed") {
				t.Errorf("%s: said %q", sampler, said)
			}
			if saved == nil {
				continue // an epoch is one batch
			}
			o.Resume, o.Save = saved, nil
			if resumed := mustMini(t, traintest.CPU(t, 2), d, o, m); !sameTensors(mapped.Final, resumed.Final) {
				t.Errorf("%s, %v: resumed inside an epoch, losses %v, mapped %v", sampler, rows, resumed.Loss,
					mapped.Loss)
			}
		}
	}
}

// TestOnDiskNeedsFile: features that are no file's are refused.
func TestOnDiskNeedsFile(t *testing.T) {
	d := traintest.Communities(t, 400, false)
	o := traintest.Options("sage")
	o.Disk = &train.DiskOptions{Memory: 1 << 30}
	_, err := Run(context.Background(), traintest.CPU(t, 1), d, o, samplerOptions("neighbour", 2), nil)
	if err == nil || !strings.Contains(err.Error(), "not those of a file") {
		t.Errorf("features in memory: %v", err)
	}
}

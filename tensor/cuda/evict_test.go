//go:build linux && amd64 && !static

package cuda_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"starling/tensor"
	"starling/tensor/cuda"
	"starling/train/traintest"
)

// swapped has two matrices leave and come back while others take the memory they had, and returns what they have then,
// with what the caller was given to save.
func swapped(d *cuda.Device, rows int) (got []float32, saved int, err error) {
	const cols = 64
	var files [2][]byte
	var away [2]tensor.Matrix
	for k := range away {
		away[k] = d.Scratch(tensor.F32, rows, cols)
		x := d.FromHost(rows, cols, numbered(rows*cols, float32(k)))
		d.Combine(away[k], 2, x, 0, tensor.Matrix{})
	}
	for k, m := range away {
		_, err := d.Evict(m, func(b []byte) error { files[k] = slices.Clone(b); saved++; return nil })
		if err != nil {
			return nil, saved, err
		}
	}
	other := d.Scratch(tensor.F32, rows, cols)
	third := d.Scratch(tensor.F32, rows, cols)
	d.Zero(other)
	d.Zero(third)
	for k, m := range away {
		if k == 1 {
			d.Free(other)
		}
		if err := d.Restore(m, func(b []byte) error { copy(b, files[k]); return nil }); err != nil {
			return nil, saved, err
		}
		out := make([]float32, rows*cols)
		d.Combine(third, 1, m, 1, third)
		d.Download(out, third)
		got = append(got, out...)
	}
	for _, m := range append(away[:], third) {
		d.Free(m)
	}
	return got, saved, d.Err()
}

func numbered(n int, first float32) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = first + float32(i%1021)
	}
	return x
}

// left is what swapped returns where nothing is wrong.
func left(rows int) (want []float32) {
	sum := make([]float32, rows*64)
	for k := range 2 {
		for i, v := range numbered(rows*64, float32(k)) {
			sum[i] += 2 * v
		}
		want = append(want, sum...)
	}
	return want
}

// TestEvict: what left and came back is what it was, in pieces of both kinds, with each stream as late as it may be.
func TestEvict(t *testing.T) {
	needDriver(t)
	for _, late := range []string{"", "1"} {
		t.Setenv("EMULATOR_LATE", late)
		for _, strict := range []string{"", "1"} {
			t.Setenv("STARLING_CUDA_STRICT", strict)
			for _, rows := range []int{50, 5000} {
				d := open(t, cuda.Options{Plain: true})().(*cuda.Device)
				for range 3 {
					got, _, err := swapped(d, rows)
					if err != nil || !slices.Equal(got, left(rows)) {
						t.Errorf("late %q, strict %q, %d rows: other numbers came back than left; %v", late, strict, rows, err)
					}
				}
				d.Close()
			}
		}
	}
}

// TestEvictedMemory: what left is not in use, its memory serves others, and it may be freed where it is.
func TestEvictedMemory(t *testing.T) {
	d := piecewise(t)
	bytes := func() int64 { n, _ := d.Usage(); return n }
	for range 4 {
		before := bytes()
		m := d.New(tensor.F32, 16384, 256) // 16 MiB
		view, of := m.Slice(0, 10), d.FromHost(1, 2, []float32{1, 2})
		for _, stays := range []tensor.Matrix{view, of, d.New(tensor.F32, 0, 3)} {
			if ok, err := d.Evict(stays, nil); ok || err != nil {
				t.Errorf("%v left: %v", stays, err)
			}
		}
		d.Return(of)
		if ok, err := d.Evict(m, func([]byte) error { return nil }); !ok || err != nil || bytes() != before {
			t.Fatalf("%v, %v: %d bytes are in use, want %d", ok, err, bytes(), before)
		}
		d.Free(d.New(tensor.F32, 16384, 256))
		d.Free(m)
	}
	if _, peak := d.Usage(); peak > 20<<20 {
		t.Errorf("%d bytes were taken for one matrix at a time", peak)
	}
}

// evictAsked has TestEvictFaults swap in a process of its own.
const evictAsked = "STARLING_TEST_EVICT"

// TestEvictFaults: without pinned memory the caller saves the bytes; a GPU that is lost, or that has not the memory, is
// told in a sentence.
func TestEvictFaults(t *testing.T) {
	if os.Getenv(evictAsked) != "" {
		d := open(t, cuda.Options{Plain: true})().(*cuda.Device)
		defer d.Close()
		got, saved, err := swapped(d, 50)
		fmt.Printf("[%d saved, equal %v, %v]\n", saved, slices.Equal(got, left(50)), err)
		return
	}
	if needDriver(t); emulated == "" {
		t.Skip("needs the emulator, whose calls can be made to fail")
	}
	for fail, want := range map[string]string{
		"cuMemAllocHost:2:2":    "[2 saved, equal true, <nil>]", // the first is of uploads
		"cuMemcpyDtoH:1:46":     "the GPU does not answer",
		"cuMemcpyHtoD:3:46":     "the GPU does not answer",
		"cuStreamWaitEvent:1:2": "CUDA_ERROR_OUT_OF_MEMORY",
		"cuMemAllocAsync:5:2":   "CUDA_ERROR_OUT_OF_MEMORY",
	} {
		cmd := exec.Command(os.Args[0], "-test.run", "^TestEvictFaults$")
		cmd.Env = append(os.Environ(), evictAsked+"=1", "EMULATOR_FAIL="+fail)
		out, err := cmd.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, %s does not say %q", fail, err, out, want)
		}
	}
}

// spillAsked has TestSpill train in a process of its own.
const spillAsked = "STARLING_TEST_SPILL"

// TestSpill: g3 with rows that leave the GPU has the losses of one whose rows stay, to the bit, in a fraction of the
// memory, also on a GPU whose memory is too small for all rows: without --spill it ends there with a sentence.
func TestSpill(t *testing.T) {
	needDriver(t)
	if emulated != "" && os.Getenv(spillAsked) == "" { // in a process whose GPU has no memory of other tests
		cmd := exec.Command(os.Args[0], "-test.run", "^TestSpill$")
		cmd.Env = append(os.Environ(), spillAsked+"=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v: %s", err, out)
		}
		return
	}
	parts := traintest.Cut(t, traintest.Communities(t, 120, false), "random", 2)
	t.Setenv("STARLING_CUDA_IPC", "off") // whose regions are larger than all rows
	run := func(options ...string) (losses [][]float64, peak int64, err error) {
		o := traintest.Options("ressage+")
		o.Epochs, o.EvalEvery, o.Model.Layers, o.Model.Hidden = 2, 0, 14, 8
		o.Strategy = traintest.Strategy(t, "g3", options...)
		ends := traintest.Ends(2)
		defer traintest.Close(ends)
		o.HostDevice = traintest.Single
		var devices [2]tensor.Device
		errs, all := make([]error, 2), make([][]float64, 2)
		traintest.Each(2, func(k int) {
			devices[k] = open(t, cuda.Options{})()
			r, err := traintest.Work(parts[k], ends[k], func() tensor.Device { return devices[k] }, o, nil)
			if errs[k] = err; err == nil {
				all[k] = r.Loss
			}
		})
		for _, d := range devices {
			_, most := d.Usage()
			peak = max(peak, most)
		}
		return all, peak, errors.Join(errs...)
	}
	want, all, err := run("memory_budget=20KiB")
	if err != nil {
		t.Fatal(err)
	}
	spill := []string{"memory_budget=20KiB", "spill=" + t.TempDir()}
	got, most, err := run(spill...)
	if err != nil || !slices.EqualFunc(got, want, slices.Equal) || most >= all-all/8 {
		t.Errorf("%v: losses are %v in %d bytes, want %v in fewer than %d", err, got, most, want, all)
	}
	if emulated == "" {
		return
	}
	_, used, _ := cuda.InUse()
	// The workers need not be at their peaks at the same time: somewhere in between only the one that spills trains.
	for half := range int64(6) {
		t.Setenv("EMULATOR_MEMORY", fmt.Sprint(used+2*most-(all-most)+half*(all-most)/2))
		_, _, without := run(spill[:1]...)
		if without == nil || !strings.Contains(without.Error(), "CUDA_ERROR_OUT_OF_MEMORY") {
			t.Fatalf("on a small GPU without --spill: %v", without)
		}
		got, _, err := run(spill...)
		if err == nil && slices.EqualFunc(got, want, slices.Equal) {
			return
		}
		if err == nil || !strings.Contains(err.Error(), "CUDA_ERROR_OUT_OF_MEMORY") {
			t.Fatalf("on a small GPU: %v, losses are %v, want %v", err, got, want)
		}
	}
	t.Error("--spill trains on no GPU that is too small without it")
}

//go:build linux && amd64 && !static

package cuda_test

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"starling/tensor"
	"starling/tensor/cuda"
	_ "starling/train/full"
	"starling/train/traintest"
)

// linked are two devices, of which the second is told how to read the first.
func linkedDevices(t *testing.T) (lender, reader *cuda.Device) {
	needDriver(t)
	lender, reader = open(t, cuda.Options{})().(*cuda.Device), open(t, cuda.Options{})().(*cuda.Device)
	t.Cleanup(func() { lender.Close(); reader.Close() })
	if err := reader.Meet(0, lender.Hello()); err != nil {
		t.Fatal(err)
	}
	return lender, reader
}

func counted(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(i) + 0.25
	}
	return x
}

// TestLinkInProcess: a device reads rows of another where they are.
func TestLinkInProcess(t *testing.T) {
	a, b := linkedDevices(t)
	m, dst := a.Lend(tensor.F32, 100, 33), b.New(tensor.F32, 40, 33)
	a.Upload(m, counted(3300))
	a.Sync()
	if err := b.Fetch(dst, 0, a.Refer(m.Slice(60, 100))); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	b.After(func() { close(read) })
	<-read
	got := make([]float32, 40*33)
	b.Download(got, dst)
	if !slices.Equal(got, counted(3300)[60*33:]) {
		t.Error("other numbers came than were lent")
	}
	a.Free(m)
	if again := a.Lend(tensor.F32, 100, 33); tensor.Address(again) != tensor.Address(m) {
		t.Error("what was given back is not lent again")
	}
	if b.Part(0); b.Met(0) {
		t.Error("a worker is not forgotten")
	}
}

// TestLinkRefused: what cannot be read is told in a sentence.
func TestLinkRefused(t *testing.T) {
	a, b := linkedDevices(t)
	elsewhere, unknown := slices.Clone(a.Hello()), slices.Clone(a.Hello())
	elsewhere[0]++
	unknown[16]++ // another process, with a handle of none
	copy(unknown[48:112], make([]byte, 64))
	for _, c := range []struct {
		hello []byte
		want  string
	}{{nil, "no GPU"}, {elsewhere, "another host"}, {unknown, "no handles"}} {
		if err := b.Meet(1, c.hello); err == nil || !strings.Contains(err.Error(), c.want) || b.Met(1) {
			t.Errorf("found %v, want %q", err, c.want)
		}
	}
	m, dst := a.Lend(tensor.F32, 4, 32), b.New(tensor.F32, 8, 32)
	if err := b.Fetch(dst, 0, a.Refer(m)); err == nil {
		t.Error("a reference to fewer rows than are read")
	}
	t.Setenv("STARLING_CUDA_IPC", "off")
	c := open(t, cuda.Options{})().(*cuda.Device)
	defer c.Close()
	if c.Hello() != nil || c.Meet(0, a.Hello()) == nil {
		t.Error("a device that was told not to reads others")
	}
}

// TestLinkedWorkers: workers whose GPUs read each other's rows have the losses of those whose rows go through the host,
// to the bit; and so have rows that are rounded for the wire.
func TestLinkedWorkers(t *testing.T) {
	needDriver(t)
	parts := traintest.Cut(t, traintest.Communities(t, 60, false), "random", 2)
	for _, option := range []string{"wire_dtype=none", "wire_dtype=bf16"} {
		o := traintest.Small("gcn")
		o.Epochs, o.EvalEvery, o.Strategy = 2, 2, traintest.Strategy(t, "halo", option)
		var losses [][]float64
		for _, way := range []string{"on", "off"} {
			t.Setenv("STARLING_CUDA_IPC", way)
			ends := traintest.Ends(2)
			r := traintest.Observe(t, ends, parts, open(t, cuda.Options{}), o)
			losses = append(losses, r.Results[0].Loss)
			if lent := ends[0].Ledger().Lent(); (lent > 0) != (way == "on") {
				t.Errorf("%d bytes were read on the GPU, which is %s", lent, way)
			}
		}
		if !slices.Equal(losses[0], losses[1]) {
			t.Errorf("%s: losses are %v where GPUs read each other's rows, else %v", option, losses[0], losses[1])
		}
	}
}

// lendAsked has this test's process lend rows until it is ended.
const lendAsked = "STARLING_TEST_LEND"

// TestLinkBetweenProcesses: rows of another process are read, also when that has died.
func TestLinkBetweenProcesses(t *testing.T) {
	needDriver(t)
	if os.Getenv(lendAsked) != "" {
		lendUntilEnd(t)
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestLinkBetweenProcesses$")
	cmd.Env = append(os.Environ(), lendAsked+"=1")
	in, err1 := cmd.StdinPipe()
	out, err2 := cmd.StdoutPipe()
	if err1 != nil || err2 != nil || cmd.Start() != nil {
		t.Fatal(err1, err2)
	}
	defer cmd.Wait()
	defer in.Close()
	var words [2][]byte
	for lines := bufio.NewScanner(out); words[1] == nil && lines.Scan(); {
		for i, prefix := range []string{"hello ", "ref "} {
			if text, ok := strings.CutPrefix(lines.Text(), prefix); ok {
				words[i], _ = hex.DecodeString(text)
			}
		}
	}
	d := open(t, cuda.Options{})().(*cuda.Device)
	defer d.Close()
	if err := d.Meet(1, words[0]); err != nil {
		t.Fatalf("memory of another process: %v", err)
	}
	for _, dies := range []bool{false, true} {
		if dies {
			cmd.Process.Kill()
			cmd.Wait()
		}
		dst, got := d.New(tensor.F32, 1000, 256), make([]float32, 256000)
		if err := d.Fetch(dst, 1, words[1]); err != nil {
			t.Fatal(err)
		}
		d.Download(got, dst)
		if !slices.Equal(got, counted(256000)) {
			t.Errorf("other numbers came than were lent (its process has died: %v)", dies)
		}
	}
}

func lendUntilEnd(t *testing.T) {
	d := open(t, cuda.Options{})().(*cuda.Device)
	defer d.Close()
	m := d.Lend(tensor.F32, 1000, 256)
	d.Upload(m, counted(256000))
	d.Sync()
	fmt.Printf("hello %x\nref %x\n", d.Hello(), d.Refer(m))
	bufio.NewReader(os.Stdin).ReadByte()
}

package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime/debug"
	"strings"
	"time"

	"starling/dataset"
	"starling/dataset/shards"
	"starling/event"
	"starling/exchange"
	"starling/report"
	"starling/setup"
	"starling/spec"
)

// Processes are the processes on this host that do the work of a command together, through a folder (disk/tasks).
type Processes struct {
	N int
	// Args is the command line of this one, which the others are given, too.
	Args []string
}

// helperVariable is set in a process that was started to help another.
const helperVariable = "STARLING_HELPER"

// IsHelper tells whether this process was started to help another: it shows nothing.
func IsHelper() bool { return os.Getenv(helperVariable) != "" }

// helpersEnd is how long those that help may take to notice that the work is finished.
const helpersEnd = 10 * time.Second

// with does work while the other processes do the same. Whether they live does not matter to the result: what one of
// them leaves undone, others do. In the end it says which failed.
func (p Processes) with(memory int64, events event.Listener, work func() error) error {
	debug.SetMemoryLimit(memory + processBytes)
	debug.SetGCPercent(50)
	if IsHelper() || p.N <= 1 {
		return work()
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	type end struct {
		number int
		err    error
		text   string
	}
	ended := make(chan end, p.N)
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	for i := 1; i < p.N; i++ {
		c := exec.CommandContext(ctx, self, p.Args...)
		var text bytes.Buffer
		c.Stderr = &text
		c.Env = append(os.Environ(), helperVariable+"=1", fmt.Sprintf("STARLING_PARENT=%d", os.Getpid()))
		if err := c.Start(); err != nil {
			return err
		}
		go func() { ended <- end{i, c.Wait(), text.String()} }()
	}
	err = work()
	if err != nil {
		stop()
	}
	late := time.After(helpersEnd)
	for range p.N - 1 {
		select {
		case e := <-ended:
			if err == nil && e.err != nil {
				event.All(events).On(event.Note{Text: fmt.Sprintf("process %d of %d ended early (%s), and the others did its work", e.number+1,
					p.N, strings.TrimSpace(e.err.Error()+" "+strings.TrimSpace(e.text)))})
			}
		case <-late:
			stop()
			late = nil
		}
	}
	return err
}

// processBytes is what a process takes beside the memory for its data: the program, its stacks, buffers of files.
const processBytes = 64 << 20

// ShardOptions are the settings of an import in shards.
type ShardOptions struct {
	Processes
	Memory string
	IDs    string
}

// ImportShards reads shards of a format by several processes and writes a dataset to the folder out.
func ImportShards(ctx context.Context, format, src string, opt ImportOptions, in ShardOptions, out string, events event.Listener) (Summary, error) {
	known := false
	for _, f := range shards.Formats() {
		known = known || f == format
	}
	if !known {
		return Summary{}, spec.Mistake("--workers", "shards of "+format, "one of "+strings.Join(shards.Formats(), ", "),
			"leave --workers out")
	}
	if err := spec.CheckNotStdout("--out", out); err != nil {
		return Summary{}, err
	}
	memory, err := exchange.ParseBytes("--memory", in.Memory)
	if err == nil && memory < shards.LeastMemory {
		err = spec.Mistake("--memory", in.Memory, "at least "+event.Bytes(shards.LeastMemory), "give more")
	}
	if err != nil {
		return Summary{}, err
	}
	if err := opt.Check(format); err != nil {
		return Summary{}, err
	}
	var sum Summary
	err = in.with(memory, events, func() error {
		sum, err = setup.InStages(ctx, "", events, func(report dataset.Progress) (Summary, error) {
			opt.Progress = report
			return shards.Import(ctx, src, shards.Options{ImportOptions: opt, Memory: memory, IDs: in.IDs, Helper: IsHelper()}, out)
		})
		return err
	})
	if errors.Is(err, context.Canceled) {
		err = report.ErrInterrupted
	}
	return sum, err
}

package run

import (
	"bytes"
	"cmp"
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
	"starling/disk/tasks"
	"starling/event"
	"starling/exchange"
	"starling/report"
	"starling/setup"
	"starling/spec"
	"starling/supervise"
)

// Processes do the work of a command together, through a folder (disk/tasks): N on this host, which this one starts, or
// the tasks that a launcher has started, each of which is one.
type Processes struct {
	N int
	// args is the command line of this one, which the others are given, too.
	args []string
	role tasks.Role
}

// helperVariable is set in a process that was started to help another.
const helperVariable = "STARLING_HELPER"

// ProcessesOf are the processes of the command line args, whose flag says that there are n.
func ProcessesOf(flag string, n int, launcher string, args []string, getenv func(string) string) (Processes, error) {
	p := Processes{N: n, args: args}
	if getenv(helperVariable) != "" {
		p.role.Helper = true
		return p, nil
	}
	s := spec.Default()
	s.Launch.Launcher = launcher
	place, err := supervise.PlaceOf(&s, getenv)
	if place == nil || err != nil {
		return p, err
	}
	if n != place.Size {
		return p, spec.Mistake(flag, fmt.Sprint(n), fmt.Sprintf("%d, the tasks that %s has started", place.Size, place.Launcher),
			"each of them is one process: give their number, or --launcher none")
	}
	p.role = tasks.Role{Helper: place.Rank > 0, Rank: place.Rank, Size: place.Size, Job: cmp.Or(place.Job, place.Launcher)}
	return p, nil
}

// Silent tells whether another process shows the user what all of them do.
func (p Processes) Silent() bool { return p.role.Helper }

// helpersEnd is how long those that help may take to notice that the work is finished.
const helpersEnd = 10 * time.Second

// processBytes is what a process takes beside the memory for its data: the program, its stacks, buffers of files.
const processBytes = 64 << 20

// with does work while the other processes do the same. Whether they live does not matter to the result: what one of
// them leaves undone, others do. work calls begun when others can join; it is then that takes says what each process
// will take.
func (p Processes) with(memory int64, takes string, events event.Listener, work func(r tasks.Role, begun func() error) error) error {
	debug.SetMemoryLimit(memory + processBytes)
	debug.SetGCPercent(50)
	if p.role.Helper {
		err := work(p.role, nil)
		if err != nil && p.role.Size > 0 {
			err = fmt.Errorf("rank %d: %w", p.role.Rank, err)
		}
		return err
	}
	h := &helpers{of: p, note: func(text string) { event.All(events).On(event.Note{Text: text}) }}
	err := work(p.role, func() error {
		event.All(events).On(event.Note{Text: event.Tally(p.N, "process") + ": " + takes, Minor: true})
		return h.start()
	})
	h.end(err)
	return err
}

// helpers are the other processes on this host.
type helpers struct {
	of    Processes
	note  func(text string)
	ended chan helperEnd
	n     int
	stop  context.CancelFunc
}

// helperEnd is how one of them ended.
type helperEnd struct {
	number int
	err    error
	text   string
}

// start starts them, unless a launcher has.
func (h *helpers) start() error {
	if h.of.role.Size > 0 {
		return nil
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	h.ended = make(chan helperEnd, h.of.N)
	ctx, stop := context.WithCancel(context.Background())
	h.stop = stop
	for i := 1; i < h.of.N; i++ {
		c := exec.CommandContext(ctx, self, h.of.args...)
		var text bytes.Buffer
		c.Stderr = &text
		c.Env = append(os.Environ(), helperVariable+"=1", fmt.Sprintf("STARLING_PARENT=%d", os.Getpid()))
		if err := c.Start(); err != nil {
			return err
		}
		h.n++
		go func() { h.ended <- helperEnd{i, c.Wait(), text.String()} }()
	}
	return nil
}

// end waits for them, and says which failed, where the work did not.
func (h *helpers) end(err error) {
	if h.stop == nil {
		return
	}
	defer h.stop()
	if err != nil {
		h.stop()
	}
	late := time.After(helpersEnd)
	for range h.n {
		select {
		case e := <-h.ended:
			if err == nil && e.err != nil {
				h.note(fmt.Sprintf("process %d of %d ended early (%s), and the others did its work", e.number+1, h.of.N,
					strings.TrimSpace(e.err.Error()+" "+strings.TrimSpace(e.text))))
			}
		case <-late:
			h.stop()
			late = nil
		}
	}
}

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
	takes := fmt.Sprintf("each takes at most %s for its data (--memory) and about %s beside, %s in all", event.Bytes(memory),
		event.Bytes(processBytes), event.Bytes(int64(in.N)*(memory+processBytes)))
	err = in.with(memory, takes, events, func(role tasks.Role, begun func() error) error {
		sum, err = setup.InStages(ctx, "", events, func(report dataset.Progress) (Summary, error) {
			opt.Progress = report
			return shards.Import(ctx, src, shards.Options{ImportOptions: opt, Memory: memory, IDs: in.IDs, Role: role, Begun: begun}, out)
		})
		return err
	})
	if errors.Is(err, context.Canceled) {
		err = report.ErrInterrupted
	}
	return sum, err
}

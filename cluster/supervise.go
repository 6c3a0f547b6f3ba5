package cluster

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"syscall"
	"time"

	"starling/wire"
)

// Exited is the error of a process that did not end well.
type Exited struct {
	Code int    // -1: it was killed
	Text string // how it ended
	Last string // the last line it wrote
}

func (e *Exited) Error() string {
	if e.Last == "" {
		return "its process " + e.Text
	}
	return "its process " + e.Text + "; its last line: " + e.Last
}

// ErrLeaves is why a process is killed without being asked: its place is taken by another, and the others go on.
var ErrLeaves = errors.New("another task takes the place of this one")

// steady is how long a process must have run for its end to be an accident, and not
// what always happens to it.
const steady = 10 * time.Second

// Supervise runs a process to its end, and starts it again when it was killed; at most
// times times in a row, if it ends within steady. What it writes goes to output, line by line. When ctx
// ends the process is asked to end too, and is waited for; when kill does, it is made to, at once where ErrLeaves is the
// cause.
func Supervise(ctx, kill context.Context, times int, command func() (*exec.Cmd, error),
	output func(line string)) error {
	for left := times; ; left-- {
		cmd, err := command()
		if err != nil {
			return err
		}
		start := wire.Real.Now()
		err = superviseOne(ctx, kill, cmd, output)
		if times > 0 && wire.Since(wire.Real, start) > steady {
			left = times
		}
		var e *Exited
		if !errors.As(err, &e) || e.Code >= 0 || left <= 0 || ctx.Err() != nil || kill.Err() != nil {
			return err
		}
		output(fmt.Sprintf("%v; starting it again", err))
	}
}

func superviseOne(ctx, kill context.Context, cmd *exec.Cmd, output func(line string)) error {
	p, err := Launch([]*exec.Cmd{cmd}, nil, func(_ int, line string) { output(line) })
	if err != nil {
		return err
	}
	asked := ctx.Done()
	for {
		select {
		case <-asked:
			asked = nil
			p.signal(syscall.SIGTERM)
		case <-kill.Done():
			if errors.Is(context.Cause(kill), ErrLeaves) {
				p.signal(syscall.SIGKILL)
			} else {
				p.Stop(time.Second)
			}
			kill = context.WithoutCancel(kill)
		case e := <-p.exits:
			p.Wait()
			if e.Err == nil {
				return nil
			}
			return &Exited{Code: cmd.ProcessState.ExitCode(), Text: e.Err.Error(), Last: e.Last}
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"starling/run"
)

func topCommand() *cobra.Command {
	var t run.TopSpec
	var tokenFile string
	var once bool
	c := &cobra.Command{
		Use:   "top [ADDR]",
		Short: "Watch a run: ranks, rates, memory, who waits for whom",
		Long: `Watch a run of several workers. ADDR is where they meet: --listen of starling
train, or --join of its workers. Without ADDR it is the run of this host; of
several it says which is which.

On a terminal the view is drawn anew every second, until the run ends; elsewhere,
or with --once, it is shown once. Looking changes nothing. A run with a
--token-file, or with --tls, is shown to those who have the same.`,
		Example: `  starling top
  starling top 10.0.0.1:7000 --token-file token
  starling top 10.0.0.1:7000 --tls certs/alpha --once`,
		Args: arguments(0, 1, "at most one address"),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if len(args) > 0 {
				t.Addr = args[0]
			}
			t.Token = []byte(os.Getenv(run.TokenVariable))
			if tokenFile != "" {
				if t.Token, err = run.ReadToken(tokenFile); err != nil {
					return err
				}
			}
			if err := t.Settle(c.Context()); err != nil {
				return err
			}
			return top(c.Context(), &t, once || !terminal(os.Stdout))
		},
	}
	f := c.Flags()
	f.BoolVar(&once, "once", false, "show it once")
	f.StringVar(&tokenFile, "token-file", "", "file with the secret that the run's workers share")
	f.StringVar(&t.TLS, "tls", "", "folder with this host's certificate, as starling certs makes it")
	f.SortFlags = false
	return c
}

// lookAgain is how long a run may not answer before it is taken to have ended: while
// it recovers it does not.
const lookAgain = 10 * time.Second

// top shows the run once, or until it ends.
func top(ctx context.Context, t *run.TopSpec, once bool) error {
	s, err := t.Look(ctx)
	if err != nil {
		return err
	}
	if once {
		fmt.Fprint(stdout, s)
		return nil
	}
	for seen := time.Now(); ; {
		if err == nil {
			seen = time.Now()
			fmt.Fprint(stdout, "\x1b[H\x1b[2J", s, "\n") // from the top of an empty screen
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
		if s, err = t.Look(ctx); err != nil && (errors.Is(err, syscall.ECONNREFUSED) || time.Since(seen) > lookAgain) {
			fmt.Fprintln(stdout, "the run has ended")
			return nil
		}
	}
}

// terminal tells whether people look at a file.
func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"starling/run"
)

func topCommand() *cobra.Command {
	var t run.Top
	var tokenFile string
	var once bool
	c := &cobra.Command{
		Use:   "top [ADDR]",
		Short: "Watch a run: ranks, rates, memory, which worker waits for which",
		Long: `Watch a run. ADDR is the address of its rendezvous: --listen of starling train, --join of
its workers; or, of a run of one worker or with --in-process, the number of its process.
Without ADDR it is the run of this host; if there are several, they are listed.

On a terminal the view is refreshed every second until the run ends or q is pressed;
of several runs, the number in the list shows one and l the list again. Elsewhere, or with
--once, it is shown once. Watching does not change the run. A run with a --token-file, or
with --tls, is shown only with the same; that of one process only to its user.`,
		Example: `  starling top
  starling top 10.0.0.1:7000 --token-file token
  starling top 10.0.0.1:7000 --tls certs/alpha --once`,
		Args: arguments(0, 1, "at most one address"),
		RunE: func(c *cobra.Command, args []string) (err error) {
			t.Version = run.Version()
			if len(args) > 0 {
				t.Addr = args[0]
			}
			if t.Token, err = secret(tokenFile); err != nil {
				return err
			}
			several, err := t.Find()
			if err != nil {
				return err
			}
			if once || run.Width(os.Stdout) == 0 {
				return showOnce(c.Context(), &t, several)
			}
			return newTopScreen(&t, several).watch(c.Context())
		},
	}
	f := c.Flags()
	f.BoolVar(&once, "once", false, "show it once")
	f.StringVar(&tokenFile, "token-file", "", "file with the secret that the run's workers share")
	f.StringVar(&t.TLS, "tls", "", "folder with this host's certificate, from starling certs")
	f.SortFlags = false
	return c
}

// showOnce shows a run, or a list of several.
func showOnce(ctx context.Context, t *run.Top, several []string) error {
	if t.Addr == "" {
		fmt.Fprint(text, t.List(ctx, several))
		return nil
	}
	s, err := t.Look(ctx)
	if err != nil {
		return err
	}
	fmt.Fprint(text, s.Text(run.ColorsOf(os.Stdout)))
	return nil
}

// lookAgain is how long a run may not answer before it counts as ended: while it recovers it
// does not answer.
const lookAgain = 10 * time.Second

// topScreen is the terminal of starling top.
type topScreen struct {
	list *run.Top
	runs []string  // on this host, if there are several
	one  *run.Top  // that is shown; nil: the list
	seen time.Time // the run last answered; zero: never
}

func newTopScreen(t *run.Top, several []string) *topScreen {
	s := &topScreen{list: t, runs: several}
	if t.Addr != "" {
		s.one = t
	}
	return s
}

// watch shows runs until the one shown ends, or the user has seen enough.
func (s *topScreen) watch(ctx context.Context) error {
	keys, restore := readKeys(os.Stdin)
	defer restore()
	for {
		over, err := s.refresh(ctx)
		if over || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case key := <-keys:
			if key == 'q' {
				return nil
			}
			s.press(key)
		case <-time.After(time.Second):
		}
	}
}

// press shows another run of a list, or the list.
func (s *topScreen) press(key byte) {
	if len(s.runs) < 2 {
		return
	}
	if n := int(key - '1'); key >= '1' && n < len(s.runs) {
		s.one, s.seen = s.list.At(s.runs[n]), time.Time{}
	} else if key == 'l' {
		s.one = nil
	}
}

// refresh draws the screen; over: the run has ended.
func (s *topScreen) refresh(ctx context.Context) (over bool, err error) {
	if s.one == nil {
		draw(s.list.List(ctx, s.runs), "q quits, a number shows the run")
		return false, nil
	}
	shown, err := s.one.Look(ctx)
	switch {
	case err == nil:
		s.seen = time.Now()
		draw(shown.Text(run.ColorsOf(os.Stdout)), "q quits"+map[bool]string{true: ", l lists the runs"}[len(s.runs) > 1])
	case s.seen.IsZero():
		return false, err
	case errors.Is(err, syscall.ECONNREFUSED) || time.Since(s.seen) > lookAgain:
		fmt.Fprintln(text, "the run has ended")
		return true, nil
	}
	return false, nil
}

// draw replaces the screen by as much of a page as fits, and a line about keys.
func draw(page, keys string) {
	columns, rows := run.Size(os.Stdout)
	lines := strings.Split(strings.TrimRight(run.Wrap(page, columns), "\n"), "\n")
	if most := max(rows-3, 1); len(lines) > most {
		lines = append(lines[:most-1], "… "+run.Counted(len(lines)-most+1, "more line"))
	}
	lines = append(lines, "", keys, "")
	fmt.Fprint(stdout, "\x1b[H"+strings.Join(lines, "\x1b[K\n")+"\x1b[J") // from the top, and nothing below
}

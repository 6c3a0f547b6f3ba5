package watch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"starling/cluster"
	"starling/spec"
)

// Top looks at a run.
type Top struct {
	Addr  string // of the rendezvous, or the number of a process that has all workers; "": the one run of this host
	Token []byte
	TLS   string
	// Version is the version of this program: a run of another version may not answer.
	Version string

	id *cluster.Identity
}

// Find finds the run, and reads this host's certificate. Of several runs on this host it returns the addresses.
func (t *Top) Find() (several []string, err error) {
	if t.id, err = spec.Load("--tls", t.TLS, cluster.LoadIdentity); err != nil {
		return nil, err
	}
	if t.Addr == "" {
		runs := slices.Concat(localRuns(), runsHere())
		t.Addr, err = theRun(runs)
		return runs, err
	}
	if _, _, err := net.SplitHostPort(t.Addr); err != nil && !t.local() {
		return nil, spec.Mistake("ADDR", fmt.Sprintf("%q", t.Addr), "host:port, the address of the rendezvous, or "+
			"the number of a process", theAddress)
	}
	return nil, nil
}

// At looks at another run.
func (t *Top) At(addr string) *Top {
	other := *t
	other.Addr = addr
	return &other
}

// local reports whether the run is all in one process.
func (t *Top) local() bool {
	_, err := strconv.ParseUint(t.Addr, 10, 32)
	return err == nil
}

// Look asks the run for a snapshot.
func (t *Top) Look(ctx context.Context) (*Snapshot, error) {
	var s Snapshot
	if t.local() {
		if err := lookLocal(t.Addr, &s); err != nil {
			return nil, fmt.Errorf("no run of yours answers in process %s: %w", t.Addr, err)
		}
		return &s, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var err error
	var refused *cluster.Refused
	for _, token := range t.tokens() {
		err = cluster.Watch(ctx, cluster.JoinRequest{Coordinator: t.Addr, Version: t.Version, Token: token,
			Identity: t.id, Timeout: 5 * time.Second}, &s)
		if !errors.As(err, &refused) {
			return &s, err
		}
	}
	return nil, spec.Mistake("ADDR", refused.By+", which does not show the run: "+refused.Reason, "",
		"give --token-file or --tls as the workers have it")
}

// tokens are the tokens to try: this user's where none is given, and no token, for runs that are
// --insecure.
func (t *Top) tokens() [][]byte {
	if len(t.Token) == 0 && t.id == nil && cluster.Loopback(t.Addr) {
		if secret, err := cluster.LocalSecret(); err == nil {
			return [][]byte{secret, nil}
		}
	}
	return [][]byte{t.Token}
}

// List is a line per run, with its number from 1, its address and what it does.
func (t *Top) List(ctx context.Context, addrs []string) string {
	rows := [][]string{{"", "run", "does"}}
	for i, addr := range addrs {
		does := "does not show itself"
		if s, err := t.At(addr).Look(ctx); err == nil {
			does, _, _ = strings.Cut(s.headline(), "\n")
		}
		rows = append(rows, []string{strconv.Itoa(i + 1), addr, does})
	}
	var b strings.Builder
	writeColumns(&b, rows)
	return b.String()
}

// theAddress says where users find the address of a run.
const theAddress = "it is --listen of starling train, and --join of its workers"

// theRun is the only one; "": there are several.
func theRun(addrs []string) (string, error) {
	switch len(addrs) {
	case 0:
		return "", spec.Mistake("ADDR", "none, and no run on this host", "the address of the rendezvous", theAddress)
	case 1:
		return addrs[0], nil
	}
	return "", nil
}

// runsHere are the addresses that the workers on this host join, from their command lines.
func runsHere() (addrs []string) {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		text, _ := os.ReadFile(f)
		if addr := joined(bytes.Split(text, []byte{0})); addr != "" && !slices.Contains(addrs, addr) {
			addrs = append(addrs, addr)
		}
	}
	slices.Sort(addrs)
	return addrs
}

// joined is the address in the command line of a worker, or "".
func joined(args [][]byte) string {
	if len(args) < 2 || string(args[1]) != "worker" {
		return ""
	}
	if i := slices.IndexFunc(args, func(a []byte) bool { return string(a) == "--join" }); i >= 0 && i+1 < len(args) {
		return string(args[i+1])
	}
	return ""
}

package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"starling/cluster"
)

// TopSpec says which run to look at.
type TopSpec struct {
	Addr  string // where its workers meet; none: the one run of this host
	Token []byte
	TLS   string

	id *cluster.Identity
}

// Settle finds the run, and reads the certificate to show to it.
func (t *TopSpec) Settle(ctx context.Context) (err error) {
	if t.id, err = identity(t.TLS); err != nil {
		return err
	}
	if t.Addr == "" {
		t.Addr, err = theRun(runsHere(), func(addr string) string { return t.describe(ctx, addr) })
		return err
	}
	if _, _, err := net.SplitHostPort(t.Addr); err != nil {
		return mistake("ADDR", fmt.Sprintf("%q", t.Addr), "host:port, where the workers meet", "it is --listen of starling train, and --join of its workers")
	}
	return nil
}

// Look asks the run, once, how it goes.
func (t *TopSpec) Look(ctx context.Context) (*Snapshot, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var s Snapshot
	err := cluster.Watch(ctx, cluster.Invitation{Coordinator: t.Addr, Version: Version(), Token: t.Token, Identity: t.id, Timeout: 5 * time.Second}, &s)
	var refused *cluster.Refused
	if errors.As(err, &refused) {
		return nil, mistake("ADDR", refused.By+" does not show the run: "+refused.Reason, "", "give --token-file or --tls as the workers have it")
	}
	return &s, err
}

// describe is a run at an address in a few words, if it lets us look.
func (t *TopSpec) describe(ctx context.Context, addr string) string {
	other := *t
	other.Addr = addr
	s, err := other.Look(ctx)
	if err != nil {
		return addr + " (does not show itself)"
	}
	line, _, _ := strings.Cut(s.headline(), "\n")
	return addr + " (" + line + ")"
}

// theRun is the only one; of several the error tells which is which.
func theRun(addrs []string, describe func(addr string) string) (string, error) {
	switch len(addrs) {
	case 0:
		return "", mistake("ADDR", "none, and no workers on this host", "the address where the workers meet", "it is --listen of starling train, and --join of its workers")
	case 1:
		return addrs[0], nil
	}
	runs := make([]string, len(addrs))
	for i, addr := range addrs {
		runs[i] = describe(addr)
	}
	return "", mistake("ADDR", "none, and several runs on this host", "one of "+strings.Join(runs, ", "), "")
}

// runsHere are the addresses that workers on this host were told to join, as their
// command lines say.
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

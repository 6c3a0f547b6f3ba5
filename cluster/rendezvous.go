package cluster

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"starling/disk"
	"starling/wire"
)

// Entry is what workers have to know of a run to join it.
type Entry struct {
	// Addr is where the coordinator listens: addresses host:port, with commas between
	// them, to be tried in turn.
	Addr string `json:"addr"`
	// Job is the run's id; empty: workers take any.
	Job string `json:"job,omitempty"`
	// Token, where the rendezvous is for our eyes only.
	Token string `json:"token,omitempty"`
}

// Rendezvous is where workers learn of the coordinator.
type Rendezvous interface {
	// Publish publishes where the coordinator is, until withdraw, or until it dies where
	// that can be seen. warn is called with what goes wrong meanwhile.
	Publish(ctx context.Context, e Entry, warn func(error)) (withdraw func(), err error)
	// Find waits for an entry that is not old.
	Find(ctx context.Context, old Entry) (Entry, error)
	// Secret reports whether only processes that may join can read it.
	Secret() bool
	String() string
}

// ParseRendezvous reads tcp:HOST:PORT, file:FOLDER or etcd:URL. job keeps apart the
// jobs of one place; empty: there is one.
func ParseRendezvous(text, job string) (Rendezvous, error) {
	if job = plain(job); job == "" {
		job = "default"
	}
	kind, rest, _ := strings.Cut(text, ":")
	switch {
	case kind == "tcp":
		if _, port, err := net.SplitHostPort(rest); err == nil && port != "" && port != "0" {
			return fixed(rest), nil
		}
		return nil, fmt.Errorf("%q, expected tcp:HOST:PORT", text)
	case kind == "file" && rest != "":
		abs, err := filepath.Abs(rest)
		return sharedFile{filepath.Join(abs, ".starling-"+job+".json")}, err
	case kind == "etcd" && rest != "":
		return newEtcd(rest, job)
	}
	return nil, fmt.Errorf("%q, expected tcp:HOST:PORT, file:FOLDER or etcd:http://HOST:2379/PREFIX", text)
}

// PrivateFolder is a folder that only this user can read, for the rendezvous of tasks on
// one host.
func PrivateFolder() (string, error) {
	dir := filepath.Join(os.TempDir(), "starling-"+strconv.Itoa(os.Getuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return "", err
	}
	info, err := os.Lstat(dir)
	switch {
	case err != nil:
		return "", err
	case !info.IsDir() || info.Mode().Perm()&0o077 != 0 || !disk.Ours(info):
		return "", fmt.Errorf("%s is not a folder of this user alone", dir)
	}
	return dir, nil
}

// fixed is an address that all know beforehand.
type fixed string

func (f fixed) Publish(context.Context, Entry, func(error)) (func(), error) { return func() {}, nil }
func (f fixed) Secret() bool                                                { return false }
func (f fixed) String() string                                              { return "tcp:" + string(f) }

func (f fixed) Find(ctx context.Context, old Entry) (Entry, error) {
	if e := (Entry{Addr: string(f)}); e != old {
		return e, nil
	}
	<-ctx.Done()
	return Entry{}, fmt.Errorf("no coordinator at %s admits this worker", f)
}

// poll is how often a place is looked at.
const poll = 200 * time.Millisecond

// look waits until read finds an entry that is not old.
func look(ctx context.Context, old Entry, where string, read func() (Entry, error)) (Entry, error) {
	for {
		e, err := read()
		if err == nil && e != (Entry{}) && e != old {
			return e, nil
		}
		if wire.Sleep(ctx, wire.Real, poll) == nil {
			continue
		}
		switch {
		case err != nil:
			return e, fmt.Errorf("no run in %s: %w", where, err)
		case old != (Entry{}):
			return e, fmt.Errorf("no other run than that at %s in %s", old.Addr, where)
		}
		return e, fmt.Errorf("no run in %s; is the task of rank 0 running, and can it write there?", where)
	}
}

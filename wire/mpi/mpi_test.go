package mpi

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"starling/wire"
	"starling/wire/wiretest"
)

// A rank that does not join is named.
func TestMPIMissing(t *testing.T) {
	wiretest.NoLeaks(t)
	f := newFakeMPI(3)
	w := &world{api: f.ranks[1], rank: 1, size: 3}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	_, err := w.join(ctx, wire.Config{Options: wire.Options{Timeout: time.Second, UnexpectedLimit: 1,
		Linger: 10 * time.Millisecond}})
	if err == nil || err.Error() != "rank 1 waited too long to connect with rank 0, rank 2 over MPI" {
		t.Error(err)
	}
}

func TestMPIOtherJob(t *testing.T) {
	wiretest.NoLeaks(t)
	_, errs := newFakeMPI(3).join(t, func(c *wire.Config) {
		c.Linger = 100 * time.Millisecond
		if c.Rank == 2 {
			c.Job = "another"
		}
	})
	for r, err := range errs {
		if err == nil || !strings.Contains(err.Error(), "of another run") {
			t.Errorf("rank %d: %v", r, err)
		}
	}
}

// When MPI fails, everything that is pending does, on every rank, and at once.
func TestMPIBreaks(t *testing.T) {
	wiretest.NoLeaks(t)
	f := newFakeMPI(3)
	eps, errs := f.join(t, func(c *wire.Config) {})
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	var pending []*wire.Pending
	for _, e := range eps {
		for p := range eps {
			pending = append(pending, e.Recv(p, wiretest.Key(0), wire.Feature, make([]byte, 5<<20)))
			pending = append(pending, e.Send(p, wiretest.Key(1), wire.Feature, make([]byte, 5<<20)))
			pending = append(pending, e.Recv(p, wiretest.Key(1), wire.Feature, make([]byte, 5<<20)))
		}
	}
	f.Lock()
	f.broken = errors.New("the network is on fire")
	f.Unlock()
	for _, e := range eps {
		<-e.Done()
		if !strings.Contains(e.Err().Error(), "on fire") {
			t.Error(e.Err())
		}
	}
	for _, p := range pending {
		select {
		case <-p.Done():
		case <-wiretest.Soon(t).Done():
			t.Fatal("something is still pending")
		}
	}
	wiretest.CloseAll(eps)
}

// launchers are the commands that start processes under an MPI, each once.
func launchers() (out [][]string) {
	seen := map[string]bool{}
	for _, name := range []string{"mpirun.openmpi", "mpirun.mpich", "mpirun"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if path, err = filepath.EvalSymlinks(path); err != nil || seen[path] {
			continue
		}
		seen[path] = true
		says, _ := exec.Command(path, "--version").CombinedOutput()
		if strings.Contains(string(says), "Open MPI") || strings.Contains(string(says), "OpenRTE") {
			out = append(out, []string{name, "--allow-run-as-root", "--oversubscribe"})
		} else {
			out = append(out, []string{name})
		}
	}
	return out
}

func TestMain(m *testing.M) {
	role := os.Getenv(partVar)
	if role == "" {
		os.Exit(m.Run())
	}
	if err := playPart(role); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const partVar = "STARLING_WIRE_MPI_PART"

// underMPI runs a role in n processes, under every MPI that there is.
func underMPI(t *testing.T, n int, role string, check func(t *testing.T, out string, err error)) {
	all := launchers()
	if len(all) == 0 {
		t.Skip("there is no mpirun here: install Open MPI (openmpi-bin) or MPICH (mpich) to run this test")
	}
	for _, l := range all {
		t.Run("launcher="+l[0], func(t *testing.T) {
			ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
			defer cancel()
			cmd := exec.CommandContext(ctx, l[0], append(l[1:], "-n", fmt.Sprint(n), os.Args[0])...)
			cmd.Env = append(os.Environ(), partVar+"="+role)
			cmd.WaitDelay = time.Second
			out, err := cmd.CombinedOutput()
			check(t, string(out), err)
		})
	}
}

// Messages of all sizes, in random order, several endpoints after each other.
func TestMPIRun(t *testing.T) {
	underMPI(t, 3, "messages", func(t *testing.T, out string, err error) {
		if err != nil || strings.Count(out, "all well") != 3 {
			t.Fatalf("%v\n%s", err, out)
		}
		t.Log(out)
	})
}

// A rank that fails is named by all who come to say so before the launcher, which
// sees that one has ended badly, ends them.
func TestMPIRunFails(t *testing.T) {
	underMPI(t, 3, "failure", func(t *testing.T, out string, err error) {
		saw := strings.Count(out, " saw that ")
		if err == nil || saw == 0 || strings.Count(out, " saw that rank 2 failed: loss is not a number\n") != saw {
			t.Errorf("%v\n%s", err, out)
		}
		t.Logf("%d of 3 ranks named rank 2", saw)
	})
}

func playPart(role string) error {
	var rank, size int
	for turn := range 3 {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		e, err := Join(ctx, wire.Config{Job: fmt.Sprint("turn ", turn)})
		if err != nil {
			return err
		}
		rank, size = e.Rank(), e.Size()
		if err := roles[role](ctx, e, turn); err != nil {
			e.Fail(err)
			e.Close()
			return fmt.Errorf("rank %d of %d: %w", rank, size, err)
		}
		if err := e.Close(); err != nil {
			return err
		}
	}
	if err := Close(time.Minute); err != nil {
		return err
	}
	_, err := fmt.Printf("rank %d of %d, %s: all well\n", rank, size, theWorld.name)
	return err
}

var roles = map[string]func(ctx context.Context, e wire.Endpoint, turn int) error{
	"messages": func(ctx context.Context, e wire.Endpoint, turn int) error {
		if err := exchangeAlone(ctx, e, uint64(turn)); err != nil {
			return err
		}
		if err := callAll(ctx, e); err != nil {
			return err
		}
		return waitTooLong(e)
	},
	"failure": func(ctx context.Context, e wire.Endpoint, turn int) error {
		if err := exchangeAlone(ctx, e, uint64(turn)); err != nil || turn == 0 {
			return err
		}
		if e.Rank() == 2 {
			e.Fail(errors.New("loss is not a number"))
		}
		// Everybody waits for something that never comes.
		if err := e.Recv((e.Rank()+1)%e.Size(), wiretest.Key(1000), wire.Feature, make([]byte, 3<<20)).Wait(ctx); err == nil {
			return errors.New("a message came from no rank")
		}
		cause := e.Err()
		if e.Rank() == 2 {
			cause = &wire.Failure{Rank: 2, Cause: cause}
		}
		fmt.Printf("rank %d saw that %v\n", e.Rank(), cause)
		return e.Err()
	},
}

// exchangeAlone is exchange as one rank sees it.
func exchangeAlone(ctx context.Context, e wire.Endpoint, seed uint64) error {
	me := e.Rank()
	r := rand.New(rand.NewPCG(seed, uint64(me)))
	type op struct {
		peer, step int
		send       bool
	}
	var ops []op
	for p := range e.Size() {
		for step := range wiretest.Sizes {
			ops = append(ops, op{p, step, true}, op{p, step, false})
		}
	}
	r.Shuffle(len(ops), func(i, j int) { ops[i], ops[j] = ops[j], ops[i] })
	var pending []*wire.Pending
	into := map[op][]byte{}
	for _, o := range ops {
		if o.send {
			pending = append(pending, e.Send(o.peer, wiretest.Key(o.step), wire.Activation,
				wiretest.Payload(me, o.peer, o.step, wiretest.Sizes[o.step])))
			continue
		}
		into[o] = make([]byte, wiretest.Sizes[o.step])
		pending = append(pending, e.Recv(o.peer, wiretest.Key(o.step), wire.Activation, into[o]))
	}
	for _, p := range pending {
		if err := p.Wait(ctx); err != nil {
			return err
		}
	}
	for o, got := range into {
		if !bytes.Equal(got, wiretest.Payload(o.peer, me, o.step, wiretest.Sizes[o.step])) {
			return fmt.Errorf("%d bytes from rank %d are not what it sent", len(got), o.peer)
		}
	}
	want := wire.Count{Messages: int64(e.Size() * len(wiretest.Sizes))}
	for _, s := range wiretest.Sizes {
		want.Bytes += int64(e.Size() * s)
	}
	if got := e.Ledger().Sent(); got != want {
		return fmt.Errorf("sent %+v, expected %+v", got, want)
	}
	return nil
}

// callAll calls all ranks, and ends when all have been called.
func callAll(ctx context.Context, e wire.Endpoint) error {
	_, err := e.Serve(wire.Service{Name: "rows"}, func(_ context.Context, r *wire.Request) (wire.Response, error) {
		return wire.Response{Kind: wire.Feature, Body: wiretest.Payload(e.Rank(), r.From, 0, int(binary.LittleEndian.Uint32(r.Body)))}, nil
	})
	if err != nil {
		return err
	}
	for _, n := range wiretest.Sizes {
		var replies []*wire.Reply
		for p := range e.Size() {
			replies = append(replies, e.Call(p, wire.Call{Service: "rows",
				Request: binary.LittleEndian.AppendUint32(nil, uint32(n)), Kind: wire.Topology}))
		}
		for p, r := range replies {
			if b, err := r.Wait(ctx); err != nil || !bytes.Equal(b, wiretest.Payload(p, e.Rank(), 0, n)) {
				return fmt.Errorf("%d bytes of %d called from rank %d: %w", len(b), n, p, err)
			}
		}
	}
	var pending []*wire.Pending
	for p := range e.Size() {
		pending = append(pending, e.Send(p, wiretest.Key(3000), wire.Control, nil), e.Recv(p, wiretest.Key(3000), wire.Control, nil))
	}
	for _, p := range pending {
		if err := p.Wait(ctx); err != nil {
			return err
		}
	}
	return nil
}

// waitTooLong checks that a wait ends, and says for whom it was.
func waitTooLong(e wire.Endpoint) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond)
	defer cancel()
	peer := (e.Rank() + 1) % e.Size()
	err := e.Recv(peer, wiretest.Key(2000), wire.Gradient, make([]byte, 8)).Wait(ctx)
	if late, ok := errors.AsType[*wire.Timeout](err); !ok || late.Rank != e.Rank() || late.Peer != peer {
		// The peer may have waited already, and said goodbye.
		if lost, ok := errors.AsType[*wire.PeerLost](err); !ok || lost.Peer != peer {
			return fmt.Errorf("a wait for nothing ended with %v", err)
		}
	}
	return nil
}

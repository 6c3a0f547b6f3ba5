package run

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"starling/cluster"
	"starling/event"
)

// WireBenchSpec is what starling bench wire can be told.
type WireBenchSpec struct {
	Workers    int      `json:"workers"`
	Transports []string `json:"transports"` // tcp, shm, mpi, or auto: whatever the workers can do
	Ops        []string `json:"ops"`        // of WireOps
	Sizes      []int    `json:"sizes"`      // bytes that a rank holds
	Seconds    float64  `json:"seconds"`    // for one row
	Turns      int      `json:"turns"`      // in which these are spent
	Timeout    int      `json:"timeout"`    // seconds of any wait

	Listen    string `json:"-"` // address to meet at
	NoLaunch  bool   `json:"-"` // the workers are started by others
	TokenFile string `json:"-"`
	Insecure  bool   `json:"-"`

	transport string // the one that is being timed
}

// DefaultWireBench is a look at this host in about half a minute.
func DefaultWireBench() WireBenchSpec {
	return WireBenchSpec{Workers: 2, Transports: []string{"tcp", "shm"}, Ops: WireOps(), Seconds: 0.3, Turns: 3, Timeout: 60,
		Sizes: []int{4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20}}
}

const (
	mostWireBytes   = 1 << 30
	mostWireWorkers = 256
	mostWireTurns   = 1000
)

func (s *WireBenchSpec) check() error {
	switch {
	case s.Workers < 2 || s.Workers > mostWireWorkers:
		return mistake("--workers", fmt.Sprint(s.Workers), fmt.Sprintf("2 to %d", mostWireWorkers), "")
	case !(s.Seconds > 0 && s.Seconds <= 3600):
		return mistake("--seconds", fmt.Sprint(s.Seconds), "more than 0, up to 3600", "")
	case s.Turns < 1 || s.Turns > mostWireTurns:
		return mistake("--turns", fmt.Sprint(s.Turns), fmt.Sprintf("1 to %d", mostWireTurns), "")
	case s.Timeout < 1:
		return mistake("--timeout", fmt.Sprint(s.Timeout), "at least 1", "")
	}
	for _, op := range s.Ops {
		if !slices.Contains(WireOps(), op) {
			return mistake("--ops", op, "some of "+strings.Join(WireOps(), ", "), Suggest(op, WireOps()))
		}
	}
	if s.NoLaunch && len(s.Transports) != 1 {
		return mistake("--transports", strings.Join(s.Transports, ","), "one, with --no-launch", "workers that others start can join one job only")
	}
	for _, t := range s.Transports {
		if known := []string{"tcp", "shm", "mpi", "auto"}; !slices.Contains(known, t) {
			return mistake("--transports", t, "some of "+strings.Join(known, ", "), Suggest(t, known))
		}
	}
	for _, size := range s.Sizes {
		if size < 4*s.Workers || size > mostWireBytes || size%4 != 0 {
			return mistake("--sizes", fmt.Sprint(size), fmt.Sprintf("%d to %d bytes, a multiple of 4", 4*s.Workers, mostWireBytes), "")
		}
	}
	return nil
}

// WireBench is the time of messages and collectives.
type WireBench struct {
	Workers int            `json:"workers"`
	Rows    []WireBenchRow `json:"rows"`
}

// WireBenchRow is one operation at one size over one transport.
type WireBenchRow struct {
	Transport string  `json:"transport"`
	Op        string  `json:"op"`
	Bytes     int     `json:"bytes"`      // that a rank holds
	Seconds   float64 `json:"seconds"`    // of the median turn
	Best      float64 `json:"best"`       // of the fastest
	SentBytes int     `json:"sent_bytes"` // the least that a rank must send
	Ratio     Number  `json:"ratio"`      // of the first transport's time to this one's
}

// Rate is the bus bandwidth: the bytes that a rank must send, whatever the
// algorithm, over the time.
func (r *WireBenchRow) Rate() float64 { return float64(r.SentBytes) / r.Seconds }

// BenchWire starts workers, or waits for those that others start, and times what
// they send each other, over each transport in turn.
func BenchWire(ctx context.Context, s WireBenchSpec, events event.Listener) (*WireBench, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	out := &WireBench{Workers: s.Workers}
	for _, s.transport = range s.Transports {
		rows, err := s.run(ctx, events)
		if err != nil {
			return nil, err
		}
		out.Rows = append(out.Rows, rows...)
	}
	out.compare()
	return out, nil
}

// run times one transport.
func (s *WireBenchSpec) run(ctx context.Context, events event.Listener) (rows []WireBenchRow, err error) {
	meeting := Spec{Listen: s.Listen, NoLaunch: s.NoLaunch, TokenFile: s.TokenFile, Insecure: s.Insecure}
	token, err := meeting.token(nil)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(wireTask{*s, s.transport})
	if err != nil {
		return nil, err
	}
	job := cluster.NewSecret()[:12]
	co, err := cluster.Listen(cluster.Config{Addr: s.Listen, Workers: s.Workers, Job: job, Version: Version(), Token: token, Insecure: s.Insecure,
		Timeout: time.Duration(s.Timeout) * time.Second, Task: text, Events: func(_ int, e event.Event) { events.On(e) },
		Refused: func(from, reason string) { events.On(event.Note{Text: fmt.Sprintf("refused %s: %s", from, reason)}) }})
	if err != nil {
		return nil, mistake("--listen", err.Error(), "an address of this host", "")
	}
	defer co.Close()
	procs, err := s.launch(co.Addr(), job, token, events)
	if err != nil {
		return nil, err
	}
	results, err := co.Run(ctx, procs)
	if procs != nil {
		procs.Wait()
	}
	switch {
	case err != nil && ctx.Err() != nil: // workers say that they were interrupted
		return nil, ErrInterrupted
	case err != nil:
		return nil, ended(err)
	}
	if err := json.Unmarshal(results[0].Body, &rows); err != nil {
		return nil, fmt.Errorf("rank 0: its result: %w", err)
	}
	return rows, nil
}

// launch starts the workers, unless others do.
func (s *WireBenchSpec) launch(addr, job string, token []byte, events event.Listener) (*cluster.Processes, error) {
	if s.NoLaunch {
		events.On(event.Note{Text: fmt.Sprintf("waiting %d s for %d workers: starling bench wire --join %s --rank R, R from 0 to %d", s.Timeout, s.Workers, addr, s.Workers-1)})
		return nil, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var cmds []*exec.Cmd
	for r := range s.Workers {
		cmd := exec.Command(self, "bench", "wire", "--join", addr, "--rank", fmt.Sprint(r), "--job", job, "--timeout", fmt.Sprint(s.Timeout))
		cmd.Env = append(os.Environ(), TokenVariable+"="+string(token))
		cmds = append(cmds, cmd)
	}
	return cluster.Launch(cmds, nil, func(rank int, line string) {
		events.On(event.Note{Text: fmt.Sprintf("[rank %d] %s", rank, line)})
	})
}

// compare fills in the ratios.
func (b *WireBench) compare() {
	for i := range b.Rows {
		r := &b.Rows[i]
		first := slices.IndexFunc(b.Rows, func(o WireBenchRow) bool { return o.Op == r.Op && o.Bytes == r.Bytes })
		r.Ratio = Number(b.Rows[first].Seconds / r.Seconds)
	}
}

// JSON writes the times as one object, to a file or with "-" to stdout.
func (b *WireBench) JSON(path string, stdout io.Writer) error { return writeJSON(b, path, stdout) }

// String is a table for people.
func (b *WireBench) String() string {
	var t strings.Builder
	fmt.Fprintf(&t, "%-10s %-10s %10s %12s %12s %8s\n", "op", "transport", "size", "time", "rate", "ratio")
	for i := range b.Rows {
		r := &b.Rows[i]
		fmt.Fprintf(&t, "%-10s %-10s %10s %12s %10s/s %7.2fx\n", r.Op, r.Transport, event.Bytes(int64(r.Bytes)),
			time.Duration(r.Seconds*1e9).Round(100*time.Nanosecond), event.Bytes(int64(r.Rate())), float64(r.Ratio))
	}
	return t.String()
}

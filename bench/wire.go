package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"time"

	"starling/cluster"
	"starling/event"
	"starling/graph"
	"starling/report"
	"starling/spec"
)

// TimeWire starts workers, or waits for those that are started elsewhere, and times what they
// send each other, over one transport after the other.
func TimeWire(ctx context.Context, s WireSpec, events event.Listener) (*Wire, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	out := &Wire{Workers: s.Workers}
	for _, transport := range s.Transports {
		rows, err := s.run(ctx, transport, events)
		if err != nil {
			return nil, err
		}
		out.Rows = append(out.Rows, rows...)
	}
	out.setRatios()
	return out, nil
}

// run times one transport.
func (s *WireSpec) run(ctx context.Context, transport string, events event.Listener) (rows []WireRow, err error) {
	token, err := s.token()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(wireTask{*s, transport})
	if err != nil {
		return nil, err
	}
	job := cluster.NewSecret()[:12]
	co, err := cluster.Listen(cluster.Config{Addr: s.Listen, Workers: s.Workers, Job: job, Version: s.Version,
		Token:    token,
		Insecure: s.Insecure, Timeout: time.Duration(s.Timeout) * time.Second, Task: text,
		Events: func(_ int, e event.Event) { events.On(e) },
		Refused: func(from, reason string) {
			events.On(event.Note{Text: fmt.Sprintf("refused %s: %s", from, reason)})
		}})
	if err != nil {
		return nil, spec.Mistake("--listen", graph.Sentence(err.Error()), "an address of this host", "")
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
	case err != nil && ctx.Err() != nil: // workers fail because they were interrupted
		return nil, report.ErrInterrupted
	case err != nil:
		return nil, err
	}
	if err := json.Unmarshal(results[0].Body, &rows); err != nil {
		return nil, fmt.Errorf("rank 0: its result: %w", err)
	}
	return rows, nil
}

// token is the secret that workers share. Workers that are started here get a new one; on
// loopback others may do without.
func (s *WireSpec) token() ([]byte, error) {
	given, err := spec.GivenToken(s.TokenFile)
	switch {
	case given != nil || err != nil:
		return given, err
	case !s.NoLaunch:
		return []byte(cluster.NewSecret()), nil
	case cluster.Exposed(s.Listen) && !s.Insecure:
		return nil, spec.Mistake("--listen", s.Listen+", which others can reach", "a --token-file",
			"or let anyone join with --insecure")
	}
	return nil, nil
}

// launch starts the workers, unless they are started elsewhere.
func (s *WireSpec) launch(addr, job string, token []byte, events event.Listener) (*cluster.Processes, error) {
	if s.NoLaunch {
		join := addr + cluster.ProofFlags(s.TokenFile, "", s.Insecure)
		events.On(event.Note{Text: fmt.Sprintf("waiting %d s for %d workers: starling bench wire --join %s --rank R, "+
			"R from 0 to %d", s.Timeout, s.Workers, join, s.Workers-1)})
		return nil, nil
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	var cmds []*exec.Cmd
	for r := range s.Workers {
		cmd := exec.Command(self, "bench", "wire", "--join", addr, "--rank", fmt.Sprint(r), "--job", job,
			"--timeout", fmt.Sprint(s.Timeout))
		cmd.Env = append(os.Environ(), spec.TokenVariable+"="+string(token))
		cmds = append(cmds, cmd)
	}
	return cluster.Launch(cmds, nil, func(rank int, line string) {
		events.On(event.Note{Text: fmt.Sprintf("[rank %d] %s", rank, line)})
	})
}

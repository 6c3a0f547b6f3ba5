package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"starling/bench"
	"starling/run"
	"starling/spec"
)

func benchWireCommand() *cobra.Command {
	s := bench.DefaultWire()
	var w run.WorkerSpec
	var json string
	c := &cobra.Command{
		Use:   "wire",
		Short: "Time messages and collectives between workers, as ratios between transports",
		Long: `Time messages and collectives between workers, as ratios between transports.

A size is the bytes per worker. The rate is the bus bandwidth: the bytes that a worker
must send, whatever the algorithm, over the time; of a round trip, in one direction. A
call is a small request and a response of that size; socket is the same over a plain TCP
connection, whatever the transport. Of pull (4096 random rows of another worker's store),
gather (of the worker's own, in place) and copy (the same by a plain loop) the size is that
of a row.

By default the workers are processes of this host. With --no-launch they are started by
hand, on any host, with --join.`,
		Example: `  starling bench wire --workers 4 --sizes 4096,1048576
  starling bench wire --no-launch --listen 10.0.0.1:7000 --transports tcp --token-file token
  starling bench wire --join 10.0.0.1:7000 --rank 0 --token-file token       # and 1, on another host`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if w.Addr != "" {
				return joinWireBench(c, w, s)
			}
			s.Version = run.Version()
			b, err := bench.TimeWire(c.Context(), s, run.Silent(os.Stderr))
			if err != nil {
				return err
			}
			return show(b, json)
		},
	}
	f := c.Flags()
	f.IntVar(&s.Workers, "workers", s.Workers, "worker processes")
	f.StringSliceVar(&s.Transports, "transports", s.Transports,
		"tcp, shm, mpi or auto; ratios are to the first; mpi needs --no-launch and mpirun")
	f.StringSliceVar(&s.Ops, "ops", s.Ops, "what to time: "+strings.Join(bench.WireOps(), ", "))
	f.IntSliceVar(&s.Sizes, "sizes", s.Sizes, "bytes per worker")
	f.Float64Var(&s.Seconds, "seconds", s.Seconds, "seconds per row")
	f.IntVar(&s.Turns, "turns", s.Turns, "turns that the seconds are divided into; the time is the median turn's")
	jsonFlag(c, &json)
	f.BoolVar(&s.NoLaunch, "no-launch", false, "wait for workers that are started with --join")
	f.StringVar(&s.Listen, "listen", "", "address of the rendezvous; empty: any port of 127.0.0.1")
	f.StringVar(&w.Addr, "join", "", "work in the benchmark at this address")
	spec.AutoVar(f, &w.Rank, -1, 0, "rank", "with --join: rank of this worker; auto: any")
	f.StringVar(&w.Job, "job", "", "with --join: only the job of this id")
	f.StringVar(&w.Paths, "paths", "", "with --join: use every link between hosts, auto or a FILE; see docs/paths.md")
	f.StringVar(&s.TokenFile, "token-file", "",
		"file with the secret that all workers share; required beyond 127.0.0.1")
	f.BoolVar(&s.Insecure, "insecure", false, "do without a secret")
	f.IntVar(&s.Timeout, "timeout", s.Timeout, "seconds of any wait")
	f.SortFlags = false
	return c
}

// joinWireBench is one of the workers.
func joinWireBench(c *cobra.Command, w run.WorkerSpec, s bench.WireSpec) (err error) {
	if w.Token, err = secret(s.TokenFile); err != nil {
		return err
	}
	w.Insecure, w.Timeout = s.Insecure, s.Timeout
	return bench.WorkWire(c.Context(), &w)
}

package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"starling/run"
)

func benchWireCommand() *cobra.Command {
	spec := run.DefaultWireBench()
	var w run.WorkerSpec
	var json string
	c := &cobra.Command{
		Use:   "wire",
		Short: "Time messages and collectives between workers, as ratios between transports",
		Long: `Time messages and collectives between workers, as ratios between transports.

A size is what one worker holds; the rate is the bus bandwidth: the bytes that a
worker must send, whatever the algorithm, over the time. Of a round trip it is the
bandwidth of one way.

By default the workers are processes of this host. With --no-launch they are
started by hand, on any host, with --join.`,
		Example: `  starling bench wire --workers 4 --sizes 4096,1048576
  starling bench wire --no-launch --listen 10.0.0.1:7000 --transports tcp --token-file token
  starling bench wire --join 10.0.0.1:7000 --rank 0 --token-file token       # and 1, on another host`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if w.Join != "" {
				return joinWireBench(c, w, spec)
			}
			b, err := run.BenchWire(c.Context(), spec, run.Silent(os.Stderr))
			if err != nil {
				return err
			}
			return show(b, json)
		},
	}
	f := c.Flags()
	f.IntVar(&spec.Workers, "workers", spec.Workers, "worker processes")
	f.StringSliceVar(&spec.Transports, "transports", spec.Transports, "tcp, shm, mpi or auto; ratios are to the first; mpi needs --no-launch and workers that mpirun starts")
	f.StringSliceVar(&spec.Ops, "ops", spec.Ops, "what to time: "+strings.Join(run.WireOps(), ", "))
	f.IntSliceVar(&spec.Sizes, "sizes", spec.Sizes, "bytes that a worker holds")
	f.Float64Var(&spec.Seconds, "seconds", spec.Seconds, "for each row")
	f.IntVar(&spec.Turns, "turns", spec.Turns, "in which these are spent; the time is the median turn's")
	jsonFlag(c, &json)
	f.BoolVar(&spec.NoLaunch, "no-launch", false, "wait for workers that are started with --join")
	f.StringVar(&spec.Listen, "listen", "", "address to meet at; none: any port of 127.0.0.1")
	f.StringVar(&w.Join, "join", "", "be a worker of the benchmark at this address")
	f.IntVar(&w.Rank, "rank", -1, "with --join: which worker this is; -1: any")
	f.StringVar(&w.Job, "job", "", "with --join: only the job of this id")
	f.StringVar(&spec.TokenFile, "token-file", "", "file with the secret that all workers share; needed beyond 127.0.0.1")
	f.BoolVar(&spec.Insecure, "insecure", false, "go without a secret")
	f.IntVar(&spec.Timeout, "timeout", spec.Timeout, "seconds of any wait")
	f.SortFlags = false
	return c
}

// joinWireBench is one of the workers.
func joinWireBench(c *cobra.Command, w run.WorkerSpec, spec run.WireBenchSpec) (err error) {
	w.Token, w.Insecure, w.Timeout = []byte(os.Getenv(run.TokenVariable)), spec.Insecure, spec.Timeout
	if spec.TokenFile != "" {
		if w.Token, err = run.ReadToken(spec.TokenFile); err != nil {
			return err
		}
	}
	return run.JoinWireBench(c.Context(), w)
}

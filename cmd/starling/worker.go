package main

import (
	"os"

	"github.com/spf13/cobra"

	"starling/run"
	"starling/spec"
)

const workerLong = `Train as one of the workers of a run that was started elsewhere with starling train
--no-launch. Without --no-launch, the run starts workers on its own host itself.

A worker needs only its own part of the partition: in the folder that the run was given,
or in --part-dir. Beyond 127.0.0.1 all workers need the same secret.`

const workerExample = `  # on the first host
  head -c 32 /dev/urandom | base64 > token        # and copy it to the others
  starling train parts --listen 10.0.0.1:7000 --no-launch --token-file token
  starling worker --join 10.0.0.1:7000 --rank 0 --token-file token

  # on the second
  starling worker --join 10.0.0.1:7000 --rank 1 --token-file token --part-dir part1

  # if all hosts share a folder, workers find the run through it
  starling train parts --no-launch --rendezvous file:/shared
  starling worker --rendezvous file:/shared --rank 0       # and 1 on the second host`

func workerCommand() *cobra.Command {
	var w run.WorkerSpec
	var tokenFile string
	var quiet bool
	c := &cobra.Command{
		Use:     "worker --join ADDR",
		Short:   "Train as one of the workers of a run",
		Long:    workerLong,
		Example: workerExample,
		Args:    arguments(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			if err := completeWorker(&w, tokenFile); err != nil {
				return err
			}
			v := share(run.NewView(os.Stdout, text))
			if quiet {
				v = run.Silent(nil)
			}
			defer v.Close()
			return run.Work(c.Context(), w, v)
		},
	}
	f := c.Flags()
	f.StringVar(&w.Addr, "join", "", "address of the run, as starling train shows it")
	f.StringVar(&w.Rendezvous, "rendezvous", "", "where to find the run instead, as given to starling train")
	f.StringVar(&w.RendezvousJob, "rendezvous-job", "", "the launcher's job, if several use one --rendezvous")
	spec.AutoVar(f, &w.Rank, -1, 0, "rank", "rank of this worker; auto: as the launcher says, or any")
	f.StringVar(&w.Listen, "listen", "", "address for the other workers; empty: any port of the address that "+
		"reaches the run")
	f.StringVar(&w.PartDir, "part-dir", "", "folder of this worker's part; empty: in the run's partition")
	f.StringVar(&tokenFile, "token-file", "", "file with the secret that all workers share, - for standard input; "+
		"required beyond 127.0.0.1, here or in "+spec.TokenVariable)
	f.StringVar(&w.TLS, "tls", "", "folder with this host's certificate, from starling certs")
	f.BoolVar(&w.Insecure, "insecure", false, "do without a secret")
	f.StringVar(&w.Job, "job", "", "join only the job of this id")
	f.IntVar(&w.Timeout, "timeout", 60, "seconds to look for the run")
	f.IntVar(&w.Heartbeat, "heartbeat", 7, "seconds of silence after which the run counts as dead")
	f.BoolVar(&quiet, "quiet", false, "show nothing")
	f.SortFlags = false
	return c
}

// secret is what a --token-file holds, or else the environment.
func secret(tokenFile string) ([]byte, error) {
	if tokenFile != "" {
		return spec.ReadToken(tokenFile)
	}
	return []byte(os.Getenv(spec.TokenVariable)), nil
}

// completeWorker sets the secret and the rank of a worker.
func completeWorker(w *run.WorkerSpec, tokenFile string) (err error) {
	if w.Token, err = secret(tokenFile); err != nil {
		return err
	}
	switch {
	case w.Addr != "" && w.Rendezvous != "":
		return spec.Mistake("--join", w.Addr+" beside --rendezvous "+w.Rendezvous, "one of the two", "")
	case w.Rank < 0:
		w.Rank, err = run.RankOf(os.Getenv)
	}
	return err
}

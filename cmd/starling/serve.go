package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"starling/run"
	"starling/spec"
)

func serveCommand() *cobra.Command {
	o := run.DefaultServe()
	var quiet bool
	c := &cobra.Command{
		Use:   "serve RUN DIR",
		Short: "Answer questions about a graph over HTTP",
		Long: `Answer questions about a graph with the model that starling train --out RUN wrote:
HTTP and JSON, in the dataset's own vertex ids. docs/serving.md describes the requests.

Of a typed graph requests name the type of vertices, or the relation of pairs; a new
vertex has its edges by relation.

DIR may be a partition: one worker per part computes the rows of its vertices once, and
ends; the server then answers about vertices of the graph, not about new ones.

It listens on loopback. Beyond that it wants a secret in --token-file, which clients
send as "Authorization: Bearer SECRET", or --insecure. Ctrl-C finishes what is under way.`,
		Example: `  starling serve run cora
  curl -d '{"vertices":[0,1]}' http://127.0.0.1:8080/predict
  curl -d '{"vertex":0,"k":5}' http://127.0.0.1:8080/nearest
  curl -d '{"pairs":[[0,1]]}' http://127.0.0.1:8080/score    # a model of --task link
  curl -d '{"type":"user","vertices":["ada"]}' http://127.0.0.1:8080/predict  # typed`,
		Args: arguments(2, 2, "the folder of a run, and a dataset or partition folder"),
		RunE: func(c *cobra.Command, args []string) error {
			o.Run, o.Dataset = args[0], args[1]
			return run.Serve(c.Context(), o, func(addr string, vertices int) {
				if !quiet {
					fmt.Fprintf(text, "answering for %s on http://%s\n", run.Counted(vertices, "vertex"), addr)
				}
			})
		},
	}
	f := c.Flags()
	f.StringVar(&o.Listen, "listen", o.Listen, "address to listen on")
	f.StringVar(&o.TokenFile, "token-file", "", "file with the secret that clients send")
	f.BoolVar(&o.Insecure, "insecure", false, "listen beyond 127.0.0.1 without a secret: anyone who reaches the port is answered")
	spec.AutoVar(f, &o.Threads, 0, 1, "threads", "cores the first pass uses; auto: all")
	f.IntVar(&o.Timeout, "timeout", o.Timeout, timeoutOfParts)
	f.Int64Var(&o.Limits.Body, "max-body", o.Limits.Body, "most bytes of a request")
	f.IntVar(&o.Limits.Vertices, "max-vertices", o.Limits.Vertices, "most vertices of a request")
	f.IntVar(&o.Limits.AtOnce, "max-requests", o.Limits.AtOnce, "requests answered at once; others wait")
	f.DurationVar(&o.Limits.Wait, "max-wait", o.Limits.Wait, "how long requests wait before they are sent away")
	f.BoolVar(&quiet, "quiet", false, "say nothing")
	return c
}

package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"starling/run"
	"starling/spec"
)

func pathsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "paths",
		Short: "Describe the links between this host and others",
		Long:  `Describe the networks that this host is in, for train --paths. docs/paths.md has the file.`,
		Args:  arguments(0, 0, "a subcommand"),
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(pathsProbeCommand())
	return c
}

func pathsProbeCommand() *cobra.Command {
	var out, tokenFile string
	o := run.ProbeOptions{Timeout: 60}
	c := &cobra.Command{
		Use:   "probe",
		Short: "Measure links and write them as a file for --paths",
		Long: `Measure the networks of this host, or with --peer the links to another host, on which the same command
runs with --listen. That host answers one prober and ends; what it hears of is the same as that of workers: beyond
127.0.0.1 it wants --tls or a --token-file on both hosts, or --insecure.`,
		Example: `  starling paths probe --out links.yaml
  starling paths probe --listen 10.0.1.1:7000 --token-file token                      # on one host
  starling paths probe --peer 10.0.1.1:7000 --token-file token --out links.yaml       # on another`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) (err error) {
			if o.Token, err = secret(tokenFile); err != nil {
				return err
			}
			text := ""
			switch {
			case o.Listen != "" && o.Peer != "":
				return spec.Mistake("--peer", o.Peer+" with --listen", "one of them", "")
			case o.Listen != "":
				return run.AnswerProbe(c.Context(), o)
			case o.Peer != "":
				text, err = run.ProbePeer(c.Context(), o)
			default:
				text, err = run.ProbePaths(c.Context())
			}
			if err != nil || out == "" {
				fmt.Print(text)
				return err
			}
			if err := os.WriteFile(out, []byte(text), 0o644); err != nil {
				return spec.Mistake("--out", spec.Sentence(err), "a file that can be written", "")
			}
			return nil
		},
	}
	f := c.Flags()
	f.StringVar(&out, "out", "", "file to write (default: stdout)")
	f.StringVar(&o.Peer, "peer", "", "measure the links to the host that answers at this address")
	f.StringVar(&o.Listen, "listen", "", "answer one prober at this address")
	f.StringVar(&tokenFile, "token-file", "", "file with the secret that both hosts share")
	f.StringVar(&o.TLS, "tls", "", "folder with this host's certificate, from starling certs")
	f.BoolVar(&o.Insecure, "insecure", false, "do without a secret")
	f.IntVar(&o.Timeout, "timeout", o.Timeout, "seconds of the whole")
	f.SortFlags = false
	return c
}

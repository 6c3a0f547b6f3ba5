package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"starling/run"
	"starling/spec"
)

// inNetwork is the strategy that a switch adds rows for.
var inNetwork = strings.Join(spec.StrategiesWith("switch"), ", ")

func switchCommand() *cobra.Command {
	o := run.DefaultSwitch()
	var quiet bool
	c := &cobra.Command{
		Use:   "switch",
		Short: "Add rows of vertices in the network, for --strategy " + inNetwork,
		Long: `Be the switch of runs with --strategy ` + inNetwork + `: workers send each boundary vertex here
once, and get the sums over their vertices' neighbours back. One switch serves any number
of runs, as far as its memory goes. docs/strategies/` + inNetwork + `.md describes it.

It listens on loopback, TCP and UDP on one port. Beyond that it is refused without a secret
in --token-file, which the runs name as --switch-token-file, or --insecure. Ctrl-C or SIGTERM
ends it; runs go on when another is started at the same address soon enough.

With --xdp packets that arrive on these devices are switched in the kernel, which needs root
and a driver that takes such programs; without a token. Where the kernel refuses, it says why,
and switches in the process.`,
		Example: `  starling switch
  starling train parts --strategy ` + inNetwork + ` --switch 127.0.0.1:9900

  # for workers of other hosts
  (umask 077; head -c 32 /dev/urandom | base64 > token)   # and copy it to them
  starling switch --listen 10.0.0.1:9900 --token-file token
  starling train parts --strategy ` + inNetwork + ` --switch 10.0.0.1:9900 --switch-token-file token

  # in the kernel, on a network of hosts that trust each other
  starling switch --listen 10.0.0.1:9900 --xdp eth0 --insecure`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			return run.Switch(c.Context(), o, func(line string) {
				if !quiet {
					fmt.Fprintln(text, line)
				}
			})
		},
	}
	f := c.Flags()
	f.StringVar(&o.Listen, "listen", o.Listen, "address to listen on")
	f.StringVar(&o.TokenFile, "token-file", "", "file with the secret that hosts must know")
	f.BoolVar(&o.Insecure, "insecure", false, "listen beyond 127.0.0.1 without a secret")
	f.StringVar(&o.Memory, "memory", o.Memory, "memory for aggregators of all runs together")
	f.StringSliceVar(&o.XDP, "xdp", nil, "devices whose packets are switched in the kernel, by an XDP program")
	f.DurationVar(&o.Every, "status", o.Every, "time between status lines; 0: none")
	f.BoolVar(&quiet, "quiet", false, "say nothing")
	return c
}

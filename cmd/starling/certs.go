package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"starling/run"
)

func certsCommand() *cobra.Command {
	var out string
	var hosts []string
	var days int
	var renew bool
	c := &cobra.Command{
		Use:   "certs --hosts A,B,C",
		Short: "Make certificates so that only your hosts can join a run",
		Long: `Make certificates for the hosts of a cluster, and the small authority that signs them.

Copy OUT/HOST to each host and give it to starling train and starling worker as --tls: then
both sides of every connection authenticate each other, and the connection is encrypted.
Keep the authority's key, ca-key.pem, secret: it can make certificates for other hosts.`,
		Example: `  starling certs --hosts alpha,beta
  scp -r certs/beta beta:
  starling train parts --listen 10.0.0.1:7000 --no-launch --tls certs/alpha
  starling worker --join 10.0.0.1:7000 --rank 0 --tls certs/alpha
  starling worker --join 10.0.0.1:7000 --rank 1 --tls beta        # on beta`,
		Args: arguments(0, 0, "no arguments"),
		RunE: func(c *cobra.Command, _ []string) error {
			made, err := run.MakeCerts(out, hosts, days, renew)
			for _, m := range made {
				fmt.Fprintln(c.OutOrStdout(), m)
			}
			if err == nil && len(made) == 0 {
				fmt.Fprintln(c.ErrOrStderr(), "all hosts have certificates already; --renew makes new ones")
			}
			return err
		},
	}
	f := c.Flags()
	f.StringVar(&out, "out", "certs", "folder of the authority, with a folder per host")
	f.StringSliceVar(&hosts, "hosts", nil, "names of the hosts")
	f.IntVar(&days, "days", 365, "days that the certificates are valid")
	f.BoolVar(&renew, "renew", false, "make new certificates for hosts that already have some")
	return c
}

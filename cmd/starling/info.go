package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"starling/run"
	"starling/spec"
)

func infoCommand() *cobra.Command {
	var json, fanout, html string
	var verify, guess, locality bool
	var size int
	c := &cobra.Command{
		Use:   "info DIR",
		Short: "Say what a dataset or partition folder holds, and what training on it takes",
		Example: "  starling info graph\n  starling info graph --html graph.html\n  starling info graph " +
			"--verify --json -\n" +
			"  starling info parts --locality --fanout 10,10",
		Args: arguments(1, 1, "one dataset or partition folder"),
		RunE: func(c *cobra.Command, args []string) error {
			batches, err := localityOptions(c, args[0], locality, fanout, size)
			if err != nil {
				return err
			}
			if html != "" && run.IsPartition(args[0]) {
				return spec.Mistake("--html", "it with a partition", "a dataset folder",
					"give the dataset that it was cut from")
			}
			if err := checkPage(html); err != nil {
				return err
			}
			info, err := look(c, args[0], verify, guess, batches)
			if err != nil {
				return err
			}
			if page, ok := info.(interface{ WriteHTML(dir, path string) error }); ok && html != "" {
				if err := page.WriteHTML(args[0], html); err != nil {
					return err
				}
			}
			return show(info, json)
		},
	}
	jsonFlag(c, &json)
	c.Flags().StringVar(&html, "html", "", "write a page about a dataset: degrees, classes, features, "+
		"suspicious columns, and what "+
		"to do")
	c.Flags().BoolVar(&guess, "estimate", true, "estimate what training takes, by running a few epochs of a "+
		"small piece")
	c.Flags().BoolVar(&verify, "verify", false, "check every checksum and every number")
	c.Flags().BoolVar(&locality, "locality", false, "of a partition: the share of vertices that are on the "+
		"server of the "+
		"seed vertex that\nneeds them, of micrographs and of batches (HopGNN's R_micro and R_sub)")
	c.Flags().StringVar(&fanout, "fanout", "10,10", "with --locality: neighbours drawn per layer, the last "+
		"layer's first")
	c.Flags().IntVar(&size, "batch-size", 1024, "with --locality: seed vertices of a batch")
	return c
}

// checkPage refuses a file for a page that cannot be written.
func checkPage(path string) error {
	if path == "" {
		return nil
	}
	return spec.CheckFile("--html", path)
}

// measuredBatches is how many batches a locality is measured of.
const measuredBatches = 16

// localityOptions are the options of --locality; nil: it was not given.
func localityOptions(c *cobra.Command, dir string, wanted bool, fanout string, size int) (*run.LocalityOptions,
	error) {
	given := c.Flags().Changed("fanout") || c.Flags().Changed("batch-size")
	switch {
	case wanted && !run.IsPartition(dir):
		return nil, spec.Mistake("--locality", "it beside a dataset", "a partition folder",
			"make one with starling partition")
	case !wanted && given:
		return nil, spec.Mistake("--fanout, --batch-size", "no --locality", "both together", "add --locality")
	case !wanted:
		return nil, nil
	case size < 1:
		return nil, spec.Mistake("--batch-size", fmt.Sprint(size), "at least 1", "")
	}
	fanouts, err := spec.Fanouts(fanout)
	return &run.LocalityOptions{Fanouts: fanouts, BatchSize: size, Batches: measuredBatches}, err
}

// look describes a dataset or a partition.
func look(c *cobra.Command, dir string, verify, guess bool, batches *run.LocalityOptions) (finding, error) {
	if run.IsPartition(dir) {
		return run.DescribeParts(c.Context(), dir, verify, batches)
	}
	return run.Describe(c.Context(), dir, verify, guess)
}

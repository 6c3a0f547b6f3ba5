package main

import (
	"strings"

	"github.com/spf13/cobra"

	"starling/run"
)

func getCommand() *cobra.Command {
	var opt run.GetOptions
	var quiet bool
	var list strings.Builder
	for _, name := range run.PublicNames() {
		list.WriteString("\n  " + name + strings.Repeat(" ", max(1, 18-len(name))) + run.AboutPublic(name))
	}
	c := &cobra.Command{
		Use:   "get NAME [--out DIR]",
		Short: "Download a public dataset and import it",
		Long: `Download a public dataset and import it.
` + list.String() + `

A download that is cut off goes on where it was when the command is given again.
Files are compared with their SHA-256 where it is known; where it is not, the sum is
shown, and with --keep kept to compare later ones with. A mirror has the files as MIRROR/NAME/FILE.`,
		Example: `  starling get demo
  starling get cora
  starling get ogbn-arxiv --symmetrize --out arxiv
  starling get ogbn-products --mirror http://files.local/graphs`,
		Args: arguments(1, 1, "the name of a dataset"),
		RunE: func(c *cobra.Command, args []string) error {
			return writeDataset(quiet, func(v run.View) (run.Summary, error) {
				return run.Get(c.Context(), args[0], opt, v)
			})
		},
	}
	f := c.Flags()
	f.StringVar(&opt.Out, "out", "", "folder to write (default: the dataset's name)")
	f.StringVar(&opt.Mirror, "mirror", "", "address to download from, instead of the files' own places")
	f.StringVar(&opt.Cache, "cache", "", "folder for downloads (default: starling in your cache folder)")
	f.BoolVar(&opt.Keep, "keep", false, "leave the downloads in the cache")
	f.BoolVar(&opt.Symmetrize, "symmetrize", false, "add the reverse of every edge")
	f.BoolVar(&opt.Standardize, "standardize", false, "features to mean 0 and variance 1 over the training vertices")
	f.BoolVar(&opt.Overwrite, "overwrite", false, "replace an existing dataset")
	f.BoolVar(&quiet, "quiet", false, "show nothing")
	f.SortFlags = false
	return c
}

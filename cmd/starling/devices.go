package main

import (
	"github.com/spf13/cobra"

	"starling/run"
)

func devicesCommand() *cobra.Command {
	var json string
	c := &cobra.Command{
		Use:   "devices",
		Short: "List what this host can compute with",
		Long: `List the processor and the NVIDIA cards of this host, as --device of starling train names them.

Cards are found through NVIDIA's driver, which is opened when it is there; nothing else of CUDA is needed.
CUDA_VISIBLE_DEVICES says which cards a process may use.`,
		Example: "  starling devices\n  starling train graph --device cuda:0",
		Args:    arguments(0, 0, "no arguments"),
		RunE:    func(*cobra.Command, []string) error { return show(run.Devices(), json) },
	}
	jsonFlag(c, &json)
	return c
}

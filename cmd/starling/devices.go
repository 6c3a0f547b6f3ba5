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
		Long: `List the processor and the NVIDIA GPUs of this host, as --device of starling train names them.

GPUs are found through NVIDIA's driver, which is opened when it is there; nothing else of CUDA is needed.
CUDA_VISIBLE_DEVICES says which GPUs a process may use.`,
		Example: "  starling devices\n  starling train graph --device cuda:0",
		Args:    arguments(0, 0, "no arguments"),
		RunE:    func(*cobra.Command, []string) error { return show(run.Devices(), json) },
	}
	jsonFlag(c, &json)
	return c
}

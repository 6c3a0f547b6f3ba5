package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"starling/run"
	"starling/spec"
)

// notSimulated are the settings of training that are about real hosts and processes.
var notSimulated = append([]string{"transport", "in-process", "timeout", "heartbeat", "recover", "threads",
	"memory-check"}, notCompared...)

const simulateTrainLong = `Train on simulated workers, each with its part of a real graph, over a simulated network in
virtual time, and compare strategies: seconds per epoch, bytes, utilisation and queues of
links. Strategies run unchanged, so that bytes and losses equal starling train's.

Computing is charged to the virtual clock at rates that are given with --computing, or else
measured on this machine once and kept in a file, with those of starling plan: two runs take
exactly the same virtual time. --measure measures anew. --skip-computing leaves out the
numbers, for large graphs and many workers.

--events writes a file per strategy with what each worker does in virtual time: starling
view shows who waits for whom, and bytes planned beside counted.`

var simulateTrainExample = `  starling simulate train graph --workers 32 --strategies ` +
	strings.Join(spec.TypicalStrategies("full"), ",") + `
  starling simulate train graph --workers 128 --topology "leaf-spine leaves=8 spines=8 hosts=16 ecn=100KB" \
      --rate 25Gbps --background 0.3 --html network.html
  starling simulate train parts --level flow --computing "gemm=500 spmm=20 memory=100 op=5us" --skip-computing`

func simulateTrainCommand() *cobra.Command {
	o := run.DefaultSimulate()
	var strategies string
	c := &cobra.Command{
		Use:     "train DIR [--strategies A,B,… --workers N]",
		Short:   "Train on simulated workers over a simulated network",
		Long:    simulateTrainLong,
		Example: simulateTrainExample,
		Args:    arguments(1, 1, "one dataset or partition folder"),
		RunE: func(c *cobra.Command, args []string) error {
			o.Dataset, o.Strategies, o.Command = args[0], spec.SplitStrategies(strategies), run.CommandLine()
			return simulateTrain(c, o)
		},
	}
	f := c.Flags()
	f.StringVar(&strategies, "strategies", "", "strategies to compare, separated by commas; none: typical ones")
	f.StringVar(&o.Topology, "topology", o.Topology, "the network, as text or a file: star, leaf-spine, fat-tree or "+
		"rail with settings")
	f.StringVar(&o.Rate, "rate", o.Rate, "rate of links to hosts, such as 25Gbps; none: the topology's")
	f.StringVar(&o.Delay, "delay", o.Delay, "delay of every link, such as 1us; none: the topology's")
	f.StringVar(&o.Level, "level", o.Level, "packet or flow")
	f.Float64Var(&o.Background, "background", 0, "load of other traffic, below 1")
	f.Uint64Var(&o.BackgroundSeed, "background-seed", 1, "seed of that traffic")
	f.StringVar(&o.Computing, "computing", o.Computing, "what computing is charged: measured, none, or rates such as "+
		"\"gemm=40 spmm=2 memory=8 op=2us\"")
	f.StringVar(&o.RatesFile, "rates-file", "", "file that keeps measured rates; none: starling/rates.json of the user's caches")
	f.BoolVar(&o.Measure, "measure", false, "measure the rates of this machine again")
	f.IntVar(&o.Sharing, "sharing", o.Sharing, "workers that share a machine like this one: measured rates are divided by it")
	f.BoolVar(&o.SkipComputing, "skip-computing", false, "do not compute the numbers")
	f.Float64Var(&o.Passes, "switch-passes", o.Passes, "packets per second through the pipeline of a switch that adds; "+
		"0: any number")
	f.BoolVar(&o.Steady, "steady", false, "hosts that send to a switch do so at the rate of their link, whatever is marked")
	f.BoolVar(&o.Strawman, "time-strawman", false, "tell what an exchange through a switch that adds takes with "+
		"blocks, and without")
	f.IntVar(&o.Charts, "charts", o.Charts, "links whose queue and utilisation over time are kept")
	f.StringVar(&o.Output.JSON, "json", "", "write the result to this file, - for standard output")
	f.StringVar(&o.HTML, "html", "", "write a page with charts of queues and utilisation to this file")
	f.StringVar(&o.Events, "events", "", "write what workers do in virtual time to this folder, a file per strategy, for "+
		"starling view")
	addTrainingFlags(f, o.Flags, notSimulated)
	completeValues(c, settingValues())
	return c
}

// simulateTrain simulates and writes what came of it.
func simulateTrain(c *cobra.Command, o run.SimulateOptions) error {
	v := sparseView(&o.Output)
	result, err := run.SimulateTrain(c.Context(), o, v)
	v.Close()
	if result == nil {
		return err
	}
	fmt.Fprint(words(o.Output.JSON), "\n", strings.TrimSuffix(result.String(), "\n"), "\n")
	if o.Output.JSON != "" {
		if err := result.JSON(o.Output.JSON, stdout); err != nil {
			return err
		}
	}
	if o.HTML != "" {
		if err := result.WriteHTML(o.HTML); err != nil {
			return err
		}
	}
	if err != nil {
		return err
	}
	return result.Err()
}

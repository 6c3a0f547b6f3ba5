package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"starling/run"
	"starling/spec"
)

// notPlanned are the settings of training that a plan chooses, or has no use for.
var notPlanned = append([]string{"quiet"}, notCompared...)

const planLong = `Predict what an epoch takes with every strategy and its options, on the workers and links that
are given, and rank them: seconds, bytes between servers and memory. Choices that are the same
run by other names are one row; of those that take the same time the simplest comes first. The
pick stands last, with why and the command that runs it. Choices that follow another loss curve
stand apart, and are picked only with --allow-approximate. --all prints every choice with why,
and what cannot fit or does not go together with the reason.

Rates of this machine are measured in about a second, and kept in a file. The rate of the
links between servers is --rate, or as the hosts of the run measure it with --measure-links.
docs/planner.md says how far predictions were off.`

const planExample = `  starling plan graph --workers 4 --servers 2 --rate 1gbit --model sage
  starling plan parts --rate 100mbit --mode mini --memory 4GiB --html plan.html
  starling plan graph --workers 4 --servers 2 --rate 1gbit --partitioners multilevel,hash --json plan.json
  starling plan parts --measure-links --listen 10.0.0.1:7000 --token-file token   # and on each host:
  starling plan --join 10.0.0.1:7000 --rank 0 --token-file token
  starling plan --like ogbn-papers100M --hosts 128 --rate 25gbit --cut 0.2`

func planCommand() *cobra.Command {
	o := run.DefaultPlan()
	var strategies string
	var what run.WhatIfOptions
	w := run.WorkerSpec{Heartbeat: o.Cluster.Heartbeat}
	c := &cobra.Command{
		Use:     "plan DIR [--workers N --servers S --rate R]",
		Short:   "Predict and rank what strategies would take",
		Long:    planLong,
		Example: planExample,
		Args:    arguments(0, 1, "one dataset or partition folder"),
		RunE: func(c *cobra.Command, args []string) error {
			if w.Addr != "" {
				return joinPlan(c, w, &o)
			}
			if len(args) == 1 {
				o.Dataset = args[0]
			}
			o.Links.Timeout = o.Cluster.Timeout
			if what.Like != "" {
				what.Options = o
				return planWhatIf(c, what)
			}
			o.Strategies = spec.SplitStrategies(strategies)
			o.Given, o.Ways = givenFlags(c, planOnly), true
			return plan(c, o)
		},
	}
	f := c.Flags()
	f.StringVar(&o.Rate, "rate", "", "rate of the links between servers, such as 1gbit; none: as measured")
	f.StringVar(&o.Delay, "delay", "", "delay of these links, one way, such as 50us; none: as measured")
	spec.AutoVar(f, &o.Sharing, 0, 1, "sharing", "workers that share one machine like this one; auto: those of a server")
	f.StringVar(&o.Memory, "memory", "", "memory of a worker, such as 4GiB; none: what is free here, shared")
	f.StringVar(&o.RatesFile, "rates-file", "", "file that keeps measured rates; none: starling/rates.json of the user's caches")
	f.BoolVar(&o.Measure, "measure", false, "measure the rates of this machine again")
	f.BoolVar(&o.Links.Measure, "measure-links", false, "let a process on every host, started with --join, measure the links "+
		"between them; they are kept with the rates")
	f.StringVar(&w.Addr, "join", "", "measure links for the plan at this address")
	spec.AutoVar(f, &w.Rank, -1, 0, "rank", "with --join: rank of the worker that will be here; auto: any")
	f.StringVar(&o.Links.Listen, "listen", "", "with --measure-links: address where they join; none: any port of 127.0.0.1")
	f.StringVar(&o.Links.TokenFile, "token-file", "", "file with the secret of all who measure; required beyond 127.0.0.1")
	f.StringVar(&o.Links.TLS, "tls", "", "folder with this host's certificate, instead of a secret")
	f.BoolVar(&o.Links.Insecure, "insecure", false, "measure without a secret")
	f.BoolVar(&o.Approximate, "allow-approximate", false, "let the pick be one that follows another loss curve")
	f.BoolVar(&o.All, "all", false, "print every choice, why it is where it is, and what was left out and why")
	f.StringSliceVar(&o.Partitioners, "partitioners", nil, "methods to cut a dataset with; none: --partitioner")
	f.StringVar(&strategies, "strategies", "", "plan only these, separated by commas, as in "+fullReference+"+relay; none: all")
	f.StringVar(&what.Like, "like", "", "plan for a graph that is not here, shaped as this public dataset, or as vertices=2e9,edges=2e12")
	f.IntVar(&what.Hosts, "hosts", 0, "with --like: hosts, one worker each")
	spec.AutoVar(f, &what.Cut, 0, 0, "cut", "with --like: share of edges between hosts; auto: a random cut")
	f.StringVar(&what.Computing, "computing", "", "with --like: rates of a host, as starling simulate takes them; none: this "+
		"machine's")
	f.StringVar(&o.Output.JSON, "json", "", "write the plan to this file, - for standard output")
	f.StringVar(&o.HTML, "html", "", "write a page with bars to this file")
	addTrainingFlags(f, o.Flags, notPlanned)
	completeValues(c, settingValues())
	return c
}

// planOnly are the flags that training does not have.
var planOnly = []string{"rate", "delay", "sharing", "memory", "rates-file", "measure", "allow-approximate", "all", "partitioners",
	"measure-links", "join", "rank", "listen", "token-file", "tls", "insecure",
	"strategies", "like", "cut", "computing", "json", "html"}

// givenFlags are the flags that were given, but for some, as words of a command.
func givenFlags(c *cobra.Command, without []string) []string {
	var words []string
	c.Flags().Visit(func(f *pflag.Flag) {
		if !slices.Contains(without, f.Name) {
			words = append(words, "--"+f.Name+"="+f.Value.String())
		}
	})
	return words
}

func plan(c *cobra.Command, o run.PlanOptions) error {
	for _, f := range []struct{ flag, path string }{{"--json", o.Output.JSON}, {"--html", o.HTML}} {
		if err := spec.CheckFile(f.flag, f.path); err != nil {
			return err
		}
	}
	v := share(run.NewSparseView(screen(o.Output.JSON), words(o.Output.JSON)))
	result, err := run.PlanChoices(c.Context(), o, v)
	v.Close()
	if err != nil {
		return err
	}
	fmt.Fprint(words(o.Output.JSON), result)
	if o.Output.JSON != "" {
		if err := result.JSON(o.Output.JSON, os.Stdout); err != nil {
			return err
		}
	}
	if o.HTML != "" {
		return result.WriteHTML(o.HTML)
	}
	return nil
}

// joinPlan measures links with others, for a plan elsewhere.
func joinPlan(c *cobra.Command, w run.WorkerSpec, o *run.PlanOptions) (err error) {
	w.TLS, w.Insecure, w.Timeout = o.Links.TLS, o.Links.Insecure, o.Cluster.Timeout
	if w.Token, err = spec.GivenToken(o.Links.TokenFile); err != nil {
		return err
	}
	return run.JoinLinks(c.Context(), &w)
}

func planWhatIf(c *cobra.Command, o run.WhatIfOptions) error {
	if len(c.Flags().Args()) > 0 {
		return spec.Mistake("--like", "it beside DIR", "one graph", "leave out one of the two")
	}
	v := share(run.NewSparseView(screen(o.Output.JSON), words(o.Output.JSON)))
	result, err := run.PlanWhatIf(o, v)
	v.Close()
	if err != nil {
		return err
	}
	fmt.Fprint(words(o.Output.JSON), result)
	if o.Output.JSON != "" {
		return result.JSON(o.Output.JSON, os.Stdout)
	}
	return nil
}

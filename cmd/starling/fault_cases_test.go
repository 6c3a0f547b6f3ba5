package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"starling/spec"
)

// faultCase is a kind of run that faults are injected into.
type faultCase struct {
	args  string // of starling train, beside what all have
	alone bool   // one process, without workers
}

// typed reports whether it trains on a typed graph.
func (c faultCase) typed() bool {
	return slices.ContainsFunc([]string{"rgcn", "hsage", "rgat", "hgt", "simplehgn"}, func(model string) bool {
		return strings.Contains(c.args, "--model "+model)
	})
}

// servers reports whether its workers are grouped into servers.
func (c faultCase) servers() bool { return strings.Contains(c.args, "--servers") }

// sharesMemory reports whether its bytes may go through shared memory alone.
func (c faultCase) sharesMemory() bool { return !strings.Contains(c.args, "--paths") }

// faultSettings are the settings that a strategy is tried with; one that is not named here
// is tried with its defaults. What measured times decide (the rates of granndis
// and neutronstar) is given, so that two undisturbed runs have the same weights. --pull-dtype is
// left out: it rounds what comes from other hosts, and a worker may come back on another one.
var faultSettings = map[string][]string{
	"halo": {"--model sage --norm batch", "--wire-dtype int8",
		"--model ressage+ --layers 28 --hidden 8 --epochs 80", "--paths auto"},
	"bns":         {":0.5", ":0.5:cached"},
	"pipegcn":     {"", "--smooth 0.5 --model sage"},
	"sancus":      {":epoch:2", ":variation:0.5"},
	"skipg":       {":2"},
	"cagnet":      {"", ":1.5d --servers 2", ":2d --servers 2 --model sage"},
	"granndis":    {":1 --servers 2", ":eas1,3 --servers 2", ":eas1,3:plain --servers 2", " --servers 2 " + faultRates},
	"neutronstar": {faultRates},
	"neutrontp":   {":2 --model sage"},
	"plexus":      {"", "--products rows --model sage"},
	"distdgl": {"--cache none", "--roots random --cache degree", "--roots local --cache frequency",
		"--cache s3fifo --cache-budget 4KiB", "--learn-embeddings 8", "--dgs --dgs-every 2",
		"--task link --model sage", "--paths auto"},
	"salient": {"--roots owner", "--roots random --cache-budget 4KiB", "--roots local"},
	"bytegnn": {"--roots owner", "--roots random", "--roots local"},
	"cobatch": {"", "--servers 2 --eas 1,3", "--servers 2 --sampler saint-node",
		"--together all --cache frequency --cache-budget 4KiB"},
	"p3": {"", "--pipeline 2", "--model gat --heads 2 --pipeline 1"},
	"hopgnn": {"--merge 0", "--merge 1", "--merge 1 --merge-order random --pre-gather=false",
		"--merge time"},
}

// faultRates make recomputing some rows cheaper than receiving them.
const faultRates = "--rates row:1e-6:1e-6,edge:1e-8:1e-8,inside:1e-8,between:1e-7 --memory-budget 64MiB"

// typedFaults are the settings that a strategy is tried with on a typed graph. One that is not named here is tried with
// its defaults, with rgcn on the full graph and with hsage on mini-batches.
var typedFaults = map[string][]string{
	"halo": {"--model rgcn --bases 2", "--model rgat", "--model hsage --paths auto", "--model hgt",
		"--model simplehgn"},
	"granndis":    {":1 --model rgcn --servers 2"},
	"neutronstar": {"--model hsage " + faultRates},
	"distdgl": {"--model rgcn --fanout 5,5 --fanout cites=2,1", "--model hsage --cache s3fifo --cache-budget 4KiB",
		"--model rgat --roots random --cache degree", "--model hgt --roots random"},
	"cobatch": {"--model hsage", "--model hsage --servers 2"},
}

// withoutTypes are the strategies that do not train on a typed graph; TestTypedRunIsKilledAndResumed sees them refused.
var withoutTypes = []string{"bns", "neutrontp", "plexus", "switchgnn", "naive-hop", "p3"}

// typedSettings lists the settings of a strategy by its name; none if it does not know types.
func typedSettings(mode, name string) []string {
	if slices.Contains(withoutTypes, name) {
		return nil
	}
	if settings, ok := typedFaults[name]; ok {
		return settings
	}
	return []string{map[string]string{"full": "--model rgcn", "mini": "--model hsage"}[mode]}
}

// aloneFaults are settings of one process: every sampler, and the other tasks.
func aloneFaults() (list []string) {
	list = []string{"--model gat", "--task link --model sage", "--mode mini --task link --model sage --batch-size 256",
		"--mode mini --task unsupervised --model sage --epochs 40", "--mode mini --dtype bf16 --model sage",
		"--model rgcn", "--mode mini --model hsage", "--model hgt", "--mode mini --model simplehgn"}
	for _, s := range spec.Samplers() {
		list = append(list, "--mode mini --sampler "+s)
	}
	return list
}

// faultCases are runs of every strategy that is registered, and of one process.
func faultCases() (list []faultCase) {
	for _, mode := range []string{"full", "mini"} {
		for _, name := range spec.StrategyNamesOf(mode) {
			if name == "toy" { // the program that the test builds does not have it
				continue
			}
			settings, ok := faultSettings[name]
			if !ok {
				settings = []string{""}
			}
			for _, s := range append(slices.Clone(settings), typedSettings(mode, name)...) {
				if s != "" && s[0] != ':' {
					s = " " + strings.TrimSpace(s)
				}
				list = append(list, faultCase{args: fmt.Sprintf("--mode %s --strategy %s%s", mode, name, s)})
			}
		}
	}
	for _, s := range aloneFaults() {
		list = append(list, faultCase{args: s, alone: true})
	}
	return list
}

// graph names the data of a run, in all its forms.
func (c faultCase) graph() string {
	if c.typed() {
		return "typed"
	}
	return "graph"
}

// data is the folder of a run on that many workers.
func (c faultCase) data(workers int) string {
	switch {
	case c.alone:
		return c.graph()
	case c.servers():
		return c.graph() + "-servers"
	}
	return fmt.Sprint(c.graph(), "-parts", workers)
}

// command is the run that faults are injected into, on the data in a folder.
func (c faultCase) command(data string) []string {
	args := []string{"train", data, "--layers", "2", "--hidden", "32", "--eval-every", "0"}
	epochs := "200"
	if c.alone {
		epochs = "1500" // they take less time
	}
	if !strings.Contains(c.args, "--epochs") {
		args = append(args, "--epochs", epochs)
	}
	if strings.Contains(c.args, "--mode mini") && !strings.Contains(c.args, "--batch-size") {
		args = append(args, "--batch-size", "128")
	}
	return append(args, strings.Fields(c.args)...)
}

// TestFaultCases: every strategy has faults injected, also on a typed graph if it knows types, and settings are of
// strategies that exist.
func TestFaultCases(t *testing.T) {
	names := spec.StrategyNames()
	for _, name := range slices.Concat(slices.Collect(maps.Keys(faultSettings)), slices.Collect(maps.Keys(typedFaults)),
		withoutTypes) {
		if !slices.Contains(names, name) {
			t.Errorf("there is no strategy %s", name)
		}
	}
	all := faultCases()
	for _, name := range names {
		if name == "toy" {
			continue
		}
		injected := map[bool]bool{}
		for _, c := range all {
			if strings.Contains(c.args+" ", "--strategy "+name+" ") || strings.Contains(c.args, "--strategy "+name+":") {
				injected[c.typed()] = true
			}
		}
		if knows := !slices.Contains(withoutTypes, name); !injected[false] || injected[true] != knows {
			t.Errorf("%s: faults are injected into runs without types %t, with types %t; it knows types: %t", name,
				injected[false], injected[true], knows)
		}
	}
}

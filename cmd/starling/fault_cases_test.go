package main

import (
	"fmt"
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
	"granndis":    {":1 --servers 2", ":eas1,3 --servers 2", " --servers 2 " + faultRates},
	"neutronstar": {faultRates},
	"distdgl": {"--cache none", "--roots random --cache degree", "--roots local --cache frequency",
		"--cache s3fifo --cache-budget 4KiB", "--learn-embeddings 8", "--dgs --dgs-every 2",
		"--task link --model sage", "--paths auto"},
	"salient": {"--roots owner", "--roots random --cache-budget 4KiB", "--roots local"},
	"bytegnn": {"--roots owner", "--roots random", "--roots local"},
	"cobatch": {"", "--servers 2 --eas 1,3", "--servers 2 --sampler saint-node"},
	"hopgnn":  {"--merge 0", "--merge 1", "--merge 1 --merge-order random --pre-gather=false"},
}

// faultRates make recomputing some rows cheaper than receiving them.
const faultRates = "--rates row:1e-6:1e-6,edge:1e-8:1e-8,inside:1e-8,between:1e-7 --memory-budget 64MiB"

// aloneFaults are settings of one process: every sampler, and the other tasks.
func aloneFaults() (list []string) {
	list = []string{"--model gat", "--task link --model sage", "--mode mini --task link --model sage --batch-size 256",
		"--mode mini --task unsupervised --model sage --epochs 40", "--mode mini --dtype bf16 --model sage"}
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
			for _, s := range settings {
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

// command is the run that faults are injected into, on the data in a folder.
func (c faultCase) command(data string) []string {
	args := []string{"train", data, "--layers", "2", "--hidden", "32", "--eval-every", "0"}
	epochs := "400"
	if c.alone {
		epochs = "3000" // they take less time
	}
	if !strings.Contains(c.args, "--epochs") {
		args = append(args, "--epochs", epochs)
	}
	if strings.Contains(c.args, "--mode mini") && !strings.Contains(c.args, "--batch-size") {
		args = append(args, "--batch-size", "128")
	}
	return append(args, strings.Fields(c.args)...)
}

// TestFaultCases: every strategy has faults injected, and settings are of strategies that exist.
func TestFaultCases(t *testing.T) {
	names := spec.StrategyNames()
	for name := range faultSettings {
		if !slices.Contains(names, name) {
			t.Errorf("there is no strategy %s", name)
		}
	}
	all := faultCases()
	for _, name := range names {
		if name != "toy" && !slices.ContainsFunc(all, func(c faultCase) bool {
			return strings.Contains(c.args+" ", "--strategy "+name+" ") ||
				strings.Contains(c.args, "--strategy "+name+":")
		}) {
			t.Errorf("no faults are injected into runs of %s", name)
		}
	}
}

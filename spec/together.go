package spec

import (
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// instead are flags that give a setting in place of another flag.
var instead = []struct{ one, other, fix string }{
	{"partitioner", "partition", "leave out one of the two"},
	{"method", "partition", "leave out one of the two"},
	{"partition", "partitioners", "add it to the list, or leave it out"},
	{"partitioner", "partitioners", "add it to the list, or leave it out"},
	{"method", "partitioners", "add it to the list, or leave it out"},
	{"model", "models", "add it to the list, or leave it out"},
	{"mode", "modes", "add it to the list, or leave it out"},
	{"sampler", "samplers", "add it to the list, or leave it out"},
}

// CheckTogether refuses flags that were given side by side, of which a command could obey only one. A default that is
// given counts: only the flags know of it.
func CheckTogether(fs *pflag.FlagSet) error {
	for _, p := range instead {
		one, other := givenFlag(fs, p.one), givenFlag(fs, p.other)
		if one != "" && other != "" && one != other {
			return Mistake("--"+p.one, one+" beside --"+p.other+" "+other, "one of the two", p.fix)
		}
	}
	samplers, mode := givenFlag(fs, "samplers"), givenFlag(fs, "mode")+givenFlag(fs, "modes")
	if samplers != "" && mode != "" && !slices.Contains(strings.Split(mode, ","), "mini") {
		return Mistake("--samplers", samplers+" beside mode "+mode, "mode mini: full-graph training draws no batches",
			"leave out one of the two")
	}
	return nil
}

// givenFlag is the value that a flag was given, a list without its brackets; "": it was not.
func givenFlag(fs *pflag.FlagSet, name string) string {
	f := fs.Lookup(name)
	if f == nil || !f.Changed {
		return ""
	}
	return strings.Trim(f.Value.String(), "[]")
}

package spec

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"
)

// TestFlagsOfOneSettingAreRefusedTogether: of two flags that say the same thing neither is silently dropped.
func TestFlagsOfOneSettingAreRefusedTogether(t *testing.T) {
	for line, want := range map[string]string{ // "": they go together
		"--partition fennel --partitioner multilevel":        "--partitioner: found multilevel beside --partition",
		"--partition fennel --method multilevel":             "--method: found multilevel beside --partition fennel",
		"--partition fennel --partitioner fennel":            "",
		"--partition fennel":                                 "",
		"--model gat --models gcn,sage":                      "--model: found gat beside --models gcn,sage",
		"--models gcn,sage":                                  "",
		"--mode full --samplers ladies,cluster":              "--samplers: found ladies,cluster beside mode full",
		"--modes full --samplers ladies,cluster":             "--samplers: found ladies,cluster beside mode full",
		"--modes full,mini --samplers ladies":                "",
		"--mode mini --samplers ladies,cluster":              "",
		"--sampler neighbour --samplers ladies":              "--sampler: found neighbour beside --samplers ladies",
		"--partition fennel --partitioners hash,multilevel":  "--partition: found fennel beside --partitioners",
		"--partitioner multilevel --partitioners hash,chunk": "--partitioner: found multilevel beside --partitioners",
		"--mode full --modes full,mini":                      "--mode: found full beside --modes full,mini",
	} {
		s := DefaultCompare()
		fs := pflag.NewFlagSet("", pflag.ContinueOnError)
		s.Flags(fs)
		for name, list := range map[string]*[]string{"models": &s.Models, "modes": &s.Modes, "samplers": &s.Samplers,
			"partitioners": &s.Partitioners} {
			fs.StringSliceVar(list, name, nil, "")
		}
		if err := fs.Parse(strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
		err := CheckTogether(fs)
		if (err == nil) != (want == "") || err != nil && !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %q", line, err, want)
		}
	}
}

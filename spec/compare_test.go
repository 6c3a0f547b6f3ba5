package spec

import (
	"strings"
	"testing"
)

func TestSplitStrategies(t *testing.T) {
	for text, want := range map[string]string{
		"halo":                               "halo",
		"halo, bns:0.1,,g3":                  "halo|bns:0.1|g3",
		"granndis:eas1,15,halo":              "granndis:eas1,15|halo",
		"granndis:2:eas1,15,halo":            "granndis:2:eas1,15|halo",
		"sancus:epoch:2,granndis:eas1,15,g3": "sancus:epoch:2|granndis:eas1,15|g3",
		"":                                   "",
	} {
		if got := strings.Join(SplitStrategies(text), "|"); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// TestComparisonTrainsOneModel: all cases have the model of the default strategy's run, but for one whose strategy
// refuses a setting of it.
func TestComparisonTrainsOneModel(t *testing.T) {
	plain := Default()
	plain.Mode, plain.Cluster.Workers, plain.Strategy, plain.Model.Name = "mini", 2, "default", "sage"
	for strategy, drops := range map[string]bool{"salient": true, "naive-hop": false} {
		one := plain.ForStrategy(strategy)
		if err := one.Complete(); err != nil {
			t.Fatal(err)
		}
		one.Model.InputDropout = false // as a strategy may have it
		if one.shareModel(plain); one.Model.InputDropout != drops || one.Validate() != nil {
			t.Errorf("%s: input dropout %v, want %v: %v", strategy, one.Model.InputDropout, drops, one.Validate())
		}
	}
}

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
	plain.Mode, plain.Cluster.Workers, plain.Strategy, plain.Model.Name = "mini", 2, "default", "gin"
	plain.Model.TrainEps = true
	for strategy, trains := range map[string]bool{"salient": true, "naive-hop": false} {
		one := plain.ForStrategy(strategy)
		one.Model.TrainEps = false // as a strategy may have it
		if err := one.Complete(); err != nil {
			t.Fatal(err)
		}
		if one.shareModel(plain); one.Model.TrainEps != trains || one.Validate() != nil {
			t.Errorf("%s: train eps %v, want %v: %v", strategy, one.Model.TrainEps, trains, one.Validate())
		}
	}
}

package spec

import (
	"fmt"
	"strings"
	"testing"

	"starling/train"
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

// TestComparisonSharesSettings: no strategy changes what is trained by: dropout of features or hidden rows, the
// optimizer, the number of epochs, batches and fanouts.
func TestComparisonSharesSettings(t *testing.T) {
	for mode, names := range map[string][]string{"full": train.NamesOf(train.FullGraph),
		"mini": train.NamesOf(train.MiniBatch)} {
		c := DefaultCompare()
		c.Dataset, c.Mode, c.Cluster.Workers, c.Strategies, c.Model.Name = "none", mode, 4, names, "sage"
		cases, err := c.Cases()
		if err != nil || len(cases) != len(names) {
			t.Fatalf("%s: %d cases of %d strategies: %v", mode, len(cases), len(names), err)
		}
		first := cases[0].Spec
		if first.Model.InputDropout != On || first.Model.Dropout == 0 {
			t.Fatalf("%s: without input dropout", mode)
		}
		for _, one := range cases[1:] {
			s := one.Spec
			if s.Model != first.Model || s.Optimizer != first.Optimizer || s.Training != first.Training ||
				fmt.Sprint(s.Batches) != fmt.Sprint(first.Batches) {
				t.Errorf("%s: %+v %+v %+v %+v, want those of %s: %+v %+v %+v %+v", one.Name, s.Model, s.Optimizer,
					s.Training, s.Batches, cases[0].Name, first.Model, first.Optimizer, first.Training, first.Batches)
			}
		}
	}
}

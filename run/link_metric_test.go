package run

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"starling/nn"
	"starling/setup/setuptest"
	"starling/spec"
)

// TestPairsJudgedByMetric: epochs are compared by the metric that is asked for, which is what the report measures at the
// best epoch; two workers find what one does and send what was planned, of relations too.
func TestPairsJudgedByMetric(t *testing.T) {
	block, typed := setuptest.Block(t, nil), setuptest.Typed(t)
	beside := map[string]int64{} // bytes that are planned and not sent, of edges that a batch leaves out
	for _, metric := range []string{"auc", "mrr", "hits@3", "average_precision"} {
		full := pairSpecs(block)["link full"]
		mini := pairSpecs(block)["link mini"]
		relations := setuptest.QuickTyped(typed, "hsage")
		relations.Task, relations.Target, relations.Training.Epochs = nn.TaskLink, "author writes paper", 3
		for name, s := range map[string]spec.Spec{"full": full, "mini": mini, "relations": relations} {
			s.Objective.Metric, s.Machine.DType, s.Training.Epochs = metric, "f64", 3
			one := trained(t, s, nil)
			measured := map[string]float64{"average_precision": float64(one.TestAccuracy), "auc": float64(*one.AUC),
				"mrr": float64(*one.MRR), "hits@3": float64(one.Hits["3"])}
			if one.Metric != metric || math.Abs(measured[metric]-float64(one.TestAccuracy)) > 1e-9 ||
				!(one.TestAccuracy > 0 && one.TestAccuracy <= 1) {
				t.Errorf("%s by %s: %s is %v, measured %v", name, metric, one.Metric, one.TestAccuracy, measured)
			}
			if name == "full" {
				continue
			}
			s.Cluster.Workers, s.Cluster.InProcess, s.Strategy = 2, true, "default"
			two := trained(t, s, nil)
			if metric == "auc" {
				beside[name] = two.Bytes.Planned - two.Bytes.Total
			}
			if math.Abs(float64(two.TestAccuracy-one.TestAccuracy)) > 1e-9 || two.BestEpoch != one.BestEpoch ||
				two.Bytes.Planned-two.Bytes.Total != beside[name] {
				t.Errorf("%s by %s: %v, of one worker %v; sent %d, planned %d", name, metric, two.TestAccuracy,
					one.TestAccuracy, two.Bytes.Total, two.Bytes.Planned)
			}
		}
	}
}

// TestPairMetricsRefuse: hits among fewer negatives, and metrics of classes.
func TestPairMetricsRefuse(t *testing.T) {
	s := pairSpecs(setuptest.Block(t, nil))["link full"]
	for _, metric := range []string{"hits@100", "macro_f1", "hits@7"} {
		s.Objective.Metric, s.Output.Dir = metric, filepath.Join(t.TempDir(), "run")
		if _, err := Train(context.Background(), s, nil); !setuptest.IsMistake(err, "--metric") {
			t.Errorf("%s: %v", metric, err)
		}
	}
}

// TestTuneLinksByMetric: trials are compared by a metric of ranks, the best first.
func TestTuneLinksByMetric(t *testing.T) {
	s := tuning9(t, setuptest.Block(t, nil), "lr=1e-9,0.01")
	s.Trials, s.Task, s.Model.Name, s.Objective.Metric = 2, nn.TaskLink, "sage", "hits@10"
	got, err := Tune(context.Background(), s, none, nil)
	if err != nil || got.Metric != "hits@10" || len(got.Trials) != 2 || got.Trials[0].Val < got.Trials[1].Val {
		t.Fatalf("%v %+v", err, got)
	}
}

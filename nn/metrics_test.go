package nn

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
)

// TestMetricsAreScikitLearns: testdata/metrics.py wrote the numbers.
func TestMetricsAreScikitLearns(t *testing.T) {
	var golden struct {
		Single []struct {
			Logits    [][]float64
			Labels    []int
			Metrics   map[string]float64
			Classes   [][]float64
			Confusion [][]int64
		}
		Several []struct {
			Logits  [][]float64
			Marks   [][]int
			Metrics map[string]float64
		}
		Numbers []struct {
			Outputs [][]float64
			Values  [][]float32
			Metrics map[string]float64
		}
	}
	b, err := os.ReadFile("testdata/metrics.json")
	if err == nil {
		err = json.Unmarshal(b, &golden)
	}
	if err != nil || len(golden.Single) == 0 {
		t.Fatal(err)
	}
	for _, g := range golden.Single {
		j := &Judge{Task: TaskClassify, Classes: len(g.Logits[0]), Positive: 1}
		tally, of := make(Tally, j.Width()), newScores(j)
		for i, x := range g.Logits {
			j.AddClass(tally, x, g.Labels[i])
			of.add(x, func(c int) bool { return c == g.Labels[i] })
		}
		e := j.Evaluation(tally, "test")
		e.AddScores(of.all())
		sameMetrics(t, e.Metrics, g.Metrics)
		for c, want := range g.Classes {
			r := e.Classes[c]
			for k, x := range []float64{r.Precision, r.Recall, r.F1, float64(r.Support)} {
				if math.Abs(x-want[k]) > 1e-12 {
					t.Errorf("class %d: %+v, want %v", c, r, want)
				}
			}
			for p, n := range g.Confusion[c] {
				if e.Confusion[c][p] != n {
					t.Errorf("confusion %v, want %v", e.Confusion, g.Confusion)
				}
			}
		}
	}
	for _, g := range golden.Several {
		j := &Judge{Task: TaskMultiLabel, Classes: len(g.Logits[0])}
		tally, of := make(Tally, j.Width()), newScores(j)
		for i, x := range g.Logits {
			is := func(c int) bool { return g.Marks[i][c] == 1 }
			j.AddMarks(tally, x, is)
			of.add(x, is)
		}
		e := j.Evaluation(tally, "test")
		e.AddScores(of.all())
		sameMetrics(t, e.Metrics, g.Metrics)
	}
	for _, g := range golden.Numbers {
		counts := NewErrorCounts(len(g.Values[0]))
		for i, y := range g.Values {
			counts.Add(y, g.Outputs[i])
		}
		for name, want := range g.Metrics {
			if got := counts.Metric(name); math.Abs(got-want) > 1e-6 { // values are float32
				t.Errorf("%s is %.12g, want %.12g", name, got, want)
			}
		}
	}
}

func sameMetrics(t *testing.T, got, want map[string]float64) {
	t.Helper()
	for name, x := range want {
		if y, ok := got[name]; !ok || math.Abs(y-x) > 1e-12 {
			t.Errorf("%s is %.15g, want %.15g", name, y, x)
		}
	}
}

// scores are gathered by class.
type scores struct {
	judge  *Judge
	values [][]float64
	is     [][]bool
}

func newScores(j *Judge) *scores {
	return &scores{j, make([][]float64, len(j.Scored())), make([][]bool, len(j.Scored()))}
}

func (s *scores) add(outputs []float64, is func(class int) bool) {
	for i, c := range s.judge.Scored() {
		s.values[i], s.is[i] = append(s.values[i], s.judge.Score(outputs, c)), append(s.is[i], is(c))
	}
}

func (s *scores) all() (list []*Scored) {
	for i := range s.values {
		list = append(list, NewScored(s.values[i], s.is[i]))
	}
	return list
}

// TestThresholdIsTheBestOfAll cuts, in comparison with trying every one.
func TestThresholdIsTheBestOfAll(t *testing.T) {
	values := []float64{2, 1.5, 1.5, 1, 0.5, 0, -0.5, -1, -1, -2}
	is := []bool{true, true, false, true, false, false, true, false, false, false}
	for _, metric := range []string{"average_precision", "accuracy", "balanced_accuracy", "mcc", "macro_f1"} {
		quality := func(from float64) float64 {
			j := &Judge{Task: TaskClassify, Classes: 2, Positive: 1, Threshold: []float64{from}}
			counts := NewClassCounts(2)
			for i, x := range values {
				known := 0
				if is[i] {
					known = 1
				}
				counts.Add(known, j.Class([]float64{0, x}))
			}
			if metric == "average_precision" {
				return counts.F1(1)
			}
			return counts.Metric(metric, TaskClassify)
		}
		got, best := quality(NewScored(values, is).Best(metric)), 0.0
		for x := -2.5; x < 2.5; x += 0.1 {
			best = max(best, quality(1/(1+math.Exp(-x))))
		}
		if got < best-1e-12 {
			t.Errorf("%s is %g at the threshold, %g at another", metric, got, best)
		}
	}
	if x := NewScored([]float64{1, 2}, []bool{false, false}).Best("mcc"); x != 0.5 {
		t.Errorf("without positives the threshold is %g", x)
	}
}

// TestCurvesWithoutBothKinds: curves are not numbers, and neither are curves over scores that are none.
func TestCurvesWithoutBothKinds(t *testing.T) {
	all := NewScored([]float64{1, 2}, []bool{true, true})
	none := NewScored([]float64{1, 2}, []bool{false, false})
	lost := NewScored([]float64{1, math.NaN()}, []bool{true, false})
	for _, x := range []float64{all.AUC(), none.AUC(), none.AveragePrecision(), lost.AUC(), lost.AveragePrecision()} {
		if !math.IsNaN(x) {
			t.Errorf("%g", x)
		}
	}
	if all.AveragePrecision() != 1 {
		t.Errorf("average precision of positives alone is %g", all.AveragePrecision())
	}
}

// TestDefaultMetric: accuracy but for two classes, one of which is rare.
func TestDefaultMetric(t *testing.T) {
	for _, c := range []struct {
		task   string
		counts []float64
		want   string
	}{{TaskClassify, []float64{50, 50}, "accuracy"}, {TaskClassify, []float64{81, 19}, "average_precision"},
		{TaskClassify, []float64{80, 20}, "accuracy"}, {TaskClassify, []float64{98, 1, 1}, "accuracy"},
		{TaskClassify, []float64{100, 0}, "accuracy"}, {TaskMultiLabel, []float64{99, 1}, "micro_f1"},
		{TaskRegression, nil, "r2"}} {
		if got := DefaultMetric(c.task, c.counts); got != c.want {
			t.Errorf("%s %v: %s, want %s", c.task, c.counts, got, c.want)
		}
	}
}

// TestWarnings of one class, of no better than the majority, and none of a model that has learnt.
func TestWarnings(t *testing.T) {
	for _, c := range []struct {
		said  []int // how many of each class are predicted as class 0 and 1
		warns int
	}{{[]int{90, 0, 10, 0}, 1}, {[]int{85, 5, 8, 2}, 1}, {[]int{88, 2, 3, 7}, 0}} {
		j := &Judge{Task: TaskClassify, Classes: 2, Positive: 1}
		tally := make(Tally, j.Width())
		for k, n := range c.said {
			for range n {
				j.AddClass(tally, []float64{float64(1 - k%2), float64(k % 2)}, k/2)
			}
		}
		if got := j.Evaluation(tally, "test").Warnings(TaskClassify, "accuracy"); len(got) != c.warns {
			t.Errorf("%v: %q", c.said, got)
		}
		e := j.Evaluation(tally, "test")
		for precision, more := range map[float64]int{0.09: 1, 0.2: 0} { // one in ten is positive
			e.Metrics["average_precision"] = precision
			got := e.Warnings(TaskClassify, "average_precision")
			if c.warns == 0 && strings.Count(strings.Join(got, ""), "than guessing") != more {
				t.Errorf("%v, average precision %g: %q", c.said, precision, got)
			}
		}
	}
}

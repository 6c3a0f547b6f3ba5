package nn

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"starling/graph"
)

// Metric is a number by which runs are compared, epochs are chosen and training is stopped.
type Metric struct {
	Name  string // as scikit-learn names it, where it does
	Lower bool   // smaller is better
	Tasks []string
	// Scores: it needs the scores of all vertices that are measured, not counts that add up.
	Scores bool
}

// Metrics are all of them. The first that a task has is the one it has by default.
var Metrics = []Metric{
	{Name: "accuracy", Tasks: []string{TaskClassify}},
	{Name: "micro_f1", Tasks: []string{TaskMultiLabel, TaskClassify}},
	{Name: "r2", Tasks: []string{TaskRegression}},
	{Name: "auc", Tasks: []string{TaskLink, TaskUnsupervised, TaskClassify, TaskMultiLabel}, Scores: true},
	{Name: "average_precision", Tasks: []string{TaskClassify, TaskMultiLabel, TaskLink, TaskUnsupervised}, Scores: true},
	{Name: "balanced_accuracy", Tasks: []string{TaskClassify}},
	{Name: "macro_f1", Tasks: []string{TaskClassify, TaskMultiLabel}},
	{Name: "mcc", Tasks: []string{TaskClassify}},
	{Name: "rmse", Tasks: []string{TaskRegression}, Lower: true},
	{Name: "mae", Tasks: []string{TaskRegression}, Lower: true},
	{Name: "mrr", Tasks: []string{TaskLink, TaskUnsupervised}},
	{Name: "hits@1", Tasks: []string{TaskLink, TaskUnsupervised}},
	{Name: "hits@3", Tasks: []string{TaskLink, TaskUnsupervised}},
	{Name: "hits@10", Tasks: []string{TaskLink, TaskUnsupervised}},
	{Name: "hits@20", Tasks: []string{TaskLink}},
	{Name: "hits@50", Tasks: []string{TaskLink}},
	{Name: "hits@100", Tasks: []string{TaskLink, TaskUnsupervised}},
}

// MetricNames are the names of the metrics that a task has, its default first; "": of all.
func MetricNames(task string) (names []string) {
	for _, m := range Metrics {
		if task == "" || slices.Contains(m.Tasks, task) {
			names = append(names, m.Name)
		}
	}
	return names
}

// FindMetric is the metric of a name, in which - may stand for _.
func FindMetric(name string) (Metric, error) {
	name = strings.ReplaceAll(name, "-", "_")
	for _, m := range Metrics {
		if m.Name == name {
			return m, nil
		}
	}
	return Metric{}, fmt.Errorf("no metric is called %q: there are %s", name, strings.Join(MetricNames(""), ", "))
}

// Better reports whether a value is better than another; one that is no number is not.
func (m Metric) Better(value, than float64) bool {
	if m.Lower {
		return value < than
	}
	return value > than
}

// Worst is what every value is better than.
func (m Metric) Worst() float64 {
	if m.Lower {
		return math.Inf(1)
	}
	return math.Inf(-1)
}

// ClassCounts are what metrics of decided classes are made of, as sums over vertices: how many vertices there are, of
// how many everything is right, and for each class how many of it are right, predicted and known.
//
//	[rows, right, right by class ..., predicted by class ..., known by class ...]
type ClassCounts []float64

// NewClassCounts are counts of no vertices.
func NewClassCounts(classes int) ClassCounts { return make(ClassCounts, 2+3*classes) }

// Classes is how many there are.
func (k ClassCounts) Classes() int { return (len(k) - 2) / 3 }

// Right, Predicted and Known are by class.
func (k ClassCounts) Right() []float64     { return k[2 : 2+k.Classes()] }
func (k ClassCounts) Predicted() []float64 { return k[2+k.Classes() : 2+2*k.Classes()] }
func (k ClassCounts) Known() []float64     { return k[2+2*k.Classes():] }

// Add counts a vertex of a class for which another is predicted, or the same.
func (k ClassCounts) Add(known, predicted int) {
	k[0]++
	k.Known()[known]++
	k.Predicted()[predicted]++
	if known == predicted {
		k[1]++
		k.Right()[known]++
	}
}

// AddMarks counts a vertex that may have several classes.
func (k ClassCounts) AddMarks(known, predicted func(class int) bool) {
	k[0]++
	all := 1.0
	for c := range k.Classes() {
		is, found := known(c), predicted(c)
		if is {
			k.Known()[c]++
		}
		if found {
			k.Predicted()[c]++
		}
		if is && found {
			k.Right()[c]++
		}
		if is != found {
			all = 0
		}
	}
	k[1] += all
}

// Metric is a metric of decided classes as scikit-learn has it; NaN over no vertices.
func (k ClassCounts) Metric(name, task string) float64 {
	switch {
	case k[0] == 0:
		return math.NaN()
	case name == "accuracy":
		return k[1] / k[0]
	case name == "balanced_accuracy":
		return k.meanOver(func(c int) (float64, bool) { return k.Recall(c), k.Known()[c] > 0 })
	case name == "macro_f1":
		return k.meanOver(func(c int) (float64, bool) {
			return k.F1(c), task == TaskMultiLabel || k.Known()[c]+k.Predicted()[c] > 0
		})
	case name == "micro_f1":
		return ratio(2*sumOf(k.Right()), sumOf(k.Predicted())+sumOf(k.Known()))
	case name == "mcc":
		return k.matthews()
	}
	return math.NaN()
}

// Precision, Recall and F1 of a class are 0 where there is nothing to divide by.
func (k ClassCounts) Precision(c int) float64 { return ratio(k.Right()[c], k.Predicted()[c]) }
func (k ClassCounts) Recall(c int) float64    { return ratio(k.Right()[c], k.Known()[c]) }
func (k ClassCounts) F1(c int) float64        { return ratio(2*k.Right()[c], k.Predicted()[c]+k.Known()[c]) }

// matthews is the correlation coefficient of several classes (Gorodkin 2004).
func (k ClassCounts) matthews() float64 {
	n, joint, predicted, known := k[0], 0.0, 0.0, 0.0
	for c := range k.Classes() {
		p, t := k.Predicted()[c], k.Known()[c]
		joint, predicted, known = joint+p*t, predicted+p*p, known+t*t
	}
	return ratio(k[1]*n-joint, math.Sqrt((n*n-predicted)*(n*n-known)))
}

func (k ClassCounts) meanOver(of func(c int) (value float64, counts bool)) float64 {
	sum, n := 0.0, 0.0
	for c := range k.Classes() {
		if x, counts := of(c); counts {
			sum, n = sum+x, n+1
		}
	}
	return ratio(sum, n)
}

func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

func sumOf(list []float64) (sum float64) {
	for _, x := range list {
		sum += x
	}
	return sum
}

// ErrorCounts are what errors of predicted numbers are made of: how many vertices there are, and for each target the
// sums of squared and of absolute errors, of what is known and of its squares.
//
//	[rows, squared ..., absolute ..., known ..., known squared ...]
type ErrorCounts []float64

// NewErrorCounts are counts of no vertices.
func NewErrorCounts(targets int) ErrorCounts { return make(ErrorCounts, 1+4*targets) }

func (k ErrorCounts) targets() int { return (len(k) - 1) / 4 }

// of are the sums of a kind, by target.
func (k ErrorCounts) of(kind int) []float64 { return k[1+kind*k.targets() : 1+(kind+1)*k.targets()] }

// Add counts a vertex.
func (k ErrorCounts) Add(known []float32, predicted []float64) {
	k[0]++
	for i, y := range known {
		apart := predicted[i] - float64(y)
		k.of(0)[i] += apart * apart
		k.of(1)[i] += math.Abs(apart)
		k.of(2)[i] += float64(y)
		k.of(3)[i] += float64(y) * float64(y)
	}
}

// Metric is the root of the mean squared error (rmse), the mean absolute error (mae) or the mean squared error (mse),
// each the mean over targets, or r2 as Regress has it; NaN over no vertices.
func (k ErrorCounts) Metric(name string) float64 {
	if k[0] == 0 || k.targets() == 0 {
		return math.NaN()
	}
	if name == "r2" {
		counts := append([]float64{k[0], sumOf(k.of(0)), sumOf(k.of(3))}, k.of(2)...)
		return Regress{Targets: k.targets()}.Metric(counts)
	}
	sum := 0.0
	for i := range k.targets() {
		switch name {
		case "rmse":
			sum += math.Sqrt(k.of(0)[i] / k[0])
		case "mae":
			sum += k.of(1)[i] / k[0]
		case "mse":
			sum += k.of(0)[i] / k[0]
		default:
			return math.NaN()
		}
	}
	return sum / float64(k.targets())
}

// Positive is the class of a binary task that metrics call positive: the rarer one of the training vertices, and of
// equally many the second.
func Positive(counts []float64) int {
	if len(counts) == 2 && counts[0] < counts[1] {
		return 0
	}
	return 1
}

// RareShare is the share of training vertices below which the rarer class of a binary task makes average precision
// the metric by default: accuracy is above 80 % there without any model.
const RareShare = 0.2

// DefaultMetric is the metric of a task, given how many training vertices of each class there are: see RareShare.
func DefaultMetric(task string, counts []float64) string {
	if n := sumOf(counts); task == TaskClassify && len(counts) == 2 && n > 0 &&
		counts[Positive(counts)] < RareShare*n && counts[Positive(counts)] > 0 {
		return "average_precision"
	}
	return MetricNames(task)[0]
}

// LabelCounts are how many of some vertices have each class; of several labels per vertex too. nil: labels are numbers.
func LabelCounts(l *graph.Labels, vertices []uint32) []float64 {
	if l == nil || l.Kind() == graph.Regression {
		return nil
	}
	counts := make([]float64, l.Classes)
	for _, v := range vertices {
		if l.Multi == nil {
			counts[l.Class[v]]++
			continue
		}
		for c, m := range l.Row(int(v)) {
			if m == 1 {
				counts[c]++
			}
		}
	}
	return counts
}

package nn

import (
	"fmt"
	"math"
	"strconv"
)

// Evaluation is what is found of a model's predictions for a split: a report by class, calibration, and metrics.
type Evaluation struct {
	Split    string `json:"split"` // val where there is no test split
	Vertices int    `json:"vertices"`
	// Metrics are those that can be computed, by name.
	Metrics map[string]float64 `json:"metrics"`
	Classes []ClassReport      `json:"classes,omitempty"`
	// Confusion has the vertices of each class, a row each, by the class that is predicted; nil: they may have
	// several, or there are more than MostConfused classes.
	Confusion [][]int64 `json:"confusion,omitempty"`
	// Calibration compares probabilities with what they should be.
	Calibration *Calibration `json:"calibration,omitempty"`
	// Threshold is the probability from which on a class is predicted: of the positive one of two, or of each of
	// several labels; nil: the most likely class, or ½.
	Threshold []float64 `json:"threshold,omitempty"`
	// Positive is the class of two that metrics call positive; -1: there are not two.
	Positive int `json:"positive"`
}

// ClassReport is a class in a report: scikit-learn's classification_report, with 0 where there is nothing to divide by.
type ClassReport struct {
	Class     int     `json:"class"`
	Name      string  `json:"name"`
	Precision float64 `json:"precision"`
	Recall    float64 `json:"recall"`
	F1        float64 `json:"f1"`
	Support   int64   `json:"support"`
	Predicted int64   `json:"predicted"`
}

// Calibration has the expected calibration error (Guo, Pleiss, Sun and Weinberger 2017): the mean, over predictions,
// of how far the mean probability of their bin is from the share that is right. The probabilities are the positive
// class's of two, the most likely one's of more, or each of several labels'.
type Calibration struct {
	ECE  float64 `json:"ece"`
	Bins []Bin   `json:"bins"` // those that have predictions
}

// Bin has the predictions with probabilities above Low and up to High.
type Bin struct {
	Low         float64 `json:"low"`
	High        float64 `json:"high"`
	Count       int64   `json:"count"`
	Probability float64 `json:"probability"` // the mean
	Share       float64 `json:"share"`       // that is right
}

// MostConfused is how many classes a confusion matrix has at most.
const MostConfused = 64

// calibrationBins is how many bins of equal width there are, as in the paper.
const calibrationBins = 15

// Judge decides and tallies predictions. Tallies of several workers add up.
type Judge struct {
	Task      string
	Classes   int // of regression the targets
	Positive  int // of two classes
	Threshold []float64
}

// Scored are the classes whose scores metrics are of: the positive one of two, else all.
func (j *Judge) Scored() []int {
	if j.Two() {
		return []int{j.Positive}
	}
	all := make([]int, j.Classes)
	for c := range all {
		all[c] = c
	}
	return all
}

// Two reports whether there are two classes, of which each vertex has one.
func (j *Judge) Two() bool { return j.Task == TaskClassify && j.Classes == 2 }

// Score is the log-odds of a class.
func (j *Judge) Score(outputs []float64, class int) float64 {
	if j.Task == TaskMultiLabel {
		return outputs[class]
	}
	return LogOdds(outputs, class)
}

// Class is the class that is predicted.
func (j *Judge) Class(outputs []float64) int {
	if j.Two() && j.Threshold != nil {
		if sigmoid(LogOdds(outputs, j.Positive)) >= j.Threshold[0] {
			return j.Positive
		}
		return 1 - j.Positive
	}
	best := 0
	for c, x := range outputs {
		if x > outputs[best] {
			best = c
		}
	}
	return best
}

// Has reports whether one of several labels is predicted.
func (j *Judge) Has(outputs []float64, class int) bool {
	if j.Threshold == nil {
		return outputs[class] > 0
	}
	return j.Reaches(outputs[class], class)
}

// Reaches reports whether a logit reaches the threshold of one of several labels.
func (j *Judge) Reaches(logit float64, class int) bool { return sigmoid(logit) >= j.Threshold[class] }

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// Tally is counts of classes, a confusion matrix if there are few enough, and bins of calibration: count, probabilities
// and how many are right; of regression it is ErrorCounts.
type Tally []float64

// Width is how many numbers a tally has.
func (j *Judge) Width() int {
	if j.Task == TaskRegression {
		return len(NewErrorCounts(j.Classes))
	}
	return len(NewClassCounts(j.Classes)) + j.confused()*j.confused() + 3*calibrationBins
}

// confused is how many classes the confusion matrix has.
func (j *Judge) confused() int {
	if j.Task != TaskClassify || j.Classes > MostConfused {
		return 0
	}
	return j.Classes
}

func (j *Judge) parts(t Tally) (counts ClassCounts, confusion, bins []float64) {
	at, n := len(NewClassCounts(j.Classes)), j.confused()
	return ClassCounts(t[:at]), t[at : at+n*n], t[at+n*n:]
}

// AddClass tallies a vertex of one class.
func (j *Judge) AddClass(t Tally, outputs []float64, known int) {
	counts, confusion, bins := j.parts(t)
	class := j.Class(outputs)
	counts.Add(known, class)
	if n := j.confused(); n > 0 {
		confusion[known*n+class]++
	}
	shown := class
	if j.Two() {
		shown = j.Positive
	}
	addBin(bins, sigmoid(LogOdds(outputs, shown)), known == shown)
}

// AddMarks tallies a vertex that may have several classes.
func (j *Judge) AddMarks(t Tally, outputs []float64, known func(class int) bool) {
	counts, _, bins := j.parts(t)
	counts.AddMarks(known, func(c int) bool { return j.Has(outputs, c) })
	for c, x := range outputs {
		addBin(bins, sigmoid(x), known(c))
	}
}

// addBin adds a probability. That of none is in the first bin.
func addBin(bins []float64, p float64, right bool) {
	at := min(max(int(math.Ceil(p*calibrationBins))-1, 0), calibrationBins-1)
	bins[3*at]++
	bins[3*at+1] += p
	if right {
		bins[3*at+2]++
	}
}

// Evaluation is what a tally says of a split; nil: of no vertices.
func (j *Judge) Evaluation(t Tally, split string) *Evaluation {
	if t[0] == 0 {
		return nil
	}
	e := &Evaluation{Split: split, Vertices: int(t[0]), Metrics: map[string]float64{}, Threshold: j.Threshold,
		Positive: -1}
	if j.Task == TaskRegression {
		for _, name := range []string{"r2", "rmse", "mae", "mse"} {
			e.add(name, ErrorCounts(t).Metric(name))
		}
		return e
	}
	if j.Two() {
		e.Positive = j.Positive
	}
	counts, confusion, bins := j.parts(t)
	for _, name := range MetricNames(j.Task) {
		e.add(name, counts.Metric(name, j.Task))
	}
	for c := range j.Classes {
		e.Classes = append(e.Classes, ClassReport{Class: c, Name: strconv.Itoa(c), Precision: counts.Precision(c),
			Recall: counts.Recall(c), F1: counts.F1(c), Support: int64(counts.Known()[c]),
			Predicted: int64(counts.Predicted()[c])})
	}
	for n := j.confused(); len(e.Confusion) < n; {
		row := make([]int64, n)
		for c := range row {
			row[c] = int64(confusion[len(e.Confusion)*n+c])
		}
		e.Confusion = append(e.Confusion, row)
	}
	e.Calibration = calibration(bins)
	return e
}

// add sets a metric that is a number.
func (e *Evaluation) add(name string, value float64) {
	if !math.IsNaN(value) && !math.IsInf(value, 0) {
		e.Metrics[name] = value
	}
}

// AddScores adds the metrics of scores, by class.
func (e *Evaluation) AddScores(all []*Scored) {
	for _, name := range []string{"auc", "average_precision"} {
		var values []float64
		for _, s := range all {
			values = append(values, s.Metric(name))
		}
		e.add(name, MeanOf(values))
	}
}

func calibration(bins []float64) *Calibration {
	c, n, apart := &Calibration{}, 0.0, 0.0
	for k := range calibrationBins {
		count := bins[3*k]
		if count == 0 {
			continue
		}
		b := Bin{float64(k) / calibrationBins, float64(k+1) / calibrationBins, int64(count), bins[3*k+1] / count,
			bins[3*k+2] / count}
		c.Bins = append(c.Bins, b)
		n, apart = n+count, apart+count*math.Abs(b.Probability-b.Share)
	}
	c.ECE = ratio(apart, n)
	return c
}

// NameClasses sets what classes are called; those without names are called by their numbers.
func (e *Evaluation) NameClasses(names []string) {
	if e == nil {
		return
	}
	for c := range min(len(names), len(e.Classes)) {
		e.Classes[c].Name = names[c]
	}
}

// majority is the class with the largest support, and its share.
func (e *Evaluation) majority() (class int, share float64) {
	for c := range e.Classes {
		if e.Classes[c].Support > e.Classes[class].Support {
			class = c
		}
	}
	return class, float64(e.Classes[class].Support) / float64(e.Vertices)
}

// Warnings say in words that a model has not learnt what its metric may hide: it predicts one class, or is no better
// than the majority. metric is what the run was judged by.
func (e *Evaluation) Warnings(task, metric string) (list []string) {
	if e == nil {
		return nil
	}
	name := func(class int) string { return e.Classes[class].Name }
	count, only := 0, 0
	for c, r := range e.Classes {
		if r.Predicted > 0 {
			count, only = count+1, c
		}
	}
	of := fmt.Sprintf("the %d %s vertices", e.Vertices, e.Split)
	const remedy = "try --class-weights balanced, another --metric, more epochs, or other features"
	switch {
	case task == TaskMultiLabel && count == 0:
		return []string{fmt.Sprintf("the model predicts no label for any of %s; try --threshold best, or "+
			"--class-weights balanced", of)}
	case task == TaskRegression && e.Metrics["r2"] <= 0:
		return []string{fmt.Sprintf("the model is no better than always predicting the mean (R² %.4f over %s); "+
			"check the features, or try another --lr and more epochs", e.Metrics["r2"], of)}
	case task != TaskClassify || len(e.Classes) < 2:
		return nil
	case count == 1:
		list = append(list, fmt.Sprintf("the model predicts class %s for every one of %s: its accuracy, %.4f, is the share "+
			"of that class; %s", name(only), of, e.Metrics["accuracy"], remedy))
	}
	class, share := e.majority()
	worse := e.Metrics["accuracy"] <= share
	if metric != "accuracy" { // which pays with accuracy for rare classes that are found
		worse = e.Metrics["mcc"] <= 0
	}
	if worse && count > 1 && share < 1 {
		list = append(list, fmt.Sprintf("the model is no better than always predicting class %s, which %.4f of %s have: "+
			"its accuracy is %.4f; %s", name(class), share, of, e.Metrics["accuracy"], remedy))
	} else if precision, guessed := e.guesses(); guessed && count > 1 {
		list = append(list, fmt.Sprintf("the model is no better than guessing: its average precision is %.4f, and class "+
			"%s is %.4f of %s; %s", precision, name(e.Positive), e.positiveShare(), of, remedy))
	}
	return list
}

// guesses reports whether the positive one of two classes is ranked no better than at random, by average precision.
func (e *Evaluation) guesses() (precision float64, guessed bool) {
	precision, known := e.Metrics["average_precision"]
	return precision, known && e.Positive >= 0 && precision <= e.positiveShare()
}

// positiveShare is how many vertices the positive class has. REQUIRES: there is one.
func (e *Evaluation) positiveShare() float64 {
	return float64(e.Classes[e.Positive].Support) / float64(e.Vertices)
}

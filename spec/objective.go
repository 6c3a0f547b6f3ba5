package spec

import (
	"encoding/csv"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"starling/event"
	"starling/graph"
	"starling/nn"
	"starling/train"
)

// Objective is what a run learns and is judged by, beyond its task: what labels count in the loss, the metric, and from
// which probability on a class is predicted.
type Objective struct {
	Loss         string `json:"loss"`
	ClassWeights string `json:"class_weights"`
	Metric       string `json:"metric"`
	Threshold    string `json:"threshold"`
	// StandardizeTargets has regressions learn targets of mean 0 and deviation 1.
	StandardizeTargets Toggle `json:"standardize_targets" auto:"zero"`
}

func defaultObjective() Objective {
	return Objective{Loss: "auto", ClassWeights: "none", Metric: "auto", Threshold: "auto"}
}

func (o *Objective) Validate() error {
	if err := checkFields(o); err != nil {
		return err
	}
	if _, err := o.focus(); err != nil {
		return err
	}
	if _, err := o.weightList(); err != nil {
		return err
	}
	_, err := o.threshold()
	return err
}

// focalGamma is the focus of --loss focal: that of the paper's experiments.
const focalGamma = 2

// mostGamma bounds the focus: beyond it gradients of all but lost labels vanish.
const mostGamma = 100

// focus is the gamma of the loss; 0: cross-entropy.
func (o *Objective) focus() (float64, error) {
	name, text, given := strings.Cut(o.Loss, ":")
	switch {
	case (name == "auto" || name == "cross-entropy") && !given:
		return 0, nil
	case name != "focal":
		return 0, NotOneOf("--loss", o.Loss, []string{"auto", "cross-entropy", "focal", "focal:GAMMA"})
	case !given:
		return focalGamma, nil
	}
	gamma, err := strconv.ParseFloat(text, 64)
	if err != nil || !(gamma >= 0 && gamma <= mostGamma) {
		return 0, Mistake("--loss", o.Loss, fmt.Sprintf("focal: and a number from 0 to %d", mostGamma),
			"for example focal:2")
	}
	return gamma, nil
}

// weightList are the weights of classes where they are numbers by now; nil: they are not.
func (o *Objective) weightList() (list []float64, err error) {
	if o.ClassWeights == "none" || o.ClassWeights == "balanced" || !strings.Contains(o.ClassWeights, ",") {
		return nil, nil
	}
	for text := range strings.SplitSeq(o.ClassWeights, ",") {
		w, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
		if err != nil && len(list) == 0 {
			return nil, nil // a file with a comma in its name
		}
		if err != nil || !validWeight(w) {
			return nil, Mistake("--class-weights", text, "a weight above 0 for each class, as in 1,20", "")
		}
		list = append(list, w)
	}
	return list, nil
}

func validWeight(w float64) bool { return w > 0 && w <= 1e9 }

// threshold is a given one; 0: none is.
func (o *Objective) threshold() (float64, error) {
	if o.Threshold == "auto" || o.Threshold == "best" {
		return 0, nil
	}
	x, err := strconv.ParseFloat(o.Threshold, 64)
	if err != nil || !(x > 0 && x < 1) {
		return 0, Mistake("--threshold", quoted(o.Threshold), "auto, best, or a probability above 0 and below 1", "")
	}
	return x, nil
}

// objectiveEffects are settings that runs without classes do not have.
func (s *Spec) objectiveEffects() []effect {
	o, vertices := &s.Objective, !s.LearnsPairs()
	const reason = "only labels of vertices have classes: leave it out with --task link and unsupervised"
	return []effect{
		{"--class-weights", o.ClassWeights != "none", vertices, reason},
		{"--loss", o.Loss != "auto", vertices, reason},
		{"--threshold", o.Threshold != "auto", vertices, reason},
	}
}

// forLabels refuses what the labels are not for, and reads the weights of classes.
func (s *Spec) forLabels(data *graph.Meta) error {
	o := &s.Objective
	if o.StandardizeTargets == ToggleAuto {
		o.StandardizeTargets = toggled(s.Task == nn.TaskRegression)
	}
	if o.StandardizeTargets == On && s.Task != nn.TaskRegression {
		return Mistake("--standardize-targets", "true for --task "+s.Task, "labels that are numbers", "leave it out")
	}
	if o.Metric != "auto" {
		if names := nn.MetricNames(s.Task); !slices.Contains(names, o.Metric) {
			return Mistake("--metric", o.Metric, "one of "+strings.Join(names, ", "), "for --task "+s.Task)
		}
	}
	if s.LearnsPairs() {
		if (o.Metric == "hits@20" || o.Metric == "hits@50") && !s.Pairs.Listed() {
			return Mistake("--metric", o.Metric+" without a file of candidates",
				"--val-candidates FILE with edge and edge_neg", "or give --metric hits@10")
		}
		if o.Metric == "hits@100" && !s.Pairs.Listed() && s.Pairs.RankNegatives < 100 {
			return Mistake("--metric", fmt.Sprintf("hits@100 with --rank-negatives %d", s.Pairs.RankNegatives),
				"100 or more negatives to be ranked among", "give --rank-negatives 100, or --metric hits@10")
		}
		return nil
	}
	const fix = "leave it out"
	if s.Task == nn.TaskRegression {
		for flag, given := range map[string]bool{"--loss": o.Loss != "auto",
			"--class-weights": o.ClassWeights != "none", "--threshold": o.Threshold != "auto"} {
			if given {
				return Mistake(flag, "it for labels that are numbers", "labels with classes", fix)
			}
		}
		return nil
	}
	if o.Threshold != "auto" && s.Task == nn.TaskClassify && data.Classes != 2 {
		return Mistake("--threshold", fmt.Sprintf("%s for %s, of which the most likely is predicted", o.Threshold,
			event.Counted(data.Classes, "class")), "2 classes, or several labels per vertex", fix)
	}
	return o.readWeights(data)
}

// readWeights replaces a file of weights by what it has, in the order of the classes: workers may be elsewhere.
func (o *Objective) readWeights(data *graph.Meta) error {
	list, err := o.weightList()
	if err != nil || o.ClassWeights == "none" || o.ClassWeights == "balanced" {
		return err
	}
	if list == nil {
		if list, err = readClassWeights(o.ClassWeights, data); err != nil {
			return err
		}
		var text []string
		for _, w := range list {
			text = append(text, strconv.FormatFloat(w, 'g', -1, 64))
		}
		o.ClassWeights = strings.Join(text, ",")
	}
	if len(list) != data.Classes {
		return Mistake("--class-weights", event.Counted(len(list), "weight"),
			fmt.Sprintf("%d, one for each class of %s", data.Classes, data.Name), "")
	}
	return nil
}

// maxWeightsFile bounds a file of weights: 2^20 classes of 64 bytes.
const maxWeightsFile = 64 << 20

// readClassWeights reads a file with a class and its weight on each line, separated by a comma, a tab or spaces.
func readClassWeights(path string, data *graph.Meta) ([]float64, error) {
	const want = "balanced, none, or a file with a class and its weight on each line"
	b, err := ReadFile("--class-weights", path, maxWeightsFile+1, want, "")
	if err != nil {
		return nil, err
	}
	if len(b) > maxWeightsFile {
		return nil, Mistake("--class-weights", path, "at most 64 MiB", "")
	}
	list := make([]float64, data.Classes)
	for i, line := range strings.Split(strings.TrimPrefix(string(b), "\ufeff"), "\n") {
		bad := func(found, want string) ([]float64, error) {
			return nil, &graph.InputError{File: path, Field: fmt.Sprintf("line %d", i+1), Found: found, Want: want}
		}
		name, weight, ok := cutWeight(strings.TrimRight(line, "\r"))
		if strings.TrimSpace(line) == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if !ok {
			return bad(fmt.Sprintf("%.60q", line), "a class and its weight")
		}
		w, err := strconv.ParseFloat(weight, 64)
		c := classOf(name, data)
		switch {
		case err != nil && i == 0 && c < 0: // a header
			continue
		case err != nil || !validWeight(w):
			return bad(fmt.Sprintf("weight %.60q", weight), "a number above 0")
		case c < 0:
			return bad(fmt.Sprintf("class %.60q", name), "a class of "+data.Name)
		case list[c] != 0:
			return bad(fmt.Sprintf("class %.60q again", name), "each class once")
		}
		list[c] = w
	}
	for c, w := range list {
		if w == 0 {
			return nil, &graph.InputError{File: path,
				Found: "no weight for class " + graph.ClassName(data.ClassNames, c),
				Want:  fmt.Sprintf("one for each of %s of %s", event.Counted(data.Classes, "class"), data.Name)}
		}
	}
	return list, nil
}

// cutWeight is the class and the weight of a line. Names may have spaces, commas in quotes.
func cutWeight(line string) (name, weight string, ok bool) {
	for _, comma := range []rune{',', '\t', ';'} {
		if r := csv.NewReader(strings.NewReader(line)); strings.ContainsRune(line, comma) {
			r.Comma = comma
			if fields, err := r.Read(); err == nil && len(fields) == 2 {
				return strings.TrimSpace(fields[0]), strings.TrimSpace(fields[1]), true
			}
		}
	}
	line = strings.TrimSpace(line)
	at := strings.LastIndexAny(line, " \t")
	if at < 0 {
		return "", "", false
	}
	return strings.TrimSpace(line[:at]), line[at+1:], true
}

// classOf is the class of a name, or of a number where classes have no names; -1: none.
func classOf(name string, data *graph.Meta) int {
	if len(data.ClassNames) > 0 {
		return slices.Index(data.ClassNames, name)
	}
	c, err := strconv.Atoi(name)
	if err != nil || c < 0 || c >= data.Classes {
		return -1
	}
	return c
}

// ForCounts sets a metric of auto by how many training vertices of each class there are.
func (s *Spec) ForCounts(counts []float64) {
	if s.Objective.Metric == "auto" && !s.LearnsPairs() {
		s.Objective.Metric = nn.DefaultMetric(s.Task, counts)
	}
}

// objective adds what is learnt and measured to the options of a run.
func (s *Spec) objective(opt *train.Options) (err error) {
	o := &s.Objective
	if o.Metric != "auto" {
		opt.Metric = o.Metric
	}
	opt.Balanced = o.ClassWeights == "balanced"
	if opt.Weights, err = o.weightList(); err != nil {
		return err
	}
	if opt.Focus, err = o.focus(); err != nil {
		return err
	}
	opt.Threshold, err = o.threshold()
	if o.Threshold == "best" || o.Threshold == "auto" && s.thresholdMatters() {
		opt.Threshold = math.NaN()
	}
	return err
}

// thresholdMatters reports whether a threshold is chosen where none is asked for: of two classes, where runs are not
// compared by accuracy.
func (s *Spec) thresholdMatters() bool {
	return s.Task == nn.TaskClassify && s.Objective.Metric != "auto" && s.Objective.Metric != "accuracy"
}

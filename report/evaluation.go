package report

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"starling/event"
	"starling/spec"
	"starling/train"
)

// fewClasses is how many classes a short report has a line each for; of more it has the worst ones.
const fewClasses = 5

// EvaluationText is the report by class of predictions, as tables. A short one has the classes alone, of many those
// that are recognized worst.
func EvaluationText(e *train.Evaluation, short bool) string {
	if e == nil || len(e.Classes) == 0 && short {
		return ""
	}
	var b strings.Builder
	if len(e.Classes) > 0 {
		writeClasses(&b, e, short)
	}
	if short {
		return b.String()
	}
	b.WriteString("\n")
	writeMetrics(&b, e)
	writeConfusion(&b, e)
	writeCalibration(&b, e)
	return b.String()
}

// Classes is the short report of a run; "": it has none.
func (r *Run) Classes() string { return EvaluationText(r.Evaluation, true) }

func writeClasses(b *strings.Builder, e *train.Evaluation, short bool) {
	list, worst := slices.Clone(e.Classes), ""
	if short && len(list) > 2*fewClasses {
		list = slices.DeleteFunc(list, func(c train.ClassReport) bool { return c.Support == 0 })
		slices.SortStableFunc(list, func(a, b train.ClassReport) int { return cmp.Compare(a.F1, b.F1) })
		list = list[:min(len(list), fewClasses)]
		worst = fmt.Sprintf(", the %d of lowest F1 among %d", len(list), len(e.Classes))
	}
	fmt.Fprintf(b, "classes of %s%s%s\n", event.Counted(e.Vertices, e.Split+" vertex"), worst, decidedBy(e))
	lines := [][]string{{"class", "precision", "recall", "F1", "support"}}
	for _, c := range list {
		lines = append(lines, []string{c.Name, four(c.Precision), four(c.Recall), four(c.F1), event.Count(c.Support)})
	}
	writeColumns(b, lines)
}

// decidedBy says from which probability on classes are predicted, where it is not as usual.
func decidedBy(e *train.Evaluation) string {
	switch {
	case len(e.Threshold) == 0:
		return ""
	case e.Positive >= 0:
		return fmt.Sprintf("; %s is predicted from a probability of %s on", e.Classes[e.Positive].Name,
			four(e.Threshold[0]))
	}
	return fmt.Sprintf("; each is predicted from a threshold of its own on (%s to %s)",
		four(slices.Min(e.Threshold)), four(slices.Max(e.Threshold)))
}

func four(x float64) string { return fmt.Sprintf("%.4f", x) }

// metricLines are the metrics, by name.
func metricLines(e *train.Evaluation) (lines [][]string) {
	for _, name := range slices.Sorted(maps.Keys(e.Metrics)) {
		lines = append(lines, []string{name, four(e.Metrics[name])})
	}
	return lines
}

func writeMetrics(b *strings.Builder, e *train.Evaluation) {
	writeColumns(b, append([][]string{{"metric", e.Split}}, metricLines(e)...))
}

// confusionLines are the confusion matrix with its heads.
func confusionLines(e *train.Evaluation) [][]string {
	head := []string{"class \\ predicted"}
	for _, c := range e.Classes {
		head = append(head, c.Name)
	}
	lines := [][]string{head}
	for c, row := range e.Confusion {
		line := []string{e.Classes[c].Name}
		for _, n := range row {
			line = append(line, event.Count(n))
		}
		lines = append(lines, line)
	}
	return lines
}

func writeConfusion(b *strings.Builder, e *train.Evaluation) {
	if e.Confusion != nil {
		b.WriteString("\n")
		writeColumns(b, confusionLines(e))
	}
}

// reliabilityLines are the bins of calibration.
func reliabilityLines(e *train.Evaluation) [][]string {
	lines := [][]string{{"probability", "predictions", "mean probability", "share that is right"}}
	for _, bin := range e.Calibration.Bins {
		lines = append(lines, []string{fmt.Sprintf("%.2f to %.2f", bin.Low, bin.High), event.Count(bin.Count),
			four(bin.Probability), four(bin.Share)})
	}
	return lines
}

func writeCalibration(b *strings.Builder, e *train.Evaluation) {
	if e.Calibration == nil {
		return
	}
	fmt.Fprintf(b, "\nexpected calibration error %s\n", four(e.Calibration.ECE))
	writeColumns(b, reliabilityLines(e))
}

// WriteEvaluation writes the report to a file: text, .json or .html; or for "-" as text to stdout.
func WriteEvaluation(e *train.Evaluation, title, path string, stdout io.Writer) error {
	switch {
	case path == "-":
		_, err := io.WriteString(stdout, EvaluationText(e, false))
		return err
	case filepath.Ext(path) == ".html":
		return writeFile(path, EvaluationHTML(e, title))
	case filepath.Ext(path) == ".json":
		b, err := json.MarshalIndent(e, "", "  ")
		if err != nil {
			return err
		}
		return writeFile(path, append(b, '\n'))
	}
	return writeFile(path, []byte(EvaluationText(e, false)))
}

// CheckEvaluationFile refuses a file that WriteEvaluation does not write.
func CheckEvaluationFile(flag, path string) error {
	if path == "-" || slices.Contains([]string{".txt", ".json", ".html"}, filepath.Ext(path)) {
		return nil
	}
	return spec.Mistake(flag, path, "- for the terminal, or a file that ends in .txt, .json or .html", "")
}

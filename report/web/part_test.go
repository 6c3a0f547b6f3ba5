package web

import (
	"bytes"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"starling/event"
	"starling/report"
)

// TestChartsAreThePages: the charts for other documents are drawn as those of the page of the same run, to the letter,
// and their style names nothing outside.
func TestChartsAreThePages(t *testing.T) {
	t.Parallel()
	r, nan := NewRun(""), report.Number(math.NaN())
	result := &report.Run{Metric: "macro_f1"}
	r.Take(event.Started{Metric: "macro_f1", Epochs: 5}, time.Now())
	for e := range 5 {
		x := event.Epoch{Epoch: e, Loss: loss(e), Train: math.NaN(), Val: math.NaN(), Test: math.NaN()}
		if x.Measured = e%2 == 0; x.Measured {
			x.Train, x.Val = 0.5+float64(e)/10, 0.4
			result.Measured = append(result.Measured, e)
			result.TrainAccuracy = append(result.TrainAccuracy, report.Number(x.Train))
			result.ValAccuracy = append(result.ValAccuracy, 0.4)
			result.TestAccuracies = append(result.TestAccuracies, nan)
		}
		result.Loss = append(result.Loss, report.Number(x.Loss))
		r.Take(x, time.Now())
	}
	figure := regexp.MustCompile(`(?s)<figure>.*?</figure>`)
	part := Charts(result)
	want, got := figure.FindAll(Page(r), 2), figure.FindAll(part, -1)
	if len(got) != 2 || !bytes.Equal(bytes.Join(got, nil), bytes.Join(want, nil)) {
		t.Errorf("the charts are\n%s\nwant\n%s", bytes.Join(got, nil), bytes.Join(want, nil))
	}
	_, style, _ := strings.Cut(string(part), "<style>")
	style, _, _ = strings.Cut(style, "</style>")
	for _, m := range regexp.MustCompile(`([^{}]+)\{[^{}]*\}`).FindAllStringSubmatch(style, -1) {
		for s := range strings.SplitSeq(m[1], ",") {
			if !strings.Contains(s, "."+partClass) {
				t.Errorf("a style for all of a document: %q", s)
			}
		}
	}
	for _, class := range []string{".plot .y span", ".curves", ".grid", ".c2", ".key svg"} {
		if !strings.Contains(style, "."+partClass+" "+class+" {") {
			t.Errorf("no style of %s in %s", class, style)
		}
	}
}

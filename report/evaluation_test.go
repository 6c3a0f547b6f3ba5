package report

import (
	"fmt"
	"html"
	"strings"
	"testing"

	"starling/train"
)

// hostile is a name that would be markup, of a class and of whatever else data may name.
const hostile = `</td><script>alert(1)</script><img src=//x onerror=alert(1)>`

// classesOf are n classes; the F1 of class c is c/n, and the last but one is the largest.
func classesOf(n int) *train.Evaluation {
	e := &train.Evaluation{Split: "test", Vertices: n}
	for c := range n {
		e.Classes = append(e.Classes, train.ClassReport{Name: fmt.Sprint(hostile, c), Support: 3,
			F1: float64(c) / float64(n)})
	}
	e.Classes[0].Support, e.Classes[n-2].Support = 0, 1000000
	return e
}

// TestPageOfManyClasses: of 10,000 classes whose names are markup a page has the worst and the largest, as text, and
// says how many it leaves out; of few it has all, in their order.
func TestPageOfManyClasses(t *testing.T) {
	for _, page := range []string{string(EvaluationHTML(classesOf(10000), hostile)),
		string((&Run{Evaluation: classesOf(10000)}).Sections())} {
		if len(page) > 100<<10 || strings.Contains(page, "<img") || strings.Contains(page, "<script>alert") {
			t.Errorf("%d bytes:\n%.3000s", len(page), page)
		}
		text := html.UnescapeString(page)
		for want, times := range map[string]int{hostile + "1<": 1, hostile + "20<": 1, hostile + "0<": 0,
			hostile + "9998<": 1, "1,000,000": 1, "Classes of lowest F1": 1, "Largest of the other classes": 1,
			"9,960 of 10,000 are left out": 1} {
			if n := strings.Count(text, want); n != times {
				t.Errorf("%q is %d times there, want %d", want, n, times)
			}
		}
	}
	page := html.UnescapeString(string(EvaluationHTML(classesOf(mostClasses), "few")))
	for c := range mostClasses {
		if !strings.Contains(page, fmt.Sprint(hostile, c, "<")) {
			t.Errorf("class %d of %d is left out", c, mostClasses)
		}
	}
	if strings.Contains(page, "left out") {
		t.Error("a page with all classes says that some are left out")
	}
}

package predict

import (
	"html"
	"strings"
	"testing"

	"starling/serve"
)

// TestExplanationsNameNothingAsMarkup: vertices, types, relations, columns and classes are text on the page, which has
// the style of all pages.
func TestExplanationsNameNothingAsMarkup(t *testing.T) {
	const evil = `"><script>alert(1)</script><img src=//x onerror=alert(1)>`
	e := &Explained{Run: evil, Dataset: evil, Explanations: []*serve.Explanation{{Vertex: evil, Type: evil,
		Method: evil, Class: evil, Values: []float64{0.25, 0.75}, Kept: 2,
		Edges: []serve.ExplainedEdge{{Source: evil + "1", SourceType: evil, Relation: evil, Target: evil,
			TargetType: evil, Score: 0.5}, {Source: evil + "2", Target: evil, Score: -0.25}},
		Near:    []serve.ExplainedVertex{{Vertex: evil + "1", Type: evil, Hops: 1}, {Vertex: evil + "2", Hops: 2}},
		Columns: []serve.ExplainedColumn{{Column: evil, Type: evil, Score: 1}}}}}
	var b strings.Builder
	if err := e.page(&b); err != nil {
		t.Fatal(err)
	}
	page := b.String()
	if strings.Count(page, "<script") != 1 || strings.Contains(page, "<img") || strings.Contains(page, "ZgotmplZ") {
		t.Error(page)
	}
	for _, want := range []string{"prefers-color-scheme: dark", `class="sortable"`, `class="against"`, `class="centre"`,
		"(" + evil + ")", "0.5000", "-0.2500"} {
		if !strings.Contains(html.UnescapeString(page), want) {
			t.Errorf("no %q in\n%s", want, page)
		}
	}
}

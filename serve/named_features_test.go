package serve

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"starling/graph"
)

// TestNamedFeatures: cells of a row become the numbers that importing makes of them, and others are refused.
func TestNamedFeatures(t *testing.T) {
	p := graph.NewPreparation()
	p.Types = []graph.PrepType{{Features: []graph.PrepColumn{
		{Column: "age", Width: 1, Fill: []float32{30}, Mean: []float64{30}, Deviation: []float64{2}},
		{Column: "city", Width: 2, Words: []string{"Oslo", "Rome"}},
		{Column: "emb", Width: 2},
		{Column: "year", Width: 2, Words: []string{"1999", "2001"}},
	}}}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string][]float32{
		`{"age": 34, "city": "Rome", "emb": [1, 2], "year": 2001}`:   {34, 0, 1, 1, 2, 0, 1},
		`{"city": "Lima", "emb": [0.5, -1], "year": "1999"}`:         {30, 0, 0, 0.5, -1, 1, 0},
		`{"age": null, "city": null, "emb": [0, 0], "year": "2000"}`: {30, 0, 0, 0, 0, 0, 0},
		`[1, 2, 3, 4, 5, 6, 7]`:                                      {1, 2, 3, 4, 5, 6, 7},
	} {
		got, err := cellsOf(body, p)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("%s: %v, %v", body, got, err)
		}
	}
	for body, want := range map[string]string{
		`{"age": 34, "emb": [1]}`:           `features.emb: found 1, want a list of 2 numbers`,
		`{"age": 34}`:                       `features.emb: found nothing, want a list of 2 numbers`,
		`{"age": "old", "emb": [1, 2]}`:     `features.age: found "old", want a number`,
		`{"agee": 34, "emb": [1, 2]}`:       `found "agee", want columns of the table: age, city, emb`,
		`{"age": 1e200, "emb": [1, 2]}`:     `float32`,
		`{"city": ["Oslo"], "emb": [1, 2]}`: `want a word`,
		`{"age": 1e999, "emb": [1, 2]}`:     `features.age`,
		`{"age": [34, 35], "emb": [1, 2]}`:  `features.age`,
	} {
		if got, err := cellsOf(body, p); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", body, got, err)
		}
	}
	if _, err := cellsOf(`{"age": 1}`, nil); err == nil || !strings.Contains(err.Error(), "was not read from tables") {
		t.Error(err)
	}
}

func cellsOf(body string, p *graph.Preparation) ([]float32, error) {
	f := newFeatures{list: list[number]{field: "features", most: 100}}
	if err := json.Unmarshal([]byte(body), &f); err != nil {
		return nil, err
	}
	return f.numbers(p, "")
}

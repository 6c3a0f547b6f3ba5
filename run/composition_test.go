package run

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"starling/graph"
	"starling/spec/composition"
)

var update = flag.Bool("update", false, "write docs/composition.md anew")

// TestCompositionPage: docs/composition.md is what validation and descriptors say, and what they refuse
// says what to do.
func TestCompositionPage(t *testing.T) {
	page := filepath.Join("..", "docs", "composition.md")
	dims := composition.Dimensions()
	want := composition.Page(dims)
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, _ := os.ReadFile(page); string(got) != want {
		t.Errorf("%s is out of date: go test ./run -run TestCompositionPage -update", page)
	}
	for a := range dims {
		composition.Each(dims, 0, a, func(p composition.Pair) {
			if err := p.Refused(dims); err != nil && a > 0 {
				if in := (*graph.InputError)(nil); !errors.As(err, &in) || in.Fix == "" {
					t.Errorf("%s %s with %s %s: %v, which does not say what to do", dims[p.A].Name,
						dims[p.A].Values[p.U].Name, dims[p.B].Name, dims[p.B].Values[p.V].Name, err)
				}
			}
		})
	}
}

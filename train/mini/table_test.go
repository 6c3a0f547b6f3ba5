package mini

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"starling/train"
	_ "starling/train/full" // has strategies of the table
	"starling/train/traintest"
)

// row is one of the table of strategies in the docs.
var row = regexp.MustCompile("^\\| \\[`([^`]*)`\\]\\(([^)]*)\\) \\| (.*) \\| (.*) \\| (.*) \\|$")

// TestTableOfStrategies: the docs' table says of every strategy what its descriptor does.
// A strategy may have more rows, of its settings, below its own.
func TestTableOfStrategies(t *testing.T) {
	const page = "docs/strategies/README.md"
	b, err := os.ReadFile(filepath.Join(traintest.Root(t), page))
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, line := range strings.Split(string(b), "\n") {
		m := row.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		d := train.Find(m[1])
		if d == nil {
			t.Errorf("%s has a row of %s, which there is not: remove it", page, m[1])
			continue
		}
		if _, err := os.Stat(filepath.Join(traintest.Root(t), "docs/strategies", m[2])); err != nil {
			t.Errorf("%s, row of %s: %v", page, m[1], err)
		}
		if last := len(order) - 1; last >= 0 && order[last] == d.Name {
			continue // of a setting
		}
		order = append(order, d.Name)
		if want := fmt.Sprintf("| [`%s`](%s) | %s | %s | %s |", m[1], m[2], d.Exact, d.Sends, d.UseWhen); line != want {
			t.Errorf("%s and the descriptor of %s differ. Let the row be\n%s\n"+
				"or change Exact, Sends and UseWhen in train/full. It is\n%s", page, d.Name, want, line)
		}
	}
	if !slices.Equal(order, train.Names()) {
		t.Errorf("%s has rows of %v; let there be one of each strategy, in the order of the list: %v", page, order,
			train.Names())
	}
}

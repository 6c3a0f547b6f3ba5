package lint

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// columns is the most a line of Go or of a page may have; a tab counts four.
const columns = 120

// narrowRooms are the packages and pages whose lines keep to columns. A package is added here
// once it does; a page by its path.
var narrowRooms = []string{
	"rng", "disk", "event", "coflow", "collective", "wire/wiretest", "partition/multilevel", "train", "exchange",
	"cost", "spec", "report", "bench", "watch", "internal", "deploy",
	"README.md", "CHANGELOG.md", "docs/strategies",
	"docs/benchmarks.md", "docs/compare.md", "docs/data.md", "docs/design.md", "docs/export.md", "docs/failures.md",
	"docs/glossary.md", "docs/launchers.md", "docs/memory.md", "docs/mini-batches.md", "docs/mpi.md",
	"docs/partitioning.md", "docs/security.md", "docs/serving.md", "docs/tasks.md", "docs/training-on-many-workers.md",
	"docs/watching.md", "docs/wire.md", "netsim", "docs/simulator.md",
}

// wideLines are the lines of a text that have more than columns, by number from 1. Lines that
// cannot be broken are left out: struct tags, and in pages the output of programs, which is
// indented, and a table's row.
func wideLines(path, text string) (wide []int) {
	page := strings.HasSuffix(path, ".md")
	for i, line := range strings.Split(text, "\n") {
		if page && (strings.HasPrefix(line, "    ") || strings.HasPrefix(line, "|")) || !page && tagged(line) {
			continue
		}
		if utf8.RuneCountInString(strings.ReplaceAll(line, "\t", "    ")) > columns {
			wide = append(wide, i+1)
		}
	}
	return wide
}

// tagged tells whether a line of Go ends in a struct tag.
func tagged(line string) bool {
	return strings.HasSuffix(line, "\"`") && strings.Contains(line, " `json:\"")
}

func narrow(path string) bool {
	return slices.ContainsFunc(narrowRooms, func(room string) bool {
		return path == room || strings.HasPrefix(path, room+"/")
	})
}

// TestColumns: lines of narrowRooms are not wider than a reader's window.
func TestColumns(t *testing.T) {
	root, _ := filepath.Abs("../..")
	check := func(path string) {
		if !narrow(path) {
			return
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range wideLines(path, string(text)) {
			t.Errorf("%s:%d: more than %d columns", path, line, columns)
		}
	}
	sources(t, check)
	walk(t, ".md", check)
}

func TestWideLinesAreFound(t *testing.T) {
	wide, tag := strings.Repeat("é", columns+1), "\tA int `json:\"a\" help:\""+strings.Repeat("x", columns)+"\"`"
	text := wide[2:] + "\n" + wide + "\n    " + wide + "\n| " + wide + "\n" + tag
	if got := wideLines("a.md", text); !slices.Equal(got, []int{2, 5}) {
		t.Error(got)
	}
	if got := wideLines("a.go", text); !slices.Equal(got, []int{2, 3, 4}) {
		t.Error(got)
	}
	if got := wideLines("a.go", "\t"+wide[10:]); len(got) != 0 {
		t.Error(got)
	}
}

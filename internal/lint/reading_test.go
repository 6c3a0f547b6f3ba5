package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// readingOrder is the files that a package comment lists after "A reader finds, in this order:", without .go.
func readingOrder(comment string) (files []string) {
	_, list, found := strings.Cut(comment, "// A reader finds, in this order:\n//\n")
	if !found {
		return nil
	}
	for line := range strings.SplitSeq(list, "\n") {
		text, ok := strings.CutPrefix(line, "//\t")
		if !ok {
			break
		}
		names := regexp.MustCompile(`\s{2,}`).Split(text, 2)[0]
		for name := range strings.SplitSeq(names, ",") {
			if name = strings.TrimSpace(name); name != "" {
				files = append(files, name)
			}
		}
	}
	return files
}

// TestReadingOrders: a package comment that lists files in the order to read them lists all of them.
func TestReadingOrders(t *testing.T) {
	files, orders := map[string][]string{}, map[string][]string{}
	root, _ := filepath.Abs("../..")
	sources(t, func(path string) {
		dir, name := filepath.ToSlash(filepath.Dir(path)), strings.TrimSuffix(filepath.Base(path), ".go")
		switch {
		case strings.HasSuffix(name, "_test"):
		case name == "doc":
			text, err := os.ReadFile(filepath.Join(root, path))
			if err != nil {
				t.Fatal(err)
			}
			orders[dir] = readingOrder(string(text))
		default:
			files[dir] = append(files[dir], name)
		}
	})
	checked := 0
	for dir, order := range orders {
		if order == nil {
			continue
		}
		checked++
		slices.Sort(order)
		slices.Sort(files[dir])
		if !slices.Equal(order, files[dir]) {
			t.Errorf("%s/doc.go lists %v, want %v", dir, order, files[dir])
		}
	}
	if checked < 8 {
		t.Errorf("only %d reading orders were found", checked)
	}
}

func TestReadingOrdersAreFound(t *testing.T) {
	const comment = "// Package a is.\n//\n// A reader finds, in this order:\n//\n" +
		"//\tone, two,   a few\n//\tthree       of them\n//\n// More.\npackage a\n"
	if got := readingOrder(comment); !slices.Equal(got, []string{"one", "two", "three"}) {
		t.Errorf("%q", got)
	}
}

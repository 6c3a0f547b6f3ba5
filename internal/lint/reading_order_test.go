package lint

import (
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var orderSpan = regexp.MustCompile("`([^`]*→[^`]*)`")

// unread returns the rooms that a page's reading order leaves out. A room inside another is read with it.
func unread(page string, rooms []string) (left []string) {
	var order []string
	for _, m := range orderSpan.FindAllStringSubmatch(page, -1) {
		for _, room := range strings.Split(m[1], "→") {
			order = append(order, strings.TrimSpace(room))
		}
	}
	for _, room := range rooms {
		if !slices.Contains(order, room) && !slices.Contains(order, path.Dir(room)) {
			left = append(left, room)
		}
	}
	slices.Sort(left)
	return left
}

// TestReadingOrderIsComplete: docs/design.md says when to read every room, apart from those for tests and examples.
func TestReadingOrderIsComplete(t *testing.T) {
	root, _ := filepath.Abs("../..")
	text, err := os.ReadFile(filepath.Join(root, "docs/design.md"))
	if err != nil {
		t.Fatal(err)
	}
	var built []string
	for room := range rooms {
		_, err := os.Stat(filepath.Join(root, room))
		if err == nil && !strings.HasPrefix(room, "internal/") && room != "examples" {
			built = append(built, room)
		}
	}
	for _, room := range unread(string(text), built) {
		t.Errorf("the reading order of docs/design.md leaves out %s", room)
	}
}

func TestUnreadRoomsAreFound(t *testing.T) {
	page := "Read `doc.go`, then `graph →\ntensor → nn`; `wire` last."
	if got := strings.Join(unread(page, []string{"graph", "nn", "wire", "tensor/cpu"}), " "); got != "wire" {
		t.Error(got)
	}
}

package lint

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// countedRooms are the rooms whose messages show counts that may be one.
var countedRooms = []string{"graph", "spec", "partition", "wire", "dataset"}

// plainCount is a count and a noun in the plural, whatever the count. After a limit, which is never one, it is right.
var plainCount = regexp.MustCompile(`(most |more than |above |least |1 to |longer than )?%d (vertices|classes|` +
	`entries|(edge|row|column|part|worker|feature|file|byte|label|line|relation|number|name|value|rank|layer|head|` +
	`mark|offset|weight|folder|call|field)s)\b`)

// TestCountsHaveTheirNumber: refusals show counts by event.Tally, which knows that one vertex is no vertices.
func TestCountsHaveTheirNumber(t *testing.T) {
	for _, room := range countedRooms {
		err := filepath.WalkDir(filepath.Join("../..", room), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || !shown(path) {
				return err
			}
			text, err := os.ReadFile(path)
			for i, line := range strings.Split(string(text), "\n") {
				for _, m := range plainCount.FindAllStringSubmatch(line, -1) {
					if m[1] == "" && !strings.Contains(line, "t.Error") && !constant.MatchString(line) {
						t.Errorf("%s:%d: %q: write it by event.Tally, or one is shown in the plural", path, i+1, m[0])
					}
				}
			}
			return err
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// constant is a line whose count is a constant, and so never one.
var constant = regexp.MustCompile(`, (calls\.Max|max[A-Z]\w*|most[A-Z*]\w*)\b`)

// shown reports whether users read what a file says of counts that may be one: not a test's words, nor those of
// wire/paths to its peers, nor the notes of published shapes, which are bytes of generated datasets.
func shown(path string) bool {
	path = filepath.ToSlash(path)
	return !strings.HasSuffix(path, "_test.go") && !strings.Contains(path, "wire/paths/") &&
		!strings.Contains(path, "wiretest/") && !strings.HasSuffix(path, "generate/like.go")
}

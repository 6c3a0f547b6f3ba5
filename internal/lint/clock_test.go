package lint

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// wallClock is what drops the monotonic clock of a time, so that setting a host's clock would
// lengthen or cut a wait.
var wallClock = regexp.MustCompile(`\.Round\(0\)|\.UnixNano\(\)|\.UnixMilli\(\)|\.Unix\(\)|\.ModTime\(\)|` +
	`time\.Unix\(([^1]|1[^,])`)

// meant marks a line whose clock is that of files, which all hosts of a folder share.
const meant = "// the file system's clock"

// TestClocks: deadlines, waits and ages are never reckoned in the time of day. What is
// left is the time on certificates, which is meant so, a deadline long past, and what
// is marked.
func TestClocks(t *testing.T) {
	root := sources(t, func(string) {})
	for _, room := range []string{"wire", "cluster", "collective", "run", "run/watch", "bench", "event",
		"exchange", "cost", "train",
		"train/full", "train/full/*", "train/site", "train/batch", "train/batch/*", "train/mini", "train/mini/*"} {
		files, err := filepath.Glob(filepath.Join(root, room, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(room, err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(text), "\n") {
				if !strings.HasSuffix(f, "_test.go") && wallClock.MatchString(line) && !strings.HasSuffix(line, meant) {
					t.Errorf("%s:%d: %s: use the monotonic clock (time.Now, Sub, Since)", f, i+1,
						strings.TrimSpace(line))
				}
			}
		}
	}
}

package main

import (
	"cmp"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// pythonRun are the pages whose Python a test runs, by that test.
var pythonRun = map[string]string{"docs/export.md": "TestExportsInPyG", "docs/data.md": "TestFoldersInPyG",
	"docs/typed-graphs.md": "TestTypedExportsInPyG", "docs/install.md": "TestPages", "docs/from-pyg.md": "TestPages",
	"docs/from-dgl.md": "TestPages"}

// TestPagesPython: Python on a page is Python, and a test runs it.
func TestPagesPython(t *testing.T) {
	t.Parallel()
	python := cmp.Or(os.Getenv("STARLING_PYTHON"), "python3")
	if err := exec.Command(python, "-c", "").Run(); err != nil {
		t.Skip("no Python, so the pages' is not looked at: ", err)
	}
	blocks, seen := regexp.MustCompile("(?s)```python(?: [^\n]*)?\n(.*?)```"), map[string]bool{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		page := strings.TrimPrefix(filepath.ToSlash(path), "../../")
		if err == nil && d.IsDir() && (page == ".git" || page == "build" || page == "bin") {
			return fs.SkipDir
		}
		if err != nil || !strings.HasSuffix(page, ".md") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, block := range blocks.FindAllSubmatch(text, -1) {
			seen[page] = true
			c := exec.Command(python, "-c", "import sys; compile(sys.stdin.read(), 'page', 'exec')")
			c.Stdin = strings.NewReader(string(block[1]))
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", page, err, out)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for page := range seen {
		if pythonRun[page] == "" {
			t.Errorf("no test runs the Python of %s", page)
		}
	}
	for page, by := range pythonRun {
		if !seen[page] {
			t.Errorf("%s has no Python for %s", page, by)
		}
	}
}

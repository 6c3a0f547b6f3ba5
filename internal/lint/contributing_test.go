package lint

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// goBlock is a block of Go source on a page whose first line names its file.
var goBlock = regexp.MustCompile("(?ms)^```go\n// ([\\w/]+\\.go)\n(.*?)^```$")

// listed adds a line to the list of strategies in a file, and imports the package of the line.
func listed(list []byte, folder, line string) []byte {
	end := regexp.MustCompile(`(?ms)(^var strategies = .*?)(^}$)`)
	list = end.ReplaceAll(list, []byte("${1}"+line+"${2}"))
	return bytes.Replace(list, []byte("import (\n"), []byte(fmt.Sprintf("import (\n\t%q\n", "starling/"+folder)), 1)
}

// onPage are the strategies of a page: for each folder the files that it adds or changes, with their content.
func onPage(t *testing.T, root, text string) map[string]map[string][]byte {
	t.Helper()
	strategies, folder := map[string]map[string][]byte{}, ""
	for _, m := range goBlock.FindAllStringSubmatch(text, -1) {
		file, source := m[1], []byte(m[2])
		if path.Base(file) == "list.go" {
			list, err := os.ReadFile(filepath.Join(root, file))
			if err != nil {
				t.Fatal(err)
			}
			if source = listed(list, folder, m[2]); bytes.Equal(source, list) {
				t.Fatalf("%s has no list of strategies that %q can be added to", file, m[2])
			}
		} else {
			folder = path.Dir(file)
		}
		if strategies[folder] == nil {
			strategies[folder] = map[string][]byte{}
		}
		strategies[folder][file] = source
	}
	return strategies
}

// overlay writes files and says to the go command where they belong.
func overlay(t *testing.T, root string, files map[string][]byte) (option string) {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for file, source := range files {
		to := filepath.Join(dir, strings.ReplaceAll(file, "/", "_"))
		if err := os.WriteFile(to, source, 0o644); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, file)] = to
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(list, text, 0o644); err != nil {
		t.Fatal(err)
	}
	return "-overlay=" + list
}

// passes builds a package's tests with an overlay and runs some of them in a folder that exists.
func passes(t *testing.T, root, overlay, pkg, tests, in string) {
	t.Helper()
	program := filepath.Join(t.TempDir(), "strategy.test")
	build := exec.Command("go", "test", "-c", "-vet=off", "-ldflags=-s -w", overlay, "-o", program, "./"+pkg)
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.Command(program, "-test.v", "-test.run", tests)
	run.Dir = filepath.Join(root, in)
	if out, err := run.CombinedOutput(); err != nil || !bytes.Contains(out, []byte("--- PASS")) {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestStrategiesOfContributing: a strategy that is written as CONTRIBUTING.md says, in its folder and one line of a
// list, builds, passes the tests of all descriptors, and trains on several workers with the losses of one.
func TestStrategiesOfContributing(t *testing.T) {
	if testing.Short() {
		t.Skip("building is left out of a short run")
	}
	root, _ := filepath.Abs("../..")
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	strategies := onPage(t, root, string(text))
	if len(strategies) != 2 {
		t.Fatalf("CONTRIBUTING.md shows %d strategies, want one of each mode", len(strategies))
	}
	for folder, files := range strategies {
		t.Run(folder, func(t *testing.T) {
			with, mode := overlay(t, root, files), path.Dir(folder)
			passes(t, root, with, folder, ".", mode)
			if mode == "train/full" {
				passes(t, root, with, mode, "^(TestDescriptors|TestOptionsAgree|TestTextOfEveryStrategy)$", mode)
			}
		})
	}
}

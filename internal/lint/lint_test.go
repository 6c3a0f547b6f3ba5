// Package lint holds the rules of the house as tests: which room may import which,
// and that all code is formatted and passes vet.
package lint

import (
	"bytes"
	"fmt"
	"go/format"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// rooms is the import table of docs/design.md. A room's subpackages belong to it, unless
// they are rooms of their own, and may import each other. If a package wants an import that
// is not here, the room is wrong or the table is: change whichever is, on purpose, and say
// so in the commit.
var rooms = map[string][]string{
	"rng":         {},
	"disk":        {},
	"event":       {"disk"},
	"graph":       {"disk", "event"},
	"tensor":      {},
	"tensor/ref":  {"tensor"},
	"tensor/cuda": {"tensor"},
	"tensor/cpu":  {"tensor"},
	// What every device must pass, and a device for tests.
	"tensor/devicetest": {"tensor", "tensor/ref", "tensor/cpu", "internal/testseed"},
	"coflow":            {},
	"dataset":           {"disk", "event", "graph", "rng", "internal/yamltext"},
	"partition":         {"disk", "event", "graph", "rng"},
	"nn":                {"disk", "tensor", "graph", "rng"},
	"sample":            {"graph", "partition", "rng"},
	"wire":              {"coflow", "event"},
	"wire/paths":        {"wire", "coflow", "internal/yamltext"},
	"collective":        {"tensor", "wire", "coflow"},
	"innet":             {"wire"},
	"store":             {"graph", "partition", "sample", "tensor", "wire", "coflow", "rng"},
	"netsim":            {"wire", "wire/paths", "coflow", "innet", "event", "rng"},
	"exchange":          {"nn", "partition", "tensor", "collective", "wire", "coflow", "graph", "event"},
	"cost":              {"graph", "nn", "partition", "wire", "tensor", "rng"},
	"train": {"graph", "partition", "tensor", "nn", "sample", "collective", "wire", "coflow", "event",
		"rng"},
	"train/site": {"train", "exchange", "cost", "graph", "nn", "collective", "wire"},
	"train/full": {"disk", "train", "train/site", "exchange", "store", "cost", "innet",
		"graph", "partition", "tensor", "nn", "sample", "collective", "wire", "coflow", "event", "rng"},
	"train/batch": {"disk", "train", "train/site", "exchange", "store",
		"graph", "partition", "tensor", "nn", "sample", "collective", "wire", "coflow", "event", "rng"},
	"train/mini": {"train", "train/batch", "exchange", "store",
		"graph", "partition", "tensor", "nn", "sample", "wire", "coflow", "event", "rng"},
	"train/traintest": {"train", "train/site", "exchange", "collective", "dataset",
		"graph", "partition", "tensor", "tensor/cpu", "tensor/ref", "nn", "sample", "wire", "event", "rng"},
	"cluster": {"disk", "wire", "nn", "event"},
	"serve":   {"disk", "graph", "tensor", "tensor/cpu", "nn", "sample", "store", "wire"},
	// A spec has the lists that its values are from (models, methods, samplers, orders), and becomes the
	// options of training and of partitioning.
	"spec": {"disk", "event", "graph", "partition", "tensor", "nn", "sample", "coflow", "train", "internal/yamltext"},
	// A report sums up bytes by the wire's kinds and links, and names mistakes as a spec does.
	"report": {"disk", "event", "graph", "partition", "wire", "train", "spec"},
	"watch":  {"cluster", "event", "graph", "report", "spec", "tensor", "tensor/cuda", "train", "wire"},
	// What run joins: each room may see those before it that it needs.
	"setup": {"cluster", "dataset", "disk", "event", "exchange", "graph", "nn", "partition", "report", "sample",
		"spec", "tensor", "tensor/cpu", "tensor/cuda", "tensor/ref", "train", "train/batch"},
	"setup/setuptest": {"dataset", "graph", "spec"},
	"resume": {"setup", "cluster", "disk", "event", "graph", "nn", "report", "serve", "spec",
		"tensor/cpu", "train"},
	"worker": {"setup", "resume", "watch", "cluster", "coflow", "collective", "disk", "event", "graph",
		"internal/version", "internal/yamltext", "nn", "partition", "report", "sample", "spec", "tensor", "train",
		"train/batch", "wire", "wire/paths"},
	"plan": {"setup", "resume", "worker", "cluster", "coflow", "collective", "cost", "dataset", "disk", "event",
		"exchange", "graph", "internal/version", "netsim", "nn", "partition", "report", "sample", "spec", "store",
		"tensor", "tensor/cpu", "tensor/cuda", "train", "train/batch", "wire", "wire/paths"},
	"supervise": {"setup", "resume", "worker", "plan", "watch", "cluster", "coflow", "disk", "event", "graph", "nn",
		"internal/version", "report", "spec", "tensor", "tensor/cpu", "train", "wire"},
	"simulate": {"setup", "worker", "plan", "supervise", "watch", "coflow", "cost", "disk", "event", "graph",
		"internal/version", "netsim", "partition", "report", "spec", "tensor", "tensor/cpu", "train", "wire",
		"wire/paths"},
	"inspect": {"setup", "plan", "cluster", "coflow", "event", "graph", "partition", "report", "sample", "spec",
		"tensor", "tensor/cpu", "tensor/cuda", "train", "wire", "wire/paths"},
	"fetch": {"setup", "dataset", "event", "graph", "report", "spec", "train"},
	"predict": {"setup", "resume", "worker", "supervise", "cluster", "dataset", "event", "graph", "nn", "partition",
		"report", "serve", "spec", "tensor", "tensor/cpu", "train", "train/batch"},
	"bench": {"rng", "event", "graph", "tensor", "tensor/cpu", "coflow", "dataset", "partition", "sample", "wire",
		"collective", "store", "train", "train/full", "train/batch", "cluster", "spec", "report"},
	"run": {"rng", "disk", "event", "graph", "tensor", "tensor/cpu", "tensor/ref", "tensor/cuda", "coflow",
		"dataset", "partition", "nn", "sample", "wire", "wire/paths", "internal/yamltext", "internal/version",
		"collective", "innet", "store", "netsim", "exchange", "cost", "train", "train/full", "train/batch",
		"train/mini",
		"cluster", "serve", "spec", "report", "bench", "watch", "setup", "resume", "worker", "plan", "supervise",
		"simulate", "inspect", "fetch", "predict"},
	"cmd/starling": {"run", "spec", "report", "bench"},
	// Programs that show how packages are used.
	"examples": {"wire", "wire/paths"},
	// YAML is bounded before it is decoded, wherever it is read.
	"internal/yamltext": {},
	// What the linker says that the program was built from.
	"internal/version": {},
	// Tests of the whole, and what tests of any room may use, belong to no room.
	"internal/lint":         {},
	"internal/testseed":     {},
	"internal/testdeadline": {},
	"internal/testflood":    {},
	"internal/testsummary":  {},
	// What packs binaries for those who install them, and the Python package with its tests.
	"internal/release": {},
	"python":           {},
}

// TestStaticNeedsNoLoader: what opens shared libraries makes the binary need the system's
// loader and C library, which an image of deploy/Dockerfile does not have.
func TestStaticNeedsNoLoader(t *testing.T) {
	list := exec.Command("go", "list", "-deps", "-tags", "static", "./cmd/starling")
	list.Dir, list.Env = "../..", append(os.Environ(), "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, pkg := range strings.Fields(string(out)) {
		if strings.HasPrefix(pkg, "github.com/ebitengine/purego") || pkg == "runtime/cgo" {
			t.Errorf("the static build has %s", pkg)
		}
	}
}

// modules that are built on their own, such as the generator of assembly.
func ownModule(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil
}

// sources calls visit for every Go file of the module, by its path from the root.
func sources(t *testing.T, visit func(path string)) (root string) {
	t.Helper()
	return walk(t, ".go", visit)
}

// walk calls visit for every file of the module whose name ends so, by its path from the root.
func walk(t *testing.T, ending string, visit func(path string)) (root string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(root, path)
		if d.IsDir() && rel != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || rel == "build" ||
			rel == "bin" || ownModule(path)) {
			return fs.SkipDir
		}
		if !d.IsDir() && strings.HasSuffix(path, ending) {
			visit(filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return root
}

// roomOf is the room a package belongs to, or "".
func roomOf(pkg string) string {
	best := ""
	for room := range rooms {
		if (pkg == room || strings.HasPrefix(pkg, room+"/")) && len(room) > len(best) {
			best = room
		}
	}
	return best
}

func TestImports(t *testing.T) {
	root, _ := filepath.Abs("../..")
	sources(t, func(path string) {
		from := roomOf(filepath.ToSlash(filepath.Dir(path)))
		if from == "" {
			t.Errorf("%s is in no room of the table", path)
			return
		}
		f, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.ImportsOnly)
		if err != nil {
			t.Error(err)
			return
		}
		for _, spec := range f.Imports {
			name, _ := strconv.Unquote(spec.Path.Value)
			if err := allowed(from, name, path); err != nil {
				t.Errorf("%s: %v", path, err)
			}
		}
	})
}

// forTests is what tests of any room may import: devices, random numbers, generated graphs, what tests
// of training share, and the strategies, which are registered by importing them.
var forTests = []string{"tensor/cpu", "tensor/ref", "tensor/devicetest", "rng", "dataset", "train/full",
	"train/mini", "train/traintest", "setup/setuptest", "internal/testseed", "internal/testdeadline",
	"internal/testflood"}

// allowed checks one import of a file in a room.
func allowed(from, name, path string) error {
	pkg, ours := strings.CutPrefix(name, "starling/")
	if !ours {
		return nil
	}
	to, test := roomOf(pkg), ofTests(path)
	switch {
	case to == "":
		return fmt.Errorf("%s is in no room of the table", name)
	case (to == "train/traintest" || to == "setup/setuptest") && from != to && !test:
		return fmt.Errorf("%s is for tests", name)
	case to == from || slices.Contains(rooms[from], to):
		return nil
	case test && slices.Contains(forTests, to):
		return nil
	case test && to == "train" && slices.Contains(rooms["train/full"], from):
		return nil // what a strategy is made of is tested by training
	}
	return fmt.Errorf("room %s may not import %s (only %v)", from, name, rooms[from])
}

func TestTableHasNoCycle(t *testing.T) {
	var visit func(room string, path []string)
	visit = func(room string, path []string) {
		if slices.Contains(path, room) {
			t.Fatalf("the table goes in a circle: %v %s", path, room)
		}
		for _, to := range rooms[room] {
			visit(to, append(path, room))
		}
	}
	for room := range rooms {
		visit(room, nil)
	}
}

func TestNames(t *testing.T) {
	banned := []string{"util", "utils", "common", "helpers", "types", "pkg"}
	sources(t, func(path string) {
		for part := range strings.SplitSeq(filepath.ToSlash(filepath.Dir(path)), "/") {
			if slices.Contains(banned, part) {
				t.Errorf("%s: a package is named by the concept it serves, not %q", path, part)
			}
		}
	})
}

func TestFormatted(t *testing.T) {
	root, _ := filepath.Abs("../..")
	sources(t, func(path string) {
		b, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Error(err)
			return
		}
		want, err := format.Source(b)
		if err != nil {
			t.Errorf("%s: %v", path, err)
		} else if !bytes.Equal(b, want) {
			t.Errorf("%s is not formatted: run gofmt -w", path)
		}
	})
}

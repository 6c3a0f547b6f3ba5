package simd

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSums: the committed assembly was made by these generators, and is as it was made.
func TestSums(t *testing.T) {
	var lines []string
	for _, pattern := range []string{"asm/*/*.go", "asm/go.mod", "asm/go.sum", "*_amd64.s", "*_stubs_amd64.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(files)
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			lines = append(lines, fmt.Sprintf("%x  %s\n", sha256.Sum256(text), f))
		}
	}
	want, err := os.ReadFile("asm/sums.txt")
	if got := strings.Join(lines, ""); err != nil || got != string(want) {
		t.Errorf("the sums are\n%swant\n%s(%v); run make generate", got, want, err)
	}
}

// TestCommittedAssembly: what is committed is what the generators give. One generator shows it in seconds, and
// TestSums that all were run as they are here; STARLING_TEST_ASM=all runs all of them.
func TestCommittedAssembly(t *testing.T) {
	get := exec.Command("go", "mod", "download", "github.com/mmcloughlin/avo")
	get.Dir = "asm"
	if out, err := get.CombinedOutput(); err != nil {
		t.Skipf("the generators' module avo cannot be had: %v: %s", err, bytes.TrimSpace(out))
	}
	for _, g := range generators(t) {
		if g.name == "zeros" || os.Getenv("STARLING_TEST_ASM") == "all" {
			t.Run(g.name, func(t *testing.T) { g.compare(t) })
		}
	}
}

// generator is a command that go generate runs: go run ./name -out ../file, and -stubs ../file for some.
type generator struct{ name, code, stubs string }

// generators lists the commands of this package's sources.
func generators(t *testing.T) (all []generator) {
	files, err := filepath.Glob("*_amd64.go")
	if err != nil {
		t.Fatal(err)
	}
	line := regexp.MustCompile(`(?m)^//go:generate .*go run \./(\w+) -out \.\./(\w+\.s)(?: -stubs \.\./(\w+\.go))?`)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range line.FindAllStringSubmatch(string(text), -1) {
			all = append(all, generator{m[1], m[2], m[3]})
		}
	}
	return all
}

// compare runs the generator into a folder of its own.
func (g generator) compare(t *testing.T) {
	dir := t.TempDir()
	args := []string{"run", "./" + g.name, "-out", filepath.Join(dir, g.code)}
	if g.stubs != "" {
		args = append(args, "-stubs", filepath.Join(dir, g.stubs), "-pkg", "simd")
	}
	run := exec.Command("go", args...)
	run.Dir = "asm"
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	for _, name := range []string{g.code, g.stubs} {
		if name != "" && !bytes.Equal(body(t, filepath.Join(dir, name)), body(t, name)) {
			t.Errorf("%s is not what asm/%s gives; run make generate", name, g.name)
		}
	}
}

// body is a generated file without its first line, which has the command.
func body(t *testing.T, file string) []byte {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := bytes.Cut(text, []byte("\n"))
	return rest
}

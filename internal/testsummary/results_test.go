package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// module writes a module with the given test files.
func module(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module m\n\ngo 1.24\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// sumUp runs the tests of a module, and returns what is shown and the exit status.
func sumUp(t *testing.T, dir string, again int) (string, int) {
	t.Helper()
	old := os.Stdout
	defer func() { os.Stdout = old }()
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	os.Stdout = f
	status, err := run([]string{"go", "-C", dir, "test", "-json", "./..."}, "> ", "", again)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(f.Name())
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile(`\(?[0-9.]+s\)?`).ReplaceAllString(string(text), "T"), status
}

func TestSummary(t *testing.T) {
	got, status := sumUp(t, module(t, map[string]string{
		"good/a_test.go": `package good
import "testing"
func TestOne(t *testing.T) { t.Log("not shown") }
func TestTwo(t *testing.T) { t.Skip("no such tool: install it") }
func TestTwoAgain(t *testing.T) { t.Skip("no such tool: install it") }
func TestThree(t *testing.T) { t.Run("part", func(t *testing.T) { t.SkipNow() }) }
`,
		"bad/a_test.go": `package bad
import "testing"
func TestFine(t *testing.T) { t.Log("not shown") }
func TestBroken(t *testing.T) { t.Error("this is wrong") }
func TestSkipped(t *testing.T) { t.Skip("too long") }
`,
		"panics/a_test.go": `package panics
import "testing"
func TestPanics(t *testing.T) { panic("invariant") }
`,
		"unbuilt/a_test.go": "package unbuilt\nvar x int = \"text\"\n",
		"empty/a.go":        "package empty\n",
	}), 3)
	if status != 1 {
		t.Errorf("status %d", status)
	}
	for _, want := range []string{
		"> ok  \tm/good\tT\n", "> ?   \tm/empty\t[no test files]\n", "> --- FAIL: TestBroken T\n", "this is wrong\n",
		"> FAIL\tm/bad\tT\n", "invariant", "cannot use \"text\"",
		"> skipped tests: 4\n",
		">   m/bad TestSkipped: too long\n>   m/good TestThree/part: no reason given\n" +
			">   m/good TestTwo, TestTwoAgain: no such tool: install it\n",
		"> FAILED packages: 3\n>   m/bad: TestBroken\n>   m/panics: TestPanics\n>   m/unbuilt: see its output above\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "not shown") || strings.Contains(got, "=== RUN") {
		t.Errorf("it shows what -v shows:\n%s", got)
	}
}

func TestSummaryOfSuccess(t *testing.T) {
	got, status := sumUp(t, module(t, map[string]string{
		"a_test.go": "package m\nimport \"testing\"\nfunc TestOne(t *testing.T) {}\n"}), 3)
	if status != 0 || got != "> ok  \tm\tT\n> no package failed\n" {
		t.Errorf("status %d:\n%s", status, got)
	}
}

func TestManyNames(t *testing.T) {
	if got := named([]string{"e", "d", "c", "b", "a"}); got != "a, b, c, d and 1 more" {
		t.Error(got)
	}
}

func TestOtherLinesAreShown(t *testing.T) {
	var b bytes.Buffer
	if err := newResults(&prefixed{w: &b}).read(strings.NewReader("warning\n{\"x\":1}\n")); err != nil ||
		b.String() != "warning\n{\"x\":1}\n" {
		t.Errorf("%q %v", b.String(), err)
	}
}

// onceOnly is a package with a test that fails the first time it runs, one that passes, and one more.
func onceOnly(more string) map[string]string {
	return map[string]string{"a_test.go": `package m
import ("os"; "testing")
func TestFine(t *testing.T) {}
func TestFirst(t *testing.T) { t.Run("part", func(t *testing.T) {
	if os.Mkdir("been", 0o755) == nil { t.Error("the first time") } }) }
` + more}
}

func TestFailuresRunAgain(t *testing.T) {
	const unsteady = "> UNSTEADY, failed and then passed alone: m TestFirst\n>     --- FAIL: TestFirst T\n" +
		">         a_test.go:5: the first time\n>     --- FAIL: TestFirst/part T\n"
	for _, c := range []struct {
		name, more string
		again      int
		status     int
		want       string
	}{
		{"passes", "", 1, 0, unsteady + "> no package failed\n"},
		{"not wanted", "", 0, 1, "> FAILED packages: 1\n>   m: TestFirst, TestFirst/part\n"},
		{"fails again", "func TestBad(t *testing.T) { t.Error() }\n", 2, 1,
			unsteady + "> FAILED packages: 1\n>   m: TestBad\n"},
		{"two pass", "func TestZ(t *testing.T) { if os.Mkdir(\"z\", 0o755) == nil { t.Error() } }\n", 3, 1,
			"> FAILED: 2 unsteady tests, of which there may be 1\n> no package failed\n"},
		{"too many", "func TestBad(t *testing.T) { t.Error() }\n", 1, 1,
			"> FAILED packages: 1\n>   m: TestBad, TestFirst, TestFirst/part\n"},
		{"cut off", "func TestZ(t *testing.T) { panic(1) }\n", 3, 1, "> FAILED packages: 1\n"},
		{"race", "func TestZ(t *testing.T) { t.Error(\"WARNING: DATA RACE\") }\n", 3, 1, "> FAILED packages: 1\n"},
	} {
		got, status := sumUp(t, module(t, onceOnly(c.more)), c.again)
		final := c.name == "cut off" || c.name == "race"
		if status != c.status || !strings.HasSuffix(got, c.want) && !final {
			t.Errorf("%s: status %d:\n%s", c.name, status, got)
		}
		if final && strings.Contains(got, "again, alone") {
			t.Errorf("%s: it ran again:\n%s", c.name, got)
		}
	}
}

// TestSeedIsKept: a test that fails with what it drew is run again with the same seed, the last that it logged,
// and fails again; one that passes with the same seed is unsteady.
func TestSeedIsKept(t *testing.T) {
	const draws = `package m
import ("os"; "testing")
func TestDraws(t *testing.T) { t.Run("part", func(t *testing.T) {
	given := os.Getenv("STARLING_SEED")
	if given != "" && given != "7" { return }
	t.Log("STARLING_SEED=6")
	t.Log("STARLING_SEED=7")
	%s
}) }
`
	for _, c := range []struct {
		fails  string
		status int
		want   string
	}{
		{`t.Error("seed " + given)`, 1, "seed 7\n> --- FAIL"},
		{`if given == "" { t.Error("seed " + given) }`, 0,
			"> UNSTEADY, failed and then passed alone: m TestDraws (STARLING_SEED=7)\n"},
	} {
		t.Setenv("STARLING_SEED", "")
		got, status := sumUp(t, module(t, map[string]string{"a_test.go": fmt.Sprintf(draws, c.fails)}), 3)
		if status != c.status || !strings.Contains(got, "> again, alone: m TestDraws (STARLING_SEED=7)\n") ||
			!strings.Contains(got, c.want) {
			t.Errorf("%s: status %d:\n%s", c.fails, status, got)
		}
	}
}

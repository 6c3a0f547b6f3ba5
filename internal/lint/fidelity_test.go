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

// fidelityPage has a table per paper, whose rows are its mechanisms:
//
//	| § | mechanism | where | test, or what differs |
//
// The third column names files by their paths. The last one names a test that fails where the mechanism is not as the
// paper has it, of the folder of the first file or, as in `store/TestName`, of another; or it says "differs: …" or
// "missing: …", with the reason.
const fidelityPage = "docs/strategies/fidelity.md"

// fidelitySystems have a section each.
var fidelitySystems = []string{"DistDGL", "ByteGNN", "SANCUS", "HopGNN", "GraNNDIS", "G3", "DGS", "SwitchGNN", "Hermod",
	"LEO", "NeutronTP", "Plexus", "Baselines"}

var (
	ticked    = regexp.MustCompile("`([^`]+)`")
	testName  = regexp.MustCompile(`^(?:(.+)/)?(Test\w+)$`)
	bareTest  = regexp.MustCompile(`\bTest[A-Z]\w*`)
	unlike    = regexp.MustCompile(`\b(differs|missing): \S+ \S+ \S+`)
	isMissing = regexp.MustCompile(`^missing: `)
)

// mechanism is a row of the page.
type mechanism struct {
	line                       int
	section, what, where, test string
}

// mechanismsOf are the rows of the page's tables.
func mechanismsOf(text string) (rows []mechanism) {
	table := false
	for i, line := range strings.Split(text, "\n") {
		cells := strings.Split(line, "|")
		switch {
		case len(cells) < 3:
			table = false
		case strings.TrimSpace(cells[1]) == "§":
			table = true
		case table && !strings.HasPrefix(line, "| ---"):
			m := mechanism{line: i + 1}
			for j, to := range []*string{&m.section, &m.what, &m.where, &m.test} {
				if j+1 < len(cells) {
					*to = strings.TrimSpace(cells[j+1])
				}
			}
			if len(cells) != 6 {
				m.test = "" // a fault
			}
			rows = append(rows, m)
		}
	}
	return rows
}

// faults is what a row says that is not so. There is a file where isFile says so, and a folder has some tests.
func (m *mechanism) faults(isFile func(string) bool, tests func(folder string) []string) (found []string) {
	files := ticked.FindAllStringSubmatch(m.where, -1)
	for _, file := range files {
		if !isFile(file[1]) {
			found = append(found, "no file "+file[1])
		}
	}
	if len(files) == 0 && !isMissing.MatchString(m.test) {
		found = append(found, "no file named")
	}
	named := false
	for _, name := range ticked.FindAllStringSubmatch(m.test, -1) {
		test := testName.FindStringSubmatch(name[1])
		if test == nil {
			continue
		}
		folder := test[1]
		if folder == "" && len(files) > 0 {
			folder = path.Dir(files[0][1])
		}
		named = true
		if !slices.Contains(tests(folder), test[2]) {
			found = append(found, "no test "+test[2]+" in "+folder)
		}
	}
	if bare := bareTest.FindString(ticked.ReplaceAllString(m.test, "")); bare != "" {
		found = append(found, bare+" without backticks")
	}
	if !named && !unlike.MatchString(m.test) {
		found = append(found, "neither a test nor what differs or is missing")
	}
	if m.section == "" || m.what == "" {
		found = append(found, "no section or mechanism")
	}
	return found
}

// TestFidelity: files and tests that the page of mechanisms names are there, every row has a test or says what
// differs, and every strategy's page is linked.
func TestFidelity(t *testing.T) {
	root, _ := filepath.Abs("../..")
	text, err := os.ReadFile(filepath.Join(root, fidelityPage))
	if err != nil {
		t.Fatal(err)
	}
	isFile := func(name string) bool {
		info, err := os.Stat(filepath.Join(root, name))
		return err == nil && !info.IsDir()
	}
	known := map[string][]string{}
	tests := func(folder string) []string {
		if _, ok := known[folder]; !ok {
			known[folder] = testsOf(t, filepath.Join(root, folder))
		}
		return known[folder]
	}
	for _, system := range fidelitySystems {
		if _, section, found := strings.Cut(string(text), "\n## "+system+"\n"); !found {
			t.Errorf("%s has no section of %s", fidelityPage, system)
		} else if section, _, _ = strings.Cut(section, "\n## "); len(mechanismsOf(section)) < 5 {
			t.Errorf("%s has hardly a mechanism of %s", fidelityPage, system)
		}
	}
	for _, m := range mechanismsOf(string(text)) {
		for _, fault := range m.faults(isFile, tests) {
			t.Errorf("%s:%d: %s", fidelityPage, m.line, fault)
		}
	}
	pages, _ := filepath.Glob(filepath.Join(root, "docs/strategies/*.md"))
	for _, page := range pages {
		name := filepath.Base(page)
		if name != "README.md" && name != "fidelity.md" && !strings.Contains(string(text), "]("+name) {
			t.Errorf("%s does not link %s", fidelityPage, name)
		}
	}
}

// testsOf are the tests of a folder's files.
func testsOf(t *testing.T, folder string) (names []string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(folder, "*_test.go"))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
	}
	return names
}

// TestFidelityFaultsAreFound: rows whose file or test is not there, and those that name none and give no reason.
func TestFidelityFaultsAreFound(t *testing.T) {
	const header = "| § | mechanism | where | test, or what differs |\n| --- | --- | --- | --- |\n"
	isFile := func(name string) bool { return name == "a/b.go" }
	tests := func(folder string) []string { return map[string][]string{"a": {"TestA"}, "c/d": {"TestD"}}[folder] }
	for row, want := range map[string]string{
		"| 4.1 | x | `a/b.go` | `TestA` |":                           "",
		"| 4.1 | x | `a/b.go` | `c/d/TestD`, `TestA` |":              "",
		"| 4.1 | x | `a/b.go` | differs: ours is shorter |":          "",
		"| 4.1 | x | — | missing: nothing here does it |":            "",
		"| 4.1 | x | `a/b.go` | `TestGone` |":                        "no test TestGone in a",
		"| 4.1 | x | `a/b.go` | `TestA`, `c/d/TestA` |":              "no test TestA in c/d",
		"| 4.1 | x | `a/b.go` | `TestGone`; differs: in one thing |": "no test TestGone in a",
		"| 4.1 | x | `a/c.go` | `TestA` |":                           "no file a/c.go",
		"| 4.1 | x | — | differs: in one thing |":                    "no file named",
		"| 4.1 | x | `a/b.go` | as in the paper |":                   "neither a test nor what differs or is missing",
		"| 4.1 | x | `a/b.go` | `TestA`, TestB |":                    "TestB without backticks",
		"| 4.1 | x | `a/b.go` | differs: |":                          "neither a test nor what differs or is missing",
		"| 4.1 | x | `a/b.go` |":                                     "neither a test nor what differs or is missing",
		"| 4.1 | x | `a/b.go` | `TestA` | and more |":                "neither a test nor what differs or is missing",
		"|  | x | `a/b.go` | `TestA` |":                              "no section or mechanism",
	} {
		rows := mechanismsOf("text\n\n" + header + row + "\n\n| other | table |\n")
		if len(rows) != 1 || rows[0].line != 5 {
			t.Errorf("%s: %d rows", row, len(rows))
			continue
		}
		if got := strings.Join(rows[0].faults(isFile, tests), "; "); got != want {
			t.Errorf("%s: %q, want %q", row, got, want)
		}
	}
}

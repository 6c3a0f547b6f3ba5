package lint

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	fileName = regexp.MustCompile(`[\w/]+\.go\b|\bscripts/[\w/.-]*\w`)
	goTest   = regexp.MustCompile(`\bgo\s+test\s+\./`)
	ended    = regexp.MustCompile("`|\n\n")
	inFolder = regexp.MustCompile(`^[\w/]+`)
	picked   = regexp.MustCompile(`-(run|bench)\s+'?\^?([\w|]+)`)
	testFunc = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)\w+)`)
	exported = regexp.MustCompile("`([a-z]+)\\.([A-Z]\\w*)")
)

// everyFile lists the files of the repository, the generators' too.
func everyFile(t *testing.T, root string) (files []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (rel == ".git" || rel == "build" || rel == "bin"):
			return fs.SkipDir
		case !d.IsDir():
			files = append(files, "/"+filepath.ToSlash(rel))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// strayNames are the Go files and scripts that a page tells of and nobody finds: a file may be
// named by the end of its path.
func strayNames(text string, files []string) (stray []string) {
	for _, name := range fileName.FindAllString(text, -1) {
		end := name
		if strings.HasPrefix(name, "scripts/") {
			end = "/" + name
		}
		if !slices.ContainsFunc(files, func(f string) bool {
			return strings.HasSuffix(f, end) ||
				strings.HasPrefix(f, end+"/")
		}) {
			stray = append(stray, name)
		}
	}
	return stray
}

// strayTests are the tests and benchmarks that a page runs and a package does not have.
func strayTests(text string, has func(pkg string) []string) (stray []string) {
	for _, call := range goTest.Split(text, -1)[1:] {
		call = ended.Split(call, 2)[0]
		pkg := inFolder.FindString(call)
		for _, pick := range picked.FindAllStringSubmatch(call, -1) {
			for _, name := range strings.Split(pick[2], "|") {
				ours := func(f string) bool {
					return strings.Contains(f, name) && strings.HasPrefix(f, "Benchmark") == (pick[1] == "bench")
				}
				if !slices.ContainsFunc(has(pkg), ours) {
					stray = append(stray, pkg+" "+name)
				}
			}
		}
	}
	return stray
}

// strayExports are the types and functions that a page names by their package and the package does not have.
func strayExports(text string, declares func(pkg, name string) bool) (stray []string) {
	for _, m := range exported.FindAllStringSubmatch(text, -1) {
		if rooms[m[1]] != nil && !declares(m[1], m[2]) {
			stray = append(stray, m[1]+"."+m[2])
		}
	}
	return stray
}

// TestPagesTellOfWhatIs: Go files, scripts, types, functions, tests and benchmarks that a page tells of are there.
func TestPagesTellOfWhatIs(t *testing.T) {
	root, _ := filepath.Abs("../..")
	files := everyFile(t, root)
	has := func(pkg string) (names []string) {
		tests, _ := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
		for _, file := range tests {
			text, _ := os.ReadFile(file)
			for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
				names = append(names, m[1])
			}
		}
		return names
	}
	declares := func(pkg, name string) bool {
		said := regexp.MustCompile(`(?m)^(type|func|var|const) ` + name + `\b`)
		sources, _ := filepath.Glob(filepath.Join(root, pkg, "*.go"))
		return slices.ContainsFunc(sources, func(file string) bool {
			text, _ := os.ReadFile(file)
			return said.Match(text)
		})
	}
	walk(t, ".md", func(page string) {
		if page == "CHANGELOG.md" { // which tells of what was, too
			return
		}
		text, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		text = goBlock.ReplaceAll(text, nil) // files to write
		for _, name := range strayNames(string(text), files) {
			t.Errorf("%s tells of %s, which is not there", page, name)
		}
		for _, name := range strayTests(string(text), has) {
			t.Errorf("%s runs the test %s, which is not there", page, name)
		}
		for _, name := range strayExports(string(text), declares) {
			t.Errorf("%s tells of %s, which is not there", page, name)
		}
	})
}

func TestStrayNamesAreFound(t *testing.T) {
	text := "`a/here.go`, `_ere.go`, here.go, scripts/do and scripts/dont: " +
		"`go test\n./a -run '^$' -bench Fast/x` or\n\n" +
		"    STARLING=1 go test ./a -run TestFast\n    go test ./b/c -run 'Slow|Quick' -v\n"
	files := []string{"/z/a/here.go", "/scripts/do"}
	if got := strings.Join(strayNames(text, files), " "); got != "_ere.go scripts/dont" {
		t.Error(got)
	}
	has := func(string) []string { return []string{"BenchmarkFaster", "TestSlow"} }
	if got := strings.Join(strayTests(text, has), ", "); got != "a TestFast, b/c Quick" {
		t.Error(got)
	}
	declares := func(_, name string) bool { return name == "Here" }
	if got := strings.Join(strayExports("`nn.Here`, `nn.Gone{}`, `torch.Tensor`", declares), " "); got != "nn.Gone" {
		t.Error(got)
	}
}

// TestDesignTellsOfRooms: the table of docs/design.md is rooms, as far as they are built.
func TestDesignTellsOfRooms(t *testing.T) {
	root, _ := filepath.Abs("../..")
	text, err := os.ReadFile(filepath.Join(root, "docs/design.md"))
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	rows := regexp.MustCompile("(?m)^\\| `([\\w/]+)` \\|.*\\| ([^|]*) \\|$")
	for _, row := range rows.FindAllStringSubmatch(string(text), -1) {
		told[row[1]] = row[2]
	}
	built := func(room string) bool {
		_, err := os.Stat(filepath.Join(root, room))
		return err == nil && room != "internal/lint"
	}
	for room, may := range rooms {
		if !built(room) {
			continue
		}
		want := strings.Join(slices.DeleteFunc(slices.Clone(may), func(r string) bool { return !built(r) }), " ")
		switch room {
		case "run":
			want = "all"
		}
		if got := strings.ReplaceAll(told[room], "—", ""); got != want {
			t.Errorf("docs/design.md has %q for %s, want %q", got, room, want)
		}
	}
}

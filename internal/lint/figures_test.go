package lint

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestFiguresAreOfThisCode: figures on pages name their commit, and say so where the code under them has changed since.
func TestFiguresAreOfThisCode(t *testing.T) {
	_, all, err := ReadFigures("../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(all) < 10 {
		t.Errorf("%s has %d figures; the test does not see them", FiguresFile, len(all))
	}
	history := exec.Command("git", "-C", "../..", "merge-base", "--is-ancestor", before, "HEAD").Run() == nil
	for _, f := range all {
		page, err := os.ReadFile(filepath.Join("../..", f.Page))
		if err != nil {
			t.Error(err)
			continue
		}
		part, err := f.On(string(page), all)
		if err != nil {
			t.Error(err)
			continue
		}
		changed := f.Changed(func(name string) ([]byte, error) { return os.ReadFile(filepath.Join("../..", name)) })
		if fault := f.Fault(part, changed); fault != "" {
			t.Errorf("%s: %s", f.Name(), fault)
		}
		if history && exec.Command("git", "-C", "../..", "merge-base", "--is-ancestor", f.Made, "HEAD").Run() != nil {
			t.Errorf("%s: made at %s, which is no commit of this history", f.Name(), f.Made)
		}
	}
}

func TestCodeHashIsOfTokens(t *testing.T) {
	hash := func(text string) string { return CodeHash("a.go", []byte(text)) }
	const code = "package a\n\nfunc F() int { return 1 }\n"
	if hash("// A does.\npackage a\n\n// F is.\nfunc F() int  { /* one */\treturn 1 } // F\n") != hash(code) {
		t.Error("comments or layout change the hash")
	}
	for _, other := range []string{"package a\n\nfunc F() int { return 2 }\n",
		"package a\n\nfunc G() int { return 1 }\n",
		"package a\n\nfunc F() int { return -1 }\n"} {
		if hash(other) == hash(code) {
			t.Errorf("%q has the same hash", other)
		}
	}
	if CodeHash("a.yaml", []byte("# a\nb: 1")) == CodeHash("a.yaml", []byte("b: 1")) {
		t.Error("a file that is no Go code counts as it is")
	}
}

func TestFigureFaultsAreFound(t *testing.T) {
	code := map[string]string{"a.go": "package a", "b.go": "package b"}
	read := func(name string) ([]byte, error) {
		if text, ok := code[name]; ok {
			return []byte(text), nil
		}
		return nil, errors.New("none")
	}
	f := &Figures{Page: "p.md", Text: "Table one", Made: "0123abc", By: "scripts/x",
		Files: []CodeFile{{"a.go", CodeHash("a.go", []byte("package a"))},
			{"b.go", CodeHash("b.go", []byte("package c"))}, {"c.go", "x"}}}
	changed := f.Changed(read)
	if !slices.Equal(changed, []string{"b.go", "c.go"}) {
		t.Errorf("changed: %v", changed)
	}
	all := []*Figures{f, {Page: "p.md", Text: "Table two"}, {Page: "q.md", Text: "0123abc"}}
	for page, want := range map[string][2]string{
		"Table one, 0123abc; the code\nhas changed since\n":     {"", "off the page"},
		"Table one, 0123abc\n":                                  {"b.go, c.go changed", ""},
		"Table one, made last week\n":                           {"does not name", "does not name"},
		"Table one\nTable two, 0123abc\n":                       {"does not name", "does not name"},
		"Table one\n\n## Next\n\n0123abc\n":                     {"does not name", "does not name"},
		"0123abc before Table one\n":                            {"does not name", "does not name"},
		"Table one\nTable two, 0123abc\nTable one\n":            {"2 times", "2 times"},
		"no figures, 0123abc\n":                                 {"0 times", "0 times"},
		"Table\none, 0123abc\nTable two; the code has changed ": {"b.go, c.go changed", ""},
	} {
		for i, changed := range [][]string{changed, nil} {
			part, err := f.On(page, all)
			fault := ""
			if err != nil {
				fault = err.Error()
			} else {
				fault = f.Fault(part, changed)
			}
			if (want[i] == "") != (fault == "") || !strings.Contains(fault, want[i]) {
				t.Errorf("%q: %q, want %q", page, fault, want[i])
			}
		}
	}
}

func TestFiguresAreWrittenAsRead(t *testing.T) {
	head, all, err := ReadFigures("../..")
	if err != nil {
		t.Fatal(err)
	}
	root := t.TempDir()
	if err := os.Mkdir(filepath.Join(root, "docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := WriteFigures(root, head, all); err != nil {
		t.Fatal(err)
	}
	was, _ := os.ReadFile(filepath.Join("../..", FiguresFile))
	is, _ := os.ReadFile(filepath.Join(root, FiguresFile))
	if string(was) != string(is) {
		t.Error("reading and writing changes the file")
	}
}

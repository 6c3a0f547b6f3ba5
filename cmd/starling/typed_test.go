package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestTypedPage writes the files of docs/typed-graphs.md, runs its commands in order, and finds what it prints.
func TestTypedPage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/typed-graphs.md")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file := regexp.MustCompile("(?m)^`([\\w.]+)`:\n\n((?:    .*\n)+)")
	for _, m := range file.FindAllStringSubmatch(string(page), -1) {
		badFile(t, dir, m[1], strings.TrimPrefix(strings.ReplaceAll("\n"+m[2], "\n    ", "\n"), "\n"))
	}
	out, commands, python := "", 0, regexp.MustCompile("(?s)```python\n.*?```")
	for _, line := range strings.Split(string(python.ReplaceAll(file.ReplaceAll(page, nil), nil)), "\n") {
		text, indented := strings.CutPrefix(line, "    ")
		switch args := strings.Fields(text); {
		case !indented:
		case strings.HasPrefix(text, "starling "):
			commands++
			out = works(t, dir, args[1:]...).stdout
		case !strings.Contains(out, text+"\n"):
			t.Errorf("%q is not in\n%s", text, out)
		}
	}
	if commands != 10 {
		t.Errorf("%d commands", commands)
	}
	if b, err := os.ReadFile(dir + "/fraud.csv"); err != nil || !strings.HasPrefix(string(b), "id,label,probability\nada,") {
		t.Errorf("%s, %v", b, err)
	}
	works(t, dir, "plan", "shop", "--model", "rgcn", "--workers", "2")
	works(t, dir, "train", "shop", "--model", "rgat", "--workers", "2", "--strategy", "auto", "--epochs", "1", "--quiet")
	for _, args := range [][]string{{"train", "shop"}, {"train", "shop", "--workers", "2"}} {
		refuses(t, dir, []string{"shop: --model gcn: found a typed graph (2 types of vertices, 2 relations)",
			"use --model rgcn, hsage, rgat, hgt or simplehgn"}, args...)
	}
	refuses(t, dir, []string{"shop: found a typed graph", "does not know types yet"}, "bench", "sample", "shop")
	refuses(t, dir, []string{"--fanout", `"sells"`, "one of bought_by, buys"}, "train", "shop", "--model", "rgcn", "--mode",
		"mini", "--fanout", "sells=1,1")
	refuses(t, dir, []string{"the server does not know types yet"}, "serve", "shop-model", "shop")
	works(t, dir, "get", "demo", "--out", "demo", "--quiet")
	works(t, dir, "train", "demo", "--epochs", "1", "--out", "run", "--quiet")
	for _, args := range [][]string{{"predict", "run", "shop"}, {"serve", "run", "shop", "--listen", "127.0.0.1:0"}} {
		refuses(t, dir, []string{"shop: found a typed graph", "a model of --model gcn does not know types yet"}, args...)
	}
	badFile(t, dir, "buys.csv", "user,item\nada,7\n")
	refuses(t, dir, []string{"buys.csv: line 2, column item", `found "7"`, "add the vertex there, or remove the edge"},
		"import", "schema", "shop.yaml", "--out", "other")
	if _, err := os.Stat(dir + "/other"); err == nil {
		t.Error("something was written")
	}
	refuses(t, dir, []string{"--check", "only for schema"}, "import", "edgelist", "buys.csv", "--check")
	refuses(t, dir, []string{"--weights", "without effect on schema"}, "import", "schema", "shop.yaml", "--weights",
		"--out", "other")
	refuses(t, dir, []string{"--nodes", "without effect on typed"}, "generate", "typed", "--nodes", "5", "--out",
		"other")
}

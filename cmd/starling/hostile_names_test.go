package main

import (
	"fmt"
	"html"
	"strings"
	"testing"
)

// Names that would be markup: of a dataset, a type, a relation and its reverse, a column, and classes.
const (
	evilData, evilType        = "<b>data", "<i>thing"
	evilRelation, evilReverse = "<script>alert(1)</script>", "<svg onload=alert(1)>"
	evilColumn, evilClass     = "<b onclick=alert(1)>", "<img src=x onerror=alert(%d)>"
)

// hostileGraph writes tables and a schema with such names.
func hostileGraph(t *testing.T, dir string) {
	t.Helper()
	people, things, has := "id,a,label\n", "id,\""+evilColumn+"\"\n", "src,dst\n"
	for i := range 120 {
		people += fmt.Sprintf("%d,0.%d,"+evilClass+"\n", i, i*7%10, i%3)
		things += fmt.Sprintf("%d,0.%d\n", i, i*3%10)
		for k := range 4 {
			has += fmt.Sprintf("%d,%d\n", (i*11+k*17)%120, i)
		}
	}
	badFile(t, dir, "people.csv", people)
	badFile(t, dir, "things.csv", things)
	badFile(t, dir, "has.csv", has)
	badFile(t, dir, "schema.yaml", fmt.Sprintf(`nodes:
  person: {files: people.csv, id: id, features: a, label: label, split: {train: 0.6, val: 0.2, test: 0.2}}
  %q: {files: things.csv, id: id, features: [%q]}
edges:
  - {type: [%q, %q, person], files: has.csv, src: src, dst: dst, reverse: %q}
`, evilType, evilColumn, evilType, evilRelation, evilReverse))
}

// TestHostileNamesEndToEnd: such names are text on every page, from the tables to the browser.
func TestHostileNamesEndToEnd(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hostileGraph(t, dir)
	do := func(args string) {
		t.Helper()
		works(t, dir, append(strings.Fields(args), "--quiet")...)
	}
	do("import schema schema.yaml --out " + evilData)
	works(t, dir, "info", evilData, "--html", "info.html")
	do("train " + evilData + " --model rgcn --hidden 8 --epochs 3 --workers 2 --in-process --events e.jsonl " +
		"--html run.html --out run")
	works(t, dir, "view", "e.jsonl", "--html", "view.html")
	works(t, dir, "explain", "run", evilData, "--vertex", "1", "--html", "explain.html")
	do("predict run " + evilData + " --report report.html --out p.csv")
	do("partition " + evilData + " --parts 2 --html parts.html")
	class, _, _ := strings.Cut(evilClass, "%")
	for file, names := range map[string][]string{
		"info.html": {evilType, evilRelation, evilReverse, evilColumn, class}, "run.html": {evilData, class},
		"view.html": {evilData, class}, "report.html": {class}, "explain.html": {evilType, evilRelation, class},
		"parts.html": {evilType}} {
		page := readFile(t, dir, file)
		for _, bad := range []string{"<script>alert", "<img", "<svg onload", "<i>thing", "<b>data", "<b onclick"} {
			if strings.Contains(page, bad) {
				t.Errorf("%s has %s as markup", file, bad)
			}
		}
		for _, name := range names {
			if !strings.Contains(html.UnescapeString(page), name) {
				t.Errorf("%s lacks the name %s", file, name)
			}
		}
		t.Run(file, func(t *testing.T) { lookAt(t, page, "light", 1280) }) // an alert would hold it up
	}
}

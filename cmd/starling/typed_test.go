package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"regexp"
	"strings"
	"testing"
)

// servesShop: a new user with the cells and the edges of a row of the table is predicted as that
// user; an unknown word is a row of zeros, a missing age the mean; a mistake in a name is said.
func servesShop(t *testing.T, dir string) {
	t.Helper()
	ask := serving(t, dir, "shop-model", "shop")
	users := map[string]string{"ada": `{"age":34,"city":"Oslo"},"edges":{"bought_by":[1001]}`,
		"bob":  `{"city":"Rome","age":null},"edges":{"item bought_by user":[1003,1002]}`,
		"cleo": `{"age":51,"city":"Oslo"},"edges":{"bought_by":[1001]}`}
	for user, row := range users {
		old := servedAs(t, ask("/predict", fmt.Sprintf(`{"type":"user","vertices":[%q]}`, user)), "predictions")[0]
		text := ask("/predict_new", `{"features":`+row+`}`)
		var fresh served
		if err := json.Unmarshal([]byte(text), &fresh); err != nil || fresh.Class != old.Class || old.Class == "" ||
			math.Abs(fresh.Probabilities[0]-old.Probabilities[0]) > 1e-6 {
			t.Errorf("%s of a user like %s: %+v, %v", text, user, old, err)
		}
	}
	unknown := ask("/predict_new", `{"features":{"age":34,"city":"Paris"},"edges":{"bought_by":[1001]}}`)
	if missing := ask("/predict_new", `{"features":{"age":34},"edges":{"bought_by":[1001]}}`); unknown != missing ||
		!strings.Contains(unknown, `"class"`) || unknown == ask("/predict_new", `{"features":`+users["ada"]+`}`) {
		t.Errorf("%s in an unknown city, %s in none", unknown, missing)
	}
	for body, says := range map[string]string{
		`{"features":{"agee":34}}`:                             `columns of the table: age, city`,
		`{"features":{"age":"old"}}`:                           `features.age: found`,
		`{"features":{"age":1},"edges":{"buys":[1001]}}`:       `want one that leads to user: \"item bought_by user\"`,
		`{"features":{"age":1},"edges":{"bought_by":["ada"]}}`: `want a vertex of type item`,
	} {
		if text := ask("/predict_new", body); !strings.Contains(text, says) {
			t.Errorf("%s: %s", body, text)
		}
	}
}

// predictsTables: new tables by a schema are predicted as the folder that import makes of them like the run, and leave
// nothing behind; what they say is checked.
func predictsTables(t *testing.T, dir string) {
	t.Helper()
	badFile(t, dir, "new-users.csv", "user,age,city\nzoe,40,Paris\nyan,,Rome\n")
	badFile(t, dir, "new-buys.csv", "user,item\nzoe,1001\nyan,1003\nyan,1001\n")
	text := "nodes:\n  user: {files: new-users.csv, id: user, features: [age, city]}\n  item: {files: items.csv, id: item, " +
		"features: price}\nedges:\n  - {type: [user, buys, item], files: new-buys.csv, src: user, dst: item, reverse: bought_by}\n"
	badFile(t, dir, "new.yaml", text)
	works(t, dir, "import", "schema", "new.yaml", "--like", "shop-model", "--out", "later", "--quiet")
	works(t, dir, "predict", "shop-model", "later", "--out", "folder.csv", "--quiet")
	said := works(t, dir, "predict", "shop-model", "new.yaml", "--out", "tables.csv").stdout
	got := readFile(t, dir, "tables.csv")
	if got != readFile(t, dir, "folder.csv") || !strings.HasPrefix(got, "id,label,probability\nzoe,") {
		t.Errorf("%s, of the folder %s", got, readFile(t, dir, "folder.csv"))
	}
	if !strings.Contains(said, "words that the preparation does not know, which are rows of zeros: 1") ||
		!strings.Contains(said, "missing features were filled in: 1") {
		t.Error(said)
	}
	refuses(t, dir, []string{"--edges, --features", "the schema alone"}, "predict", "shop-model", "new.yaml", "--edges",
		"new-buys.csv", "--out", "other.csv")
	refuses(t, dir, []string{"new-users.csv, one table, and a model of a typed graph", "a schema"}, "predict", "shop-model",
		"new-users.csv", "--edges", "new-buys.csv", "--out", "other.csv")
	badFile(t, dir, "new.yaml", strings.Replace(text, "age, city", "age, town", 1))
	refuses(t, dir, []string{`"town", which is no column of`}, "predict", "shop-model", "new.yaml", "--out", "other.csv")
	badFile(t, dir, "new.yaml", text)
	badFile(t, dir, "new-buys.csv", "user,item\nada,1001\n")
	refuses(t, dir, []string{"new-buys.csv: line 2, column user", `found "ada"`}, "predict", "shop-model", "new.yaml", "--out",
		"other.csv")
	if _, err := os.Stat(dir + "/other.csv"); err == nil {
		t.Error("something was written")
	}
}

// predictsAdded: new users of the graph are predicted as in a graph of all tables; what does not fit is said.
func predictsAdded(t *testing.T, dir string) {
	t.Helper()
	whole := readFile(t, dir, "users.csv") + "zoe,40,Oslo,,\nyan,,Rome,,\n"
	badFile(t, dir, "all-users.csv", whole)
	badFile(t, dir, "all-buys.csv", readFile(t, dir, "buys.csv")+"zoe,1001,\nyan,1003,\nyan,1001,\n")
	badFile(t, dir, "all.yaml", strings.ReplaceAll(strings.ReplaceAll(readFile(t, dir, "shop.yaml"), "users.csv", "all-users.csv"),
		"buys.csv", "all-buys.csv"))
	works(t, dir, "import", "schema", "all.yaml", "--like", "shop-model", "--out", "all", "--quiet")
	works(t, dir, "predict", "shop-model", "all", "--out", "all.csv", "--quiet")
	_, last, _ := strings.Cut(readFile(t, dir, "all.csv"), "eve,")
	_, last, _ = strings.Cut(last, "\n")
	if got := readFile(t, dir, "new.csv"); got != "id,label,probability\n"+last || !strings.HasPrefix(last, "zoe,no,0.") {
		t.Errorf("%s, and in one graph %s", got, last)
	}
	for _, c := range []struct {
		says string
		args []string
	}{
		{"--graph: found shop, with shop, want a schema", []string{"shop"}},
		{"--graph: found it with --what scores", []string{"new.yaml", "--what", "scores", "--top", "3"}},
		{"new.yaml: nodes: found no type item", []string{"new.yaml", "--what", "embeddings", "--type", "item"}},
		{"--edges, --features: found one of them, with a schema", []string{"new.yaml", "--edges", "bought.csv"}},
	} {
		refuses(t, dir, []string{c.says}, append([]string{"predict", "shop-model", "--graph", "shop", "--out", "other.csv"},
			c.args...)...)
	}
	badFile(t, dir, "bought.csv", "user,item\nzoe,1007\n")
	refuses(t, dir, []string{`bought.csv: line 2, column item: found "1007", want an id of type item in shop`}, "predict", "shop-model",
		"new.yaml", "--graph", "shop", "--out", "other.csv")
}

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
	var ask func(path, body string) string
	curl := regexp.MustCompile(`^curl -d '(.*)' http://127\.0\.0\.1:8080(/\w+)$`)
	out, commands, python := "", 0, regexp.MustCompile("(?s)```python\n.*?```")
	for _, line := range strings.Split(string(python.ReplaceAll(file.ReplaceAll(page, nil), nil)), "\n") {
		text, indented := strings.CutPrefix(line, "    ")
		switch args := strings.Fields(text); {
		case !indented:
		case strings.HasPrefix(text, "starling serve "):
			ask = serving(t, dir, args[2], args[3])
		case strings.HasPrefix(text, "curl "):
			if m := curl.FindStringSubmatch(text); m == nil || !strings.Contains(ask(m[2], m[1]), `"class":"no"`) {
				t.Errorf("%s: %v", text, m)
			}
		case strings.HasPrefix(text, "starling "):
			commands++
			out = works(t, dir, args[1:]...).stdout
		case !strings.Contains(out, text+"\n"):
			t.Errorf("%q is not in\n%s", text, out)
		}
	}
	if commands != 11 {
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
	servesShop(t, dir)
	predictsAdded(t, dir)
	predictsTables(t, dir)
	works(t, dir, "info", "shop", "--html", "shop.html")
	for _, says := range []string{"<td>user buys item</td><td>6</td><td>2.00</td><td>0</td><td>bought_by</td>",
		"<td>user</td><td>5</td><td>0</td><td>4 float32, standardized</td><td>2 classes</td><td>0</td><td>3</td><td>1</td><td>1</td>",
		"Classes of user", "<td>user: age</td>", "numbers are large in item: price;"} {
		if page := readFile(t, dir, "shop.html"); !strings.Contains(page, says) {
			t.Errorf("%q is not in the page of info:\n%s", says, page)
		}
	}
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

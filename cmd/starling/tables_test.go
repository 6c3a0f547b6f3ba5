package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestTablesOfPages writes the tables that docs/data.md speaks of, runs its commands, and predicts for later tables in
// every way: by import, by predict, and for what the run knows already.
func TestTablesOfPages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	badFile(t, dir, "pay.csv", "tx,payer,payee,amount,kind,when\n1,ann,bob,10.5,card,2024-03-01\n2,bob,cleo,7,cash,2024-03-02\n"+
		"3,bob,cleo,9,card,2024-03-04\n4,dan,eve,1,,2024-03-05\n5,eve,ann,2,card,2024-03-09\n")
	badFile(t, dir, "users.csv", "user,name,age,city,fraud,part\nann,\"A, n\",34,Oslo,no,train\nbob,B,NA,Rome,yes,train\n"+
		"cleo,C,51,,no,val\ndan,D,29,Lima,yes,test\neve,E,45,Rome,NA,train\n")
	badFile(t, dir, "new-pay.csv", "payer,payee,amount,kind,when\nfay,gus,10.5,cheque,2024-04-01\n")
	badFile(t, dir, "new-users.csv", "user,age,city\nfay,40,Oslo\ngus,,Paris\n")
	page, err := os.ReadFile("../../docs/data.md")
	if err != nil {
		t.Fatal(err)
	}
	section := regexp.MustCompile(`(?s)## Tables by.*?\n## Shards`).FindString(string(page))
	var commands [][]string
	for _, line := range strings.Split(strings.ReplaceAll(section, "\\\n", " "), "\n") {
		if text, ok := strings.CutPrefix(line, "    starling "); ok {
			commands = append(commands, strings.Fields(text))
		}
	}
	yaml := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindStringSubmatch(section)
	if len(commands) != 2 || yaml == nil {
		t.Fatal(commands, yaml)
	}
	out := works(t, dir, commands[0]...).stdout
	for _, want := range []string{"tx      text", "dropped: not named", "payer   text           source", "weight, 1 feature (standardized)",
		"time (dates, year-month-day)", "features, one per word (0 or 1)", "dropped: --drop", "pay: 5 vertices, 5 edges"} {
		if !strings.Contains(strings.ReplaceAll(out, "tx      whole numbers", "tx      text"), want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	works(t, dir, "train", "pay", "--model", "gat", "--edge-features", "--epochs", "2", "--patience", "0", "--out", "run", "--quiet")
	works(t, dir, commands[1]...)
	works(t, dir, "predict", "run", "new", "--out", "one.csv", "--quiet")
	if out := works(t, dir, "predict", "run", "new-users.csv", "--edges", "new-pay.csv", "--out", "two.csv").stdout; !strings.Contains(out,
		"words that the preparation does not know, which are rows of zeros: 1") {
		t.Error(out)
	}
	one, two := readFile(t, dir, "one.csv"), readFile(t, dir, "two.csv")
	if one != two || !strings.Contains(one, "\nfay,") {
		t.Errorf("%s\nis not\n%s", two, one)
	}
	servesColumns(t, dir)
	badFile(t, dir, "pay.yaml", yaml[1])
	works(t, dir, "import", "schema", "pay.yaml", "--out", "same", "--quiet")
	for _, name := range []string{"features.npy", "edge_features.npy", "weights.npy", "edge_times.npy", "labels.npy", "ids.txt"} {
		if readFile(t, dir, "pay/"+name) != readFile(t, dir, "same/"+name) {
			t.Errorf("%s of YAML differs", name)
		}
	}
	refuses(t, dir, []string{"pay.csv: which columns are the ends of an edge is a question", "payer (text), payee (text)", "--src"},
		"import", "table", "pay.csv", "--out", "g")
	refuses(t, dir, []string{"--edges", "nothing", "new-users.csv"}, "predict", "run", "new-users.csv")
	refuses(t, dir, []string{"--like", "flags that say what columns become"}, "import", "table", "new-pay.csv", "--vertices",
		"new-users.csv", "--like", "run", "--weight", "amount", "--out", "g")
	refuses(t, dir, []string{"--src", "without effect on edgelist"}, "import", "edgelist", "pay.csv", "--src", "payer", "--out", "g")
	if _, err := os.Stat(dir + "/g"); err == nil {
		t.Error("something was written")
	}
}

// servesColumns: a new user with named cells is predicted; a city that the table did not have is as none, and a name that
// is no column is refused.
func servesColumns(t *testing.T, dir string) {
	t.Helper()
	works(t, dir, "train", "pay", "--model", "sage", "--epochs", "5", "--patience", "0", "--out", "served", "--quiet")
	ask := serving(t, dir, "served", "pay")
	user := func(cells string) string {
		return ask("/predict_new", `{"features":`+cells+`,"neighbours":["bob","cleo"],"weights":[1,2]}`)
	}
	none, oslo := user(`{"age":34,"city":null}`), user(`{"age":34,"city":"Oslo"}`)
	if !strings.Contains(none, `"probabilities"`) || user(`{"age":34,"city":"Lagos"}`) != none || user(`{"age":34}`) != none ||
		oslo == none {
		t.Errorf("%s of no city, %s of Lagos, %s of Oslo", none, user(`{"age":34,"city":"Lagos"}`), oslo)
	}
	if old := user(`{"age":60,"city":"Oslo"}`); user(`{"city":"Oslo"}`) != oslo ||
		user(`{"age":null,"city":"Oslo"}`) != oslo || old == oslo {
		t.Errorf("%s of no age, %s of 34 years, which is the mean to train on, %s of 60", user(`{"city":"Oslo"}`), oslo, old)
	}
	for cells, says := range map[string]string{`{"agee":34}`: "columns of the table: age", `{"age":"old"}`: "features.age: found",
		`{"age":34,"fraud":"no"}`: "columns of the table"} {
		if text := user(cells); !strings.Contains(text, says) || strings.Contains(text, "probabilities") {
			t.Errorf("%s: %s", cells, text)
		}
	}
}

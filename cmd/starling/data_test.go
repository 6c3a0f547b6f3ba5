package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
)

// members writes the files of a user's own graph into a folder: edges with weights, labels that are
// words, features with holes and words, and splits.
func members(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	var edges, labels, features, splits strings.Builder
	edges.WriteString("source,target,weight\n")
	labels.WriteString("id,label\n")
	features.WriteString("id,age,income,city\n")
	for v := range 120 {
		for k := range 3 {
			fmt.Fprintf(&edges, "user:%04d,user:%04d,%g\n", v, (v+3*(k*k+1))%120, 0.5+float64(k))
		}
		fmt.Fprintf(&labels, "user:%04d,%s\n", v, []string{"gold", "silver", "bronze"}[v%3])
		age := fmt.Sprint(20 + v%3*5)
		if v%10 == 0 {
			age = ""
		}
		fmt.Fprintf(&features, "user:%04d,%s,%d,%s\n", v, age, 10000*(v%3)+v*17, []string{"Oslo", "Rome"}[v%2])
		fmt.Fprintf(&splits, "user:%04d,%s\n", v, []string{"train", "val", "test"}[v/3%3])
	}
	for name, text := range map[string]string{"edges.csv": edges.String(), "labels.csv": labels.String(),
		"people.csv": features.String(), "splits.csv": splits.String()} {
		badFile(t, dir, name, text)
	}
	return dir
}

// The way of a table of people: imported, looked at, trained on, predicted, served.
func TestOwnTables(t *testing.T) {
	t.Parallel()
	dir := members(t)
	from := []string{"import", "edgelist", "edges.csv", "--labels", "labels.csv", "--features", "people.csv", "--splits", "splits.csv"}
	with := func(more ...string) []string { return append(append([]string{}, from...), more...) }
	refuses(t, dir, []string{"people.csv: line 2, column 2 (age)", `found ""`, "--missing"}, with("--one-hot", "city", "--out", "g")...)
	refuses(t, dir, []string{"line 2, column 4 (city)", `"Oslo"`, "--one-hot"}, with("--missing", "mean", "--out", "g")...)
	raw := works(t, dir, with("--missing", "mean", "--one-hot", "city", "--out", "raw")...).stdout
	if !strings.Contains(raw, "--weights takes it") || !strings.Contains(raw, "directed: 0.0%") {
		t.Error(raw)
	}
	works(t, dir, with("--missing", "mean", "--one-hot", "city", "--standardise", "--undirected", "--weights", "--out", "g", "--quiet")...)
	info := result(t, works(t, dir, "info", "raw", "--estimate=false", "--json", "-").stdout)
	if names := fmt.Sprint(info["class_names"]); names != "[bronze gold silver]" {
		t.Error(names)
	}
	if w := fmt.Sprint(info["warnings"]); !strings.Contains(w, "column 1 (income)") || !strings.Contains(w, "--standardize") {
		t.Error(w)
	}
	text := works(t, dir, "info", "g", "--estimate=false").stdout
	for _, want := range []string{"gold: 33.3%", "standardized", "weights      0.5 to 2.5"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	// On several workers too: partitions carry names and scale.
	works(t, dir, "train", "g", "--model", "sage", "--layers", "1", "--epochs", "60", "--out", "run", "--quiet", "--workers", "2")
	var config struct {
		ClassNames []string `json:"class_names"`
		Features   struct {
			Columns []string
			Scale   struct{ Mean []float64 }
		}
	}
	if err := json.Unmarshal([]byte(readFile(t, dir, "run/config.json")), &config); err != nil || len(config.ClassNames) != 3 ||
		fmt.Sprint(config.Features.Columns) != "[age income city=Oslo city=Rome]" || len(config.Features.Scale.Mean) != 4 {
		t.Errorf("%+v %v", config, err)
	}
	works(t, dir, "predict", "run", "g", "--out", "labels.csv.out.csv")
	lines := strings.Split(readFile(t, dir, "labels.csv.out.csv"), "\n")
	if lines[0] != "id,label,probability" || !regexp.MustCompile(`^user:0000,(gold|silver|bronze),0\.\d+$`).MatchString(lines[1]) {
		t.Errorf("%q", lines[:2])
	}
	servesNames(t, dir)
}

// servesNames asks about a vertex, and about a new one that has its neighbours and its features as the table has them,
// not as the dataset does.
func servesNames(t *testing.T, dir string) {
	t.Helper()
	server := start(t, dir, "serve", "run", "g", "--listen", "127.0.0.1:0")
	address := server.until(t, `^answering .*(http://\S+)`)[1]
	defer server.Process.Kill()
	ask := func(path, body string) string {
		a, err := http.Post(address+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer a.Body.Close()
		b, _ := io.ReadAll(a.Body)
		return string(b)
	}
	old := ask("/predict", `{"vertices":["user:0001"]}`)
	fresh := ask("/predict_new", `{"features":[25,10017,0,1],"weights":[0.5,1.5,2.5,0.5,1.5,2.5],
		"neighbours":["user:0004","user:0007","user:0016","user:0118","user:0115","user:0106"]}`)
	class := regexp.MustCompile(`"class":"(gold|silver|bronze)","probabilities":\[(0\.\d{4})\d*,(0\.\d{4})`)
	want, got := class.FindStringSubmatch(old), class.FindStringSubmatch(fresh)
	if want == nil || got == nil || fmt.Sprint(want[1:]) != fmt.Sprint(got[1:]) {
		t.Errorf("%s of a vertex, %s of one like it", old, fresh)
	}
}

// A graph alone learns from its edges; what is missing is named together with what makes it.
func TestGraphAlone(t *testing.T) {
	t.Parallel()
	dir := members(t)
	works(t, dir, "import", "edgelist", "edges.csv", "--out", "alone", "--quiet")
	refuses(t, dir, []string{"no features", "--features-from degree, one-hot, random or position"}, "train", "alone", "--task", "link")
	for _, from := range []string{"degree", "one-hot", "random", "position:8"} {
		works(t, dir, "import", "edgelist", "edges.csv", "--symmetrize", "--features-from", from, "--out", "g", "--overwrite", "--quiet")
		works(t, dir, "train", "g", "--task", "link", "--epochs", "3", "--quiet")
	}
	refuses(t, dir, []string{"no labels", "--task link"}, "train", "g")
}

func TestWeightsThatAreNotLookedAt(t *testing.T) {
	t.Parallel()
	dir := members(t)
	badFile(t, dir, "minus.csv", "source,target,weight\n0,1,-1\n1,2,1\n2,0,1\n")
	with := []string{"--weights", "--labels", "labels.csv", "--features-from", "random", "--out", "g", "--overwrite", "--quiet"}
	works(t, dir, append([]string{"import", "edgelist", "edges.csv"}, with...)...)
	for model, warned := range map[string]bool{"gat": true, "mlp": true, "gcn": false, "sage": false, "gin": false} {
		o := works(t, dir, "train", "g", "--model", model, "--epochs", "2")
		if got := strings.Contains(o.stdout+o.stderr, "--model "+model+" does not look at the weights of edges"); got != warned {
			t.Errorf("%s: warned %v, want %v\n%s", model, got, warned, o.stdout+o.stderr)
		}
	}
	badFile(t, dir, "l.csv", "0,0\n1,1\n2,0\n")
	args := []string{"import", "edgelist", "minus.csv", "--weights", "--labels", "l.csv", "--train", "1", "--features-from", "random", "--out", "m", "--quiet"}
	refuses(t, dir, []string{"line 2", "--negative-weights"}, args...)
	works(t, dir, append(args, "--negative-weights")...)
	refuses(t, dir, []string{"weights: found -1", "--model gcn", "sage or gin"}, "train", "m", "--model", "gcn")
	refuses(t, dir, []string{"weights: found -1", "--model gcn"}, "train", "m", "--model", "gcn", "--workers", "2")
	works(t, dir, "train", "m", "--model", "sage", "--epochs", "2", "--quiet")
	if text := works(t, dir, "info", "m", "--estimate=false").stdout; !strings.Contains(text, "weights below 0") {
		t.Error(text)
	}
}

// The first run needs no network.
func TestDemoDataset(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	works(t, dir, "get", "demo", "--quiet")
	m := result(t, works(t, dir, "train", "demo", "--epochs", "100", "--json", "-", "--quiet").stdout)
	if a := m["test_accuracy"].(float64); a < 0.7 {
		t.Errorf("test accuracy %g", a)
	}
}

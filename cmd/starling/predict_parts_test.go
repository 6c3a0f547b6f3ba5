package main

import (
	"encoding/csv"
	"io"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// A prediction on one worker per part is that on the dataset.
func TestPredictOverParts(t *testing.T) {
	t.Parallel()
	dir := small(t)
	works(t, dir, "partition", "graph", "--parts", "3", "--out", "parts", "--quiet")
	for _, model := range []string{"gcn", "sage", "gat --heads 2"} {
		works(t, dir, trainArgs(append(strings.Fields("--out run --overwrite --quiet --model "+model),
			"--row-normalize")...)...)
		for _, what := range []string{"labels", "probabilities", "embeddings"} {
			whole := works(t, dir, "predict", "run", "graph", "--what", what, "--out", "a.csv", "--overwrite", "--json",
				"-").stdout
			parts := works(t, dir, "predict", "run", "parts", "--what", what, "--out", "b.csv", "--workers", "3",
				"--overwrite", "--json", "-").stdout
			sameTable(t, model+", "+what, readFile(t, dir, "a.csv"), readFile(t, dir, "b.csv"))
			a, b := result(t, whole), result(t, parts)
			if x, y := a["accuracy"], b["accuracy"]; what == "labels" && (x == nil || !sameNumbers(x, y)) ||
				b["workers"] != 3.0 {
				t.Errorf("%s: %s, want %s", model, parts, whole)
			}
		}
		nothingLeft(t, dir)
	}
	refuses(t, dir, []string{"--workers", "3, one per part"}, "predict", "run", "parts", "--workers", "2")
	refuses(t, dir, []string{"--workers", "starling partition graph"}, "predict", "run", "graph", "--workers", "2")
}

// sameNumbers compares two objects of numbers.
func sameNumbers(a, b any) bool {
	x, ok := a.(map[string]any)
	y, also := b.(map[string]any)
	for key := range x {
		if x[key] != y[key] {
			return false
		}
	}
	return ok && also && len(x) == len(y)
}

// sameTable compares tables of which numbers may differ in their last digits.
func sameTable(t *testing.T, what, a, b string) {
	t.Helper()
	x, err := csv.NewReader(strings.NewReader(a)).ReadAll()
	y, also := csv.NewReader(strings.NewReader(b)).ReadAll()
	if err != nil || also != nil || len(x) != len(y) || len(x) < 400 {
		t.Fatalf("%s: %d and %d lines, %v %v", what, len(x), len(y), err, also)
	}
	for i := range x {
		for j := range x[i] {
			p, err := strconv.ParseFloat(x[i][j], 64)
			q, _ := strconv.ParseFloat(y[i][j], 64)
			if err != nil && x[i][j] != y[i][j] || err == nil && !(math.Abs(p-q) <= 1e-4*(1+math.Abs(p))) {
				t.Fatalf("%s: line %d: %v, over parts %v", what, i, x[i], y[i])
			}
		}
	}
}

// A server of a partition answers as that of the dataset about vertices, and refuses new ones.
func TestServeOverParts(t *testing.T) {
	t.Parallel()
	dir := small(t)
	works(t, dir, "partition", "graph", "--parts", "2", "--out", "parts", "--quiet")
	works(t, dir, trainArgs("--out", "run", "--quiet")...)
	replies := map[string][]string{}
	for _, data := range []string{"graph", "parts"} {
		server := start(t, dir, "serve", "run", data, "--listen", "127.0.0.1:0")
		server.until(t, `^answering `)
		at := regexp.MustCompile(`http://\S+`).FindString(server.stdout.String())
		for _, ask := range []string{`/predict {"vertices":[0,399,7]}`, `/embeddings {"vertices":[5]}`,
			`/nearest {"vertex":3,"k":4}`, `/predict_new {"features":[0],"neighbours":[1]}`} {
			path, body, _ := strings.Cut(ask, " ")
			r, err := http.Post(at+path, "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			text, _ := io.ReadAll(r.Body)
			r.Body.Close()
			replies[data] = append(replies[data], string(text))
		}
		server.Process.Kill()
		server.end()
	}
	digits := regexp.MustCompile(`-?\d+\.\d+(e-?\d+)?`)
	for i, want := range replies["graph"][:3] {
		got := replies["parts"][i]
		if len(want) < 20 || digits.ReplaceAllString(got, "N") != digits.ReplaceAllString(want, "N") {
			t.Errorf("%s, on the dataset %s", got, want)
		}
		x, y := digits.FindAllString(got, -1), digits.FindAllString(want, -1)
		for j := range min(len(x), len(y)) {
			p, _ := strconv.ParseFloat(x[j], 64)
			if q, _ := strconv.ParseFloat(y[j], 64); !(math.Abs(p-q) <= 1e-4) {
				t.Errorf("%s, on the dataset %s", got, want)
				break
			}
		}
	}
	if last := replies["parts"][3]; !strings.Contains(last, "partition") {
		t.Error(last)
	}
}

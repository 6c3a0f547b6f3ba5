package main

import (
	"math"
	"strings"
	"testing"
)

// typedGraph generates one with three types, two of them without features.
func typedGraph(t *testing.T, dir string) {
	t.Helper()
	works(t, dir, "generate", "typed", "--like", "small", "--scale", "0.2", "--out", "graph", "--quiet")
}

// TestPredictTypedOverParts: predictions of a typed model on one worker per part are those on the dataset, and so are the
// embeddings of each type.
func TestPredictTypedOverParts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	typedGraph(t, dir)
	works(t, dir, "partition", "graph", "--parts", "3", "--out", "parts", "--quiet")
	for _, model := range []string{"rgcn", "hsage", "rgat"} {
		works(t, dir, "train", "graph", "--model", model, "--hidden", "16", "--layers", "2", "--epochs", "3", "--out", "run",
			"--overwrite", "--quiet")
		for _, ask := range []string{"labels", "probabilities", "embeddings", "embeddings --type author",
			"embeddings --type paper"} {
			more := append([]string{"--overwrite", "--json", "-", "--what"}, strings.Fields(ask)...)
			whole := works(t, dir, append([]string{"predict", "run", "graph", "--out", "a.csv"}, more...)...).stdout
			parts := works(t, dir, append([]string{"predict", "run", "parts", "--out", "b.csv"}, more...)...).stdout
			one := readFile(t, dir, "a.csv")
			sameTable(t, model+", "+ask, one, readFile(t, dir, "b.csv"))
			a, b := result(t, whole), result(t, parts)
			if a["target"] != b["target"] || ask == "labels" && (a["accuracy"] == nil || !sameNumbers(a["accuracy"], b["accuracy"])) {
				t.Errorf("%s, %s: %s, want %s", model, ask, parts, whole)
			}
			if ask == "embeddings --type author" && (strings.Count(one, "\n") != 601 || strings.Count(one, strings.Repeat(",0", 16)) > 60) {
				t.Errorf("%s: embeddings of authors:\n%.300s", model, one)
			}
		}
	}
	refuses(t, dir, []string{`--type: found "author"`, `"paper", whose labels`}, "predict", "run", "graph", "--type", "author")
	refuses(t, dir, []string{`found "book"`, "one of paper, author, field"}, "predict", "run", "parts", "--type", "book",
		"--what", "embeddings")
}

// TestInitFromTyped: a run that starts from another has its learnt rows too, on any number of workers and in both modes;
// rows of other vertices are learnt anew, which is said.
func TestInitFromTyped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	typedGraph(t, dir)
	settings := []string{"--model", "rgcn", "--hidden", "16", "--layers", "2", "--dropout", "0", "--json", "-", "--overwrite"}
	train := func(data string, more ...string) map[string]any {
		return result(t, works(t, dir, append(append([]string{"train", data}, settings...), more...)...).stdout)
	}
	first := train("graph", "--epochs", "20", "--out", "first")
	if first["learnt_parameters"] != 640*16.0 {
		t.Errorf("%v learnt parameters", first["learnt_parameters"])
	}
	// A loss is of the weights before the epoch's step, so that the best weights have that of the epoch after the best.
	losses, best := first["loss"].([]any), int(first["best_epoch"].(float64))
	if best+1 == len(losses) {
		t.Fatalf("the best epoch is the last: %v", first["val_accuracy"])
	}
	want := losses[best+1].(float64)
	for _, more := range []string{"", "--workers 2", "--workers 2 --mode mini --fanout 500,500 --batch-size 1000",
		"--mode mini --fanout 500,500 --batch-size 1000"} {
		again := train("graph", append([]string{"--epochs", "1", "--lr", "1e-9", "--init-from", "first"},
			strings.Fields(more)...)...)
		if loss := again["loss"].([]any)[0].(float64); !(math.Abs(loss-want) < 1e-5*want) {
			t.Errorf("%s: a first loss of %v, want %v", more, loss, want)
		}
	}
	works(t, dir, "train", "graph", "--model", "rgcn", "--hidden", "16", "--layers", "2", "--epochs", "1", "--lr", "1e-9",
		"--init-from", "first", "--out", "second", "--quiet")
	works(t, dir, "predict", "first", "graph", "--what", "probabilities", "--out", "a.csv", "--quiet")
	works(t, dir, "predict", "second", "graph", "--what", "probabilities", "--out", "b.csv", "--quiet")
	sameTable(t, "the same weights and rows", readFile(t, dir, "a.csv"), readFile(t, dir, "b.csv"))
	works(t, dir, "generate", "typed", "--like", "small", "--scale", "0.3", "--out", "larger", "--quiet")
	said := works(t, dir, append([]string{"train", "larger", "--epochs", "1", "--init-from", "first"}, settings...)...)
	if text := said.stdout + said.stderr; !strings.Contains(text, "the rows of author are learnt anew: its vertices are others than those of first") {
		t.Error(text)
	}
}

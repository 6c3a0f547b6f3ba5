package main

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// serving starts a server, which ends with the test, and asks it.
func serving(t *testing.T, dir, run, data string) (ask func(path, body string) string) {
	t.Helper()
	server := start(t, dir, "serve", run, data, "--listen", "127.0.0.1:0")
	address := server.until(t, `^answering .*(http://\S+)`)[1]
	t.Cleanup(func() {
		server.Process.Kill()
		server.end()
	})
	return func(path, body string) string {
		t.Helper()
		r, err := http.Post(address+path, "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		text, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

// served is a vertex in an answer.
type served struct {
	Vertex        json.RawMessage
	Label         int
	Class         string
	Probabilities []float64
	Embedding     []float64
}

func servedAs(t *testing.T, text, field string) (list []served) {
	t.Helper()
	all := map[string]json.RawMessage{}
	if err := json.Unmarshal([]byte(text), &all); err != nil || json.Unmarshal(all[field], &list) != nil || len(list) == 0 {
		t.Fatalf("%s: %v in %.300s", field, err, text)
	}
	return list
}

// sameRow compares the numbers of an answer with those of a line of a table.
func sameRow(t *testing.T, what string, got []float64, line []string, tolerance float64) {
	t.Helper()
	for i, cell := range line {
		want, err := strconv.ParseFloat(cell, 64)
		if err != nil || len(got) != len(line) || !(math.Abs(got[i]-want) <= tolerance*(1+math.Abs(want))) {
			t.Fatalf("%s: %v, want %v", what, got, line)
		}
	}
}

// TestServeTyped: a server of a typed graph, and one of its parts, answer what predict writes.
func TestServeTyped(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	typedGraph(t, dir)
	works(t, dir, "partition", "graph", "--parts", "2", "--out", "parts", "--quiet")
	for _, model := range []string{"rgcn", "rgat", "hgt"} {
		works(t, dir, "train", "graph", "--model", model, "--hidden", "16", "--layers", "2", "--epochs", "2", "--out", "run",
			"--overwrite", "--quiet")
		for data, tolerance := range map[string]float64{"graph": 0, "parts": 1e-4} {
			ask := serving(t, dir, "run", data)
			for _, kind := range []string{"paper", "author", "field"} {
				what, path, field := []string{"--what", "embeddings", "--type", kind}, "/embeddings", "embeddings"
				if kind == "paper" {
					what, path, field = []string{"--what", "probabilities"}, "/predict", "predictions"
				}
				works(t, dir, append([]string{"predict", "run", "graph", "--out", "out.csv", "--overwrite", "--quiet"}, what...)...)
				table, err := csv.NewReader(strings.NewReader(readFile(t, dir, "out.csv"))).ReadAll()
				if err != nil {
					t.Fatal(err)
				}
				var names []string
				for v := 0; v < len(table)-1; v += 7 {
					names = append(names, table[v+1][0])
				}
				body := fmt.Sprintf(`{"type":%q,"vertices":[%s]}`, kind, strings.Join(names, ","))
				for i, x := range servedAs(t, ask(path, body), field) {
					line := table[7*i+1]
					if string(x.Vertex) != line[0] {
						t.Fatalf("vertex %s, want %s", x.Vertex, line[0])
					}
					numbers := x.Embedding
					if kind == "paper" {
						numbers = x.Probabilities
					}
					// Both have the fewest digits that read back as the same float32.
					sameRow(t, model+" of "+data+", "+kind, numbers, line[1:], tolerance)
				}
			}
			if data == "parts" {
				if text := ask("/predict_new", `{"features":[0]}`); !strings.Contains(text, "started on a partition") {
					t.Error(text)
				}
			}
		}
	}
}

// TestServeTypedLinks: pairs of a relation have the scores that predict writes, and partners are those that it finds.
func TestServeTypedLinks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	typedGraph(t, dir)
	works(t, dir, "train", "graph", "--task", "link", "--target", "author writes paper", "--model", "rgcn", "--hidden", "16",
		"--epochs", "2", "--out", "run", "--quiet")
	badFile(t, dir, "pairs.csv", "0,1\n5,3\n17,90\n")
	works(t, dir, "predict", "run", "graph", "--pairs", "pairs.csv", "--out", "scores.csv", "--quiet")
	works(t, dir, "predict", "run", "graph", "--top", "4", "--vertex", "5", "--out", "top.csv", "--quiet")
	ask := serving(t, dir, "run", "graph")
	scores := "source,target,score\n"
	var got struct {
		Scores []struct {
			Source, Target json.Number
			Score          float32
		}
		Partners []struct {
			Vertex json.Number
			Score  float32
		}
	}
	for _, body := range []string{`{"pairs":[[0,1],[5,3],[17,90]]}`, `{"relation":"writes","pairs":[[0,1],[5,3],[17,90]]}`} {
		if err := json.Unmarshal([]byte(ask("/score", body)), &got); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range got.Scores {
		scores += fmt.Sprintf("%s,%s,%g\n", x.Source, x.Target, x.Score)
	}
	if want := readFile(t, dir, "scores.csv"); scores != want {
		t.Errorf("%s, predicted %s", scores, want)
	}
	if err := json.Unmarshal([]byte(ask("/partners", `{"vertex":5,"k":4}`)), &got); err != nil {
		t.Fatal(err)
	}
	top := "source,target,score\n"
	for _, x := range got.Partners {
		top += fmt.Sprintf("5,%s,%g\n", x.Vertex, x.Score)
	}
	if want := readFile(t, dir, "top.csv"); top != want {
		t.Errorf("%s, predicted %s", top, want)
	}
}

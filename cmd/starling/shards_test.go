package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

// shardsOf writes edges over shards in the folder web.
func shardsOf(t *testing.T, dir string, shards, edges int, id func(r *rand.Rand) string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(dir, "web"), 0o777); err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for k := range shards {
		var b bytes.Buffer
		for range edges {
			fmt.Fprintf(&b, "%s,%s\n", id(r), id(r))
		}
		if err := os.WriteFile(filepath.Join(dir, "web", fmt.Sprintf("edges-%d.csv", k)), b.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

// sameFolders compares all files.
func sameFolders(t *testing.T, a, b string) {
	t.Helper()
	if out, err := exec.Command("diff", "-r", "-x", "settings.json", a, b).CombinedOutput(); err != nil {
		t.Errorf("%s and %s differ: %s", a, b, out)
	}
}

// killed starts a command, and kills it with all its processes after a while, again and again; then it runs to its end.
func killed(t *testing.T, dir string, after []time.Duration, args ...string) output {
	t.Helper()
	interrupted := 0
	for _, wait := range after {
		c := in(t, dir, exec.Command(binary, args...))
		if err := c.Start(); err != nil {
			t.Fatal(err)
		}
		end := time.AfterFunc(wait, func() { c.Process.Kill() })
		if c.Wait() != nil {
			interrupted++
		}
		end.Stop()
	}
	t.Logf("killed %d times", interrupted)
	return works(t, dir, args...)
}

func TestImportInShards(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	shardsOf(t, dir, 5, 20_000, func(r *rand.Rand) string { return fmt.Sprintf("user-%x", 7919*r.IntN(1+r.IntN(9000))) })
	var nodes bytes.Buffer
	fmt.Fprintln(&nodes, "id,label,split,x,y")
	for i := range 9000 {
		fmt.Fprintf(&nodes, "user-%x,%s,%s,%d,%d\n", 7919*i, []string{"good", "bad"}[i%2], []string{"train", "val", "test"}[i%3], i%2, i%7)
	}
	writeFile(t, dir, "web/nodes.csv", nodes.String())
	args := func(out, workers string) []string {
		return strings.Fields("import edgelist web --out " + out + " --memory 1MiB --quiet --symmetrize --workers " + workers)
	}
	works(t, dir, args("one", "1")...)
	works(t, dir, args("three", "3")...)
	sameFolders(t, filepath.Join(dir, "one"), filepath.Join(dir, "three"))
	var after []time.Duration
	for i := range 6 {
		after = append(after, time.Duration(20+60*i)*time.Millisecond)
	}
	killed(t, dir, after, args("again", "2")...)
	sameFolders(t, filepath.Join(dir, "one"), filepath.Join(dir, "again"))
	works(t, dir, strings.Fields("partition one --parts 3 --method fennel --out parts --quiet")...)
	killed(t, dir, after, strings.Fields("partition again --parts 3 --method fennel --out again-parts --quiet --processes 2 --memory 1MiB")...)
	sameFolders(t, filepath.Join(dir, "parts"), filepath.Join(dir, "again-parts"))
	for _, data := range []string{"again", "again-parts"} { // in pieces, and parts of it
		works(t, dir, "train", data, "--epochs", "3", "--hidden", "8", "--quiet", "--out", "run-"+data)
	}
	works(t, dir, "predict", "run-again-parts", "again", "--out", "predicted.csv", "--quiet")
	if text := readFile(t, dir, "predicted.csv"); strings.Count(text, "\n") != 9001 || !strings.Contains(text, "user-1eef,") {
		t.Errorf("%.200s", text)
	}
	if pieces, _ := filepath.Glob(filepath.Join(dir, "again", "features-*.npy")); len(pieces) < 2 {
		t.Errorf("features are in %d pieces", len(pieces))
	}
	var losses []any
	for _, on := range []string{"host", "disk"} { // rows of pieces are found in their files
		text := works(t, dir, "train", "again", "--mode", "mini", "--epochs", "2", "--hidden", "8", "--quiet",
			"--features-on", on, "--json", "-").stdout
		losses = append(losses, result(t, text)["loss"])
	}
	if !reflect.DeepEqual(losses[0], losses[1]) {
		t.Errorf("losses %v, from disk %v", losses[0], losses[1])
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); left != nil {
		t.Errorf("left behind: %v", left)
	}
	works(t, dir, args("one", "2")...) // is there already
	refuses(t, dir, []string{"one", "an existing dataset"}, "import", "edgelist", "web", "--out", "one", "--workers", "1")
}

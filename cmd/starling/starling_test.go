package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// binary is the real command, built once, without what a debugger needs.
var binary string

// builtCommit is the commit that it shows.
const builtCommit = "0123456789ab"

func TestMain(m *testing.M) {
	if os.Getenv(toyVar) != "" {
		main()
	}
	for _, name := range ofLaunchers {
		os.Setenv(name, "") // of what runs these tests
	}
	if built := os.Getenv(ownHostVar); built != "" {
		binary = built
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "starling-test-*")
	if err != nil {
		panic(err)
	}
	whenStopped(dir)
	if os.Getenv(stoppedVar) != "" {
		waitToBeStopped(dir)
	}
	binary = filepath.Join(dir, "starling")
	build := exec.Command("go", "build", "-buildvcs=false", "-ldflags", "-s -w -X starling/internal/version.commit="+
		builtCommit, "-o", binary, ".")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		panic(err)
	}
	os.Setenv("TMPDIR", dir) // of all tests, so that it goes with their folders when they are stopped
	beside()
	status := m.Run()
	endBrowser()
	os.RemoveAll(dir)
	os.Exit(status)
}

// beside has more tests run beside each other than there are cores: those that may mostly
// wait, until a worker is missed or a handshake is too slow.
func beside() {
	const tests = 6
	flag.Parse()
	if f := flag.Lookup("test.parallel"); f.Value.String() == f.DefValue && runtime.GOMAXPROCS(0) < tests {
		flag.Set(f.Name, fmt.Sprint(tests))
	}
}

// hang is how long a test waits for what must come. A machine with other work is slow; a
// hang is for ever.
const hang = 3 * time.Minute

// output is how a command ended.
type output struct {
	status         int
	stdout, stderr string
}

// starling runs the command in a folder.
func starling(t *testing.T, dir string, args ...string) output {
	t.Helper()
	return command(t, dir, binary, args...)
}

// command runs a program to its end.
func command(t *testing.T, dir, program string, args ...string) output {
	t.Helper()
	return finish(t, in(t, dir, exec.Command(program, args...)))
}

// in has a command work in a folder, with temporary files beside it: what a run leaves behind is looked for where
// no other test's is.
func in(t *testing.T, dir string, c *exec.Cmd) *exec.Cmd {
	t.Helper()
	if err := os.MkdirAll(temporary(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	c.Dir, c.Env = dir, append(c.Environ(), "TMPDIR="+temporary(dir))
	return c
}

// temporary is where commands in a test's folder have their temporary files. It goes with the folder.
func temporary(dir string) string { return dir + ".tmp" }

// finish runs a command to its end.
func finish(t *testing.T, c *exec.Cmd) output {
	t.Helper()
	var out, err bytes.Buffer
	c.Stdout, c.Stderr = &out, &err
	if e := c.Run(); e != nil {
		if _, ok := e.(*exec.ExitError); !ok {
			t.Fatal(e)
		}
	}
	return output{c.ProcessState.ExitCode(), out.String(), err.String()}
}

// works fails unless the command succeeds.
func works(t *testing.T, dir string, args ...string) output {
	t.Helper()
	o := starling(t, dir, args...)
	if o.status != 0 {
		t.Fatalf("starling %s: status %d\n%s%s", strings.Join(args, " "), o.status, o.stdout, o.stderr)
	}
	return o
}

// refuses fails unless the command calls it a mistake, in one line with these words.
func refuses(t *testing.T, dir string, words []string, args ...string) {
	t.Helper()
	refused(t, starling(t, dir, args...), words, args)
}

// refused fails unless a command called it a mistake, in one line with these words.
func refused(t *testing.T, o output, words, args []string) {
	t.Helper()
	if o.status != 2 || strings.Count(o.stderr, "\n") != 1 || !strings.HasPrefix(o.stderr, "starling: ") {
		t.Errorf("starling %s: status %d, want 2 and one line:\n%s", strings.Join(args, " "), o.status, o.stderr)
	}
	for _, w := range words {
		if !strings.Contains(o.stderr, w) {
			t.Errorf("starling %s: %q is not in %q", strings.Join(args, " "), w, o.stderr)
		}
	}
}

// small makes a graph and returns the folder it is in, under the name "graph".
func small(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	copyInto(t, dir, "graph")
	return dir
}

// made has the folders that many tests begin with: graph, and parts with two parts of it.
var made = sync.OnceValues(func() (dir string, err error) {
	if dir, err = os.MkdirTemp("", "made"); err != nil {
		return "", err
	}
	for _, line := range []string{
		"generate sbm --nodes 400 --edges 3000 --features 16 --classes 4 --out graph --quiet",
		"partition graph --parts 2 --out parts --quiet"} {
		c := exec.Command(binary, strings.Fields(line)...)
		c.Dir = dir
		if out, err := c.CombinedOutput(); err != nil {
			return "", fmt.Errorf("starling %s: %w: %s", line, err, out)
		}
	}
	return dir, nil
})

// copyInto copies folders of made into a test's.
func copyInto(t *testing.T, dir string, names ...string) {
	t.Helper()
	from, err := made()
	for _, name := range names {
		err = errors.Join(err, os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(from, name))))
	}
	if err != nil {
		t.Fatal(err)
	}
}

var quick = []string{"--layers", "2", "--hidden", "16", "--epochs", "10"}

func trainArgs(args ...string) []string {
	return append(append([]string{"train", "graph"}, quick...), args...)
}

// result reads the JSON of a run, without what the clock decides.
func result(t *testing.T, text string) map[string]any {
	t.Helper()
	var m map[string]any
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return m
}

func timeless(t *testing.T, text string) string {
	t.Helper()
	m := result(t, text)
	for _, k := range []string{"spec", "made", "epoch_seconds", "median_epoch_seconds", "epoch_seconds_spread",
		"seconds",
		"peak_rss_bytes", "device_peak_bytes", "memory_planned_bytes"} {
		delete(m, k)
	}
	b, _ := json.Marshal(m)
	return string(b)
}

func TestTrainToJSON(t *testing.T) {
	t.Parallel()
	dir := small(t)
	o := works(t, dir, trainArgs("--json", "-")...)
	m := result(t, o.stdout)
	for _, k := range []string{"dataset", "model", "strategy", "workers", "epochs", "loss", "val_accuracy",
		"test_accuracy", "best_epoch",
		"epoch_seconds", "peak_rss_bytes", "bytes"} {
		if m[k] == nil {
			t.Errorf("the result has no %s", k)
		}
	}
	if len(m["loss"].([]any)) != 10 || m["test_accuracy"].(float64) < 0.5 || m["peak_rss_bytes"].(float64) < 1<<20 {
		t.Error(o.stdout)
	}
	if b := m["bytes"].(map[string]any); b["total"] != 0.0 || b["planned"] != 0.0 || b["by_kind"] == nil ||
		b["by_link"] == nil {
		t.Error(b)
	}
	if !strings.Contains(o.stderr, "epoch 10/10") {
		t.Errorf("no plain lines beside the JSON: %q", o.stderr)
	}
	works(t, dir, trainArgs("--json", "r.json", "--quiet")...)
	b, err := os.ReadFile(filepath.Join(dir, "r.json"))
	if err != nil || timeless(t, string(b)) != timeless(t, o.stdout) {
		t.Errorf("%v: the file differs from standard output: %s", err, b)
	}
}

func TestInfoAndVersion(t *testing.T) {
	t.Parallel()
	dir := small(t)
	if o := works(t, dir, "info", "graph"); !strings.Contains(o.stdout, "homophily") ||
		!strings.Contains(o.stdout, "400") {
		t.Error(o.stdout)
	}
	m := result(t, works(t, dir, "info", "graph", "--verify", "--json", "-").stdout)
	if m["vertices"] != 400.0 || m["classes"] != 4.0 || m["train"] != 240.0 {
		t.Error(m)
	}
	if o := works(t, dir, "version"); !strings.HasPrefix(o.stdout, "starling ") {
		t.Error(o.stdout)
	}
	for _, args := range [][]string{nil, {"--help"}, {"train", "--help"}, {"generate", "--help"}, {"import", "--help"},
		{"bench", "epoch", "--help"}} {
		if o := works(t, dir, args...); !strings.Contains(o.stdout, "Examples:") {
			t.Errorf("no examples in the help of %v", args)
		}
	}
}

func TestMistakes(t *testing.T) {
	t.Parallel()
	dir := small(t)
	for _, c := range []struct {
		words []string
		args  []string
	}{
		{[]string{`"trian"`, "did you mean train?"}, []string{"trian"}},
		{[]string{"--epoch", "did you mean --epochs?"}, trainArgs("--epoch", "3")},
		{[]string{"--checkpoint", "did you mean --checkpoint-dir?"}, trainArgs("--checkpoint", "x")},
		{[]string{"--modle", "did you mean --model?"}, trainArgs("--modle", "gcn")},
		{[]string{`"trian"`, "did you mean train?"}, []string{"help", "trian"}},
		{[]string{`--epochs: found "many", want a whole number`}, trainArgs("--epochs", "many")},
		{[]string{`--nodes: found "1e6", want a whole number`}, []string{"generate", "sbm", "--nodes", "1e6", "--out", "x"}},
		{[]string{`--max-wait: found "5", want a time with its unit`}, []string{"serve", "run", "graph", "--max-wait", "5"}},
		{[]string{"--epochs: found nothing after it"}, trainArgs("--epochs")},
		{[]string{"absent: found no such folder"}, []string{"info", "absent"}},
		{[]string{"found no meta.json in it"}, []string{"info", "."}},
		{[]string{`--strategy: found "hallo", want one of`, "did you mean halo?"}, trainArgs("--workers", "2", "--strategy", "hallo")},
		{[]string{`--strategy: found "bns:2"; bns keeps a share`}, trainArgs("--workers", "2", "--strategy", "bns:2")},
		{[]string{"--model", "did you mean sage?"}, trainArgs("--model", "sags")},
		{[]string{"--strategy", "halo"}, trainArgs("--workers", "4", "--strategy", "none")},
		{[]string{"--workers", "401"}, trainArgs("--workers", "401")},
		{[]string{"--servers"}, trainArgs("--workers", "4", "--servers", "3")},
		{[]string{"--send-order", "did you mean fifo?"}, trainArgs("--workers", "2", "--send-order", "fif")},
		{[]string{"--partitioner", "did you mean multilevel?"},
			trainArgs("--workers", "2", "--partitioner", "multilevl")},
		{[]string{"--transport"}, trainArgs("--workers", "2", "--transport", "pigeon")},
		{[]string{"--listen", "--token-file", "--insecure"},
			trainArgs("--workers", "2", "--listen", "0.0.0.0:0", "--no-launch")},
		{[]string{"starling partition graph"}, trainArgs("--workers", "2", "--no-launch")},
		{[]string{"--join"}, []string{"worker"}},
		{[]string{"--token-file", "--insecure"}, []string{"worker", "--join", "192.0.2.1:7000"}},
		{[]string{"--mode"}, trainArgs("--mode", "tiny")},
		{[]string{"--heads"}, trainArgs("--heads", "2")},
		{[]string{"--resume", "--checkpoint-dir"}, trainArgs("--resume")},
		{[]string{"absent", "starling generate"}, []string{"train", "absent"}},
		{[]string{"DIR"}, []string{"train"}},
		{[]string{"2 arguments"}, []string{"train", "graph", "graph"}},
		{[]string{"--json", "no/such"}, trainArgs("--json", "no/such/r.json")},
		{[]string{"--json: found graph/meta.json, which is part of a dataset"}, trainArgs("--json", "graph/meta.json")},
		{[]string{"--trace: found graph/train.npy, which is part of a dataset"},
			trainArgs("--trace", "graph/train.npy")},
		{[]string{"--config: found no such file as none.yaml"}, trainArgs("--config", "none.yaml")},
		{[]string{"--config: found graph: is a directory"}, trainArgs("--config", "graph")},
		{[]string{"--from: found graph: is a directory"}, []string{"compare", "--from", "graph"}},
		{[]string{"--join: found 127.0.0.1, want host:port"}, []string{"worker", "--join", "127.0.0.1"}},
		{[]string{"--lr: found 1e+07, want auto, or above 0 and at most"}, trainArgs("--lr", "1e7")},
		{[]string{"--from: found no such file as none.json"}, []string{"compare", "--from", "none.json"}},
		{[]string{"--token-file: found no such file as none"},
			[]string{"worker", "--join", "10.0.0.1:1", "--token-file", "none"}},
		{[]string{"--seed", "from 0 on"}, trainArgs("--seed", "-1")},
		{[]string{"--out"}, []string{"generate", "sbm"}},
		{[]string{"KIND", "did you mean sbm?"}, []string{"generate", "sbn", "--out", "x"}},
		{[]string{"--like", "did you mean reddit?"}, []string{"generate", "sbm", "--like", "redit", "--out", "x"}},
		{[]string{"--like", "did you mean ogbn-arxiv?"}, []string{"generate", "sbm", "--like", "arxiv", "--out", "x"}},
		{[]string{"homophily"}, []string{"generate", "sbm", "--homophily", "2", "--out", "x"}},
		{[]string{"graph", "overwrite"}, []string{"generate", "sbm", "--out", "graph"}},
		{[]string{"FORMAT"}, []string{"import", "cvs", "a", "--out", "x"}},
		{[]string{"none.txt"}, []string{"import", "edgelist", "none.txt", "--out", "x"}},
		{[]string{`"kernel"`}, []string{"bench", "kernel"}},
		{[]string{"--events: found -, want a file"}, trainArgs("--events", "-")},
		{[]string{"--trace: found -, want a file"}, trainArgs("--trace", "-")},
		{[]string{`"0.1:cache" makes no sense`, "bns:0.1:cached"}, trainArgs("--workers", "2", "--strategy", "bns:0.1:cache")},
		{[]string{"--partitioner: found chunk beside --partition hash"},
			trainArgs("--workers", "2", "--partition", "hash", "--partitioner", "chunk")},
		{[]string{"--partitioner: found multilevel beside --partition hash"},
			trainArgs("--workers", "2", "--partition", "hash", "--partitioner", "multilevel")},
		{[]string{"--model: found gat beside --models gcn,sage", "add it to the list"},
			[]string{"compare", "graph", "--model", "gat", "--models", "gcn,sage"}},
		{[]string{"--samplers: found ladies beside mode full", "leave out one of the two"},
			[]string{"compare", "graph", "--mode", "full", "--samplers", "ladies"}},
		{[]string{"--rank: found -5"}, []string{"worker", "--join", "127.0.0.1:1", "--rank", "-5"}},
		{[]string{"--join: found 127.0.0.1:1 beside --rendezvous file:."},
			[]string{"worker", "--join", "127.0.0.1:1", "--rendezvous", "file:."}},
		{[]string{"--homophily: found a setting without effect on rmat"},
			[]string{"generate", "rmat", "--homophily", "0.5", "--out", "x"}},
		{[]string{"--a: found a setting without effect on sbm"},
			[]string{"generate", "sbm", "--a", "0.5", "--out", "x"}},
		{[]string{"--bf16: found a setting without effect"},
			[]string{"generate", "sbm", "--bf16", "--features", "0", "--out", "x"}},
		{[]string{"--symmetrize: found a setting without effect", "--like"},
			[]string{"generate", "sbm", "--symmetrize", "--out", "x"}},
		{[]string{"--val-count: found a setting without effect"},
			[]string{"import", "edgelist", "none.txt", "--val-count", "3", "--out", "x"}},
		{[]string{"--per-class: found it beside shares"}, []string{"import", "edgelist", "none.txt", "--per-class", "3",
			"--train", "0.5", "--out", "x"}},
		{[]string{"--test-count: found -1"}, []string{"import", "edgelist", "none.txt", "--per-class", "3",
			"--test-count", "-1", "--out", "x"}},
		{[]string{"graph: found a folder", "name the file inside it"},
			[]string{"import", "npz", "graph", "--out", "x"}},
		{[]string{"--passes: found a setting without effect", "fennel"},
			[]string{"partition", "graph", "--parts", "2", "--passes", "3"}},
		{[]string{"--hops: found a setting without effect", "bytegnn"},
			[]string{"partition", "graph", "--parts", "2", "--hops", "3"}},
		{[]string{"--objective: found a setting without effect", "multilevel"},
			[]string{"partition", "graph", "--parts", "2", "--method", "hash", "--objective", "volume"}},
		{[]string{"--threads: found -1"}, []string{"partition", "graph", "--parts", "2", "--threads", "-1"}},
		{[]string{"--threads: found -1"}, []string{"predict", "run", "graph", "--threads", "-1"}},
		{[]string{"--threads: found -1"}, []string{"serve", "run", "graph", "--threads", "-1"}},
		{[]string{"--max-wait: found -1s"}, []string{"serve", "run", "graph", "--max-wait", "-1s"}},
		{[]string{"--listen: listen tcp: address nowhere: missing port"},
			[]string{"serve", "run", "graph", "--listen", "nowhere"}},
		{[]string{"--keep: found graph, which holds features.npy"}, []string{"demo", "--keep", "graph"}},
		{[]string{"--json", "no/such"}, []string{"info", "graph", "--json", "no/such/i.json"}},
		{[]string{"--json", "no/such"}, []string{"bench", "kernels", "--json", "no/such/i.json"}},
		{[]string{"--out: graph/meta.json"}, []string{"certs", "--hosts", "a", "--out", "graph/meta.json/x"}},
		{[]string{"--cache: graph/meta.json"}, []string{"get", "cora", "--out", "x", "--cache",
			"graph/meta.json/x"}},
		{[]string{"--seconds: found NaN"}, []string{"bench", "wire", "--seconds", "nan"}},
		{[]string{"one of gcn, sage,"}, []string{"partition", "graph", "--parts", "2", "--model", "x"}},
		{[]string{"memory"}, trainArgs("--model", "gat", "--heads", "64", "--hidden", "65472", "--layers", "900")},
	} {
		refuses(t, dir, c.words, c.args...)
	}
	onlyGraph(t, dir)
}

// onlyGraph fails if anything but the dataset is in the folder.
func onlyGraph(t *testing.T, dir string) {
	t.Helper()
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if e.Name() != "graph" {
			t.Errorf("%s was left behind", e.Name())
		}
	}
}

func TestDamagedFiles(t *testing.T) {
	t.Parallel()
	for name, harm := range map[string]func(t *testing.T, file string){
		"features.npy": func(t *testing.T, file string) { // a NaN
			write(t, file, 200, []byte{0, 0, 0xc0, 0x7f})
			dropChecksums(t, filepath.Dir(file))
		},
		"indices.npy": func(t *testing.T, file string) { // cut off
			if err := os.Truncate(file, 500); err != nil {
				t.Fatal(err)
			}
		},
		"labels.npy": func(t *testing.T, file string) { // a flipped byte
			write(t, file, 300, []byte{99})
		},
		"train.npy": func(t *testing.T, file string) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		},
	} {
		dir := small(t)
		harm(t, filepath.Join(dir, "graph", name))
		refuses(t, dir, []string{name}, trainArgs()...)
		onlyGraph(t, dir)
	}
}

func write(t *testing.T, file string, at int64, b []byte) {
	t.Helper()
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
}

// dropChecksums leaves only the checks of contents, as in a folder written by hand.
func dropChecksums(t *testing.T, dir string) {
	t.Helper()
	file := filepath.Join(dir, "meta.json")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(b, &m); err != nil {
		t.Fatal(err)
	}
	for _, k := range []string{"crc32c", "arrays", "checksum"} {
		delete(m, k)
	}
	b, _ = json.Marshal(m)
	if err := os.WriteFile(file, b, 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestDryRunReadsBack(t *testing.T) {
	t.Parallel()
	dir := small(t)
	first := works(t, dir, trainArgs("--model", "sage", "--lr", "0.02", "--dry-run")...).stdout
	if !strings.Contains(first, "# plan:") || !strings.Contains(first, "lr: 0.02") {
		t.Fatal(first)
	}
	if err := os.WriteFile(filepath.Join(dir, "starling.yaml"), []byte(first), 0o644); err != nil {
		t.Fatal(err)
	}
	// The plan says how much memory is free, which changes.
	settings := func(s string) string { return s[:strings.Index(s, "# plan:")] }
	second := works(t, dir, "train", "--config", "starling.yaml", "--dry-run").stdout
	if settings(first) != settings(second) {
		t.Errorf("read back as\n%s\nwant\n%s", second, first)
	}
	if o := works(t, dir, "train", "--config", "starling.yaml", "--lr", "0.5", "--dry-run"); !strings.Contains(o.stdout,
		"lr: 0.5") {
		t.Error("a flag did not win over the file")
	}
	a := works(t, dir, "train", "--config", "starling.yaml", "--json", "-").stdout
	b := works(t, dir, trainArgs("--model", "sage", "--lr", "0.02", "--json", "-")...).stdout
	if timeless(t, a) != timeless(t, b) {
		t.Error("the file and the flags train differently")
	}
	refuses(t, dir, []string{"bad.yaml", "lrr"}, "train", "graph", "--config", badFile(t, dir, "bad.yaml", "lrr: 1\n"))
}

func badFile(t *testing.T, dir, name, text string) string {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestTraceAndRunFolder(t *testing.T) {
	t.Parallel()
	dir := small(t)
	works(t, dir, trainArgs("--trace", "trace.json", "--events", "events.jsonl", "--out", "run/")...)
	b, err := os.ReadFile(filepath.Join(dir, "trace.json"))
	if err != nil {
		t.Fatal(err)
	}
	var trace struct {
		TraceEvents []struct {
			Name, Ph string
			Dur      float64
		}
	}
	if err := json.Unmarshal(b, &trace); err != nil {
		t.Fatal(err)
	}
	spans := map[string]int{}
	for _, e := range trace.TraceEvents {
		if e.Ph == "X" && e.Dur > 0 {
			spans[e.Name]++
		}
	}
	for _, want := range []string{"forward", "backward", "update", "evaluate"} {
		if spans[want] != 10 {
			t.Errorf("%d spans %q, want one per epoch", spans[want], want)
		}
	}
	if m := result(t, readFile(t, dir, "run/config.json")); m["test_accuracy"] == nil ||
		m["model"].(map[string]any)["in"] != 16.0 {
		t.Error(m)
	}
	if len(readFile(t, dir, "run/model.safetensors")) < 1000 {
		t.Error("no weights")
	}
	if n := strings.Count(readFile(t, dir, "events.jsonl"), `"event":"epoch"`); n != 10 {
		t.Errorf("%d epochs among the events", n)
	}
	refuses(t, dir, []string{"--out", "features.npy"}, trainArgs("--out", "graph")...)
}

func readFile(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// Ctrl-C in the middle of a run saves and leaves; --resume ends as if nothing had happened.
func TestInterruptAndResume(t *testing.T) {
	t.Parallel()
	dir := small(t)
	recipe := []string{"--norm", "batch", "--schedule", "cosine:2000", "--json", "r.json", "--quiet"}
	args := append(recipe, "--checkpoint-dir", "ck", "--checkpoint-every", "100")
	c := exec.Command(binary, trainArgs(append(args, "--epochs", "1000000", "--events", "/dev/stdout")...)...)
	c.Dir = dir
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	c.Stderr = &stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	// The first epoch that is reported means training is under way.
	seen := make([]byte, 0, 1<<16)
	for !bytes.Contains(seen, []byte(`"event":"epoch"`)) {
		b := make([]byte, 4096)
		n, err := out.Read(b)
		if err != nil {
			t.Fatal(err, stderr.String())
		}
		seen = append(seen, b[:n]...)
	}
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	rest := new(bytes.Buffer)
	rest.ReadFrom(out)
	c.Wait()
	partial := result(t, readFile(t, dir, "r.json"))
	if status := c.ProcessState.ExitCode(); status != 130 || partial["reason"] != "interrupted" {
		t.Fatalf("status %d, reason %v, %s", status, partial["reason"], stderr.String())
	}
	more := []string{"--epochs", fmt.Sprint(partial["epochs"].(float64) + 50)}
	works(t, dir, trainArgs(append(args, append(more, "--resume")...)...)...)
	resumed := readFile(t, dir, "r.json")
	works(t, dir, trainArgs(append(recipe, more...)...)...)
	whole := readFile(t, dir, "r.json")
	if timeless(t, resumed) != timeless(t, whole) {
		t.Errorf("interrupted after %v epochs and resumed\n%s\nundisturbed\n%s", partial["epochs"],
			timeless(t, resumed), timeless(t, whole))
	}
	refuses(t, dir, []string{"--seed"}, trainArgs(append(args, "--resume", "--seed", "9")...)...)
}

// TestInterruptedSweepNamesResume: Ctrl-C in a sweep shows the command that goes on with it.
func TestInterruptedSweepNamesResume(t *testing.T) {
	t.Parallel()
	c := exec.Command(binary, trainArgs("--seeds", "3", "--epochs", "1000000", "--checkpoint-dir", "ck")...)
	c.Dir = small(t)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if c.Stderr = c.Stdout; c.Start() != nil {
		t.Fatal("it does not start")
	}
	lines := bufio.NewScanner(out)
	shown := ""
	for lines.Scan() {
		if shown += lines.Text() + "\n"; strings.Contains(lines.Text(), "seed 1 (1 of 3)") {
			c.Process.Signal(syscall.SIGINT)
		}
	}
	c.Wait()
	if c.ProcessState.ExitCode() != 130 || !strings.Contains(shown, "--checkpoint-dir ck --resume\n") {
		t.Errorf("status %d\n%s", c.ProcessState.ExitCode(), shown)
	}
}

func TestImportEdgeList(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var edges, labels strings.Builder
	for i := range 40 {
		edges.WriteString(strings.Join([]string{name(i), name((i + 1) % 40)}, ",") + "\n")
		labels.WriteString(name(i) + "," + []string{"red", "blue"}[i%2] + "\n")
	}
	badFile(t, dir, "edges.csv", edges.String())
	badFile(t, dir, "labels.csv", labels.String())
	works(t, dir, "import", "edgelist", "edges.csv", "--symmetrize", "--labels", "labels.csv", "--out", "g")
	if m := result(t, works(t, dir, "info", "g", "--json", "-").stdout); m["vertices"] != 40.0 || m["edges"] != 80.0 ||
		m["classes"] != 2.0 {
		t.Error(m)
	}
	refuses(t, dir, []string{"no features"}, "train", "g")
}

func name(i int) string { return "v" + string(rune('a'+i%26)) + string(rune('a'+i/26)) }

// Ctrl-C while a dataset is written leaves no trace of it.
func TestInterruptedGenerate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c := exec.Command(binary, "generate", "sbm", "--nodes", "1000000", "--edges", "20000000", "--features", "64",
		"--out", "graph")
	c.Dir = dir
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	out.Read(make([]byte, 100)) // the first line of progress
	if err := c.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	new(bytes.Buffer).ReadFrom(out)
	c.Wait()
	if entries, _ := os.ReadDir(dir); c.ProcessState.ExitCode() != 130 || len(entries) > 0 {
		t.Errorf("status %d, left %v", c.ProcessState.ExitCode(), entries)
	}
}

// A command that is called by its name is the only one that is made; without a name, or
// with one that is wrong, there are all.
func TestCommandIsMadeByItsName(t *testing.T) {
	for _, one := range commands {
		found := root([]string{one.name, "--help"}).Commands()
		if len(found) != 1 || found[0].Name() != one.name {
			t.Errorf("starling %s makes %d commands, the first %s", one.name, len(found), found[0].Name())
		}
	}
	for _, args := range [][]string{nil, {"--help"}, {"help", "train"}, {"trian"}} {
		if found := root(args).Commands(); len(found) != len(commands) {
			t.Errorf("starling %v makes %d commands of %d", args, len(found), len(commands))
		}
	}
}

// What writes a folder does not take - for its name, which elsewhere is standard output.
func TestFolderIsNotStandardOutput(t *testing.T) {
	t.Parallel()
	dir := small(t)
	for _, args := range [][]string{
		{"generate", "er", "--nodes", "10", "--edges", "20"},
		{"import", "edgelist", "nowhere"},
		{"get", "cora"},
		{"partition", "graph", "--parts", "2"},
		{"export", "nowhere"},
		{"certs", "--hosts", "alpha"},
		trainArgs(),
	} {
		refuses(t, dir, []string{"--out", "./-"}, append(args, "--out", "-")...)
		if _, err := os.Stat(filepath.Join(dir, "-")); err == nil {
			t.Errorf("starling %v made the folder", args)
		}
	}
}

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// printed is a command that a page prints, as it is typed.
type printed struct {
	page string
	line int
	text string
}

func (p printed) String() string { return fmt.Sprintf("%s:%d: %s", p.page, p.line, p.text) }

// block is a page's commands that stand together. They run in a folder of their own, one after another.
type block []printed

// programs are what a line of a page that is a command begins with.
var programs = regexp.MustCompile(`^(\$ )?((sudo|[A-Z_]+=\S+) )*(starling|bin/starling|make|go|scripts/\S+|` +
	`mpirun|mpiexec|curl|wrk|kubectl|docker|sbatch|srun|torchrun|ethtool|\(umask|head|kill|b=|d=|([A-Z]=))`)

// printedPages are the pages whose commands are run.
func printedPages(t *testing.T) (pages []string) {
	t.Helper()
	for _, pattern := range []string{"README.md", "CONTRIBUTING.md", "docs/*.md", "docs/strategies/*.md", "docs/stories/*.md",
		"deploy/*.md"} {
		files, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pattern, err)
		}
		pages = append(pages, files...)
	}
	return pages
}

// blocksOf are the commands of a page, by the blocks in which they are shown. Where a block has prompts, only lines
// after one are commands, and what follows them is what they show.
func blocksOf(page, text string) (all []block) {
	var b block
	fenced, prompted, before := false, false, ""
	for i, line := range strings.Split(text+"\n\n", "\n") {
		fence := strings.HasPrefix(line, "```")
		if fence {
			fenced = !fenced
		}
		code, shown := strings.CutPrefix(line, "    ")
		if fenced {
			code, shown = line, true
		}
		if fence || !shown { // the block ends
			if len(b) > 0 {
				all = append(all, b)
			}
			b, prompted, before = nil, false, ""
			continue
		}
		if before != "" {
			code = before + " " + strings.TrimSpace(code)
		}
		if rest, more := strings.CutSuffix(code, `\`); more {
			before = strings.TrimSpace(rest)
			continue
		}
		before = ""
		prompted = prompted || strings.HasPrefix(code, "$ ")
		if programs.MatchString(code) && (!prompted || strings.HasPrefix(code, "$ ")) {
			b = append(b, printed{page, i + 1, strings.TrimPrefix(code, "$ ")})
		}
	}
	return all
}

// notRun are the commands that this test does not run, by a pattern of their text, and why. Their flags are parsed.
var notRun = []struct{ what, why string }{
	{`candidates candidates.npz`, "needs a file that numpy writes: TestCandidatesAreNumpys ranks such files, " +
		"TestTrainOnLists trains with them"},
	{`--device (cuda|auto)`, "needs a GPU"},
	{`starling get (cora|ogbn)`, "needs the network"},
	{`10\.0\.|--hosts hosts|--join |file:/shared|--xdp `,
		"needs several hosts: TestScenarios and TestHosts run such commands"},
	{`^(STARLING_MPI=\S+ )?mpi(run|exec) |--transports mpi`, "needs an MPI: TestMPIEqualsInProcess runs such commands"},
	{`^(sbatch|srun|torchrun|kubectl|docker) `, "needs a cluster: TestTasks runs such commands"},
	{`^(curl|KIND=predict wrk) `, "needs a server that runs: TestServedEqualsPredicted sends such requests"},
	{`^kill `, "is a part of the demo"},
	{`shop\.yaml|^starling \w+ shop(-\w+)?( |$)`, "needs the tables that the page prints: TestTypedPage writes them"},
	{`pay\.csv|pay\.yaml|users\.csv`, "needs the tables that the page describes: TestTablesOfPages writes them"},
	{`,echo:2`, "needs the strategy that the page adds: TestStrategiesOfContributing builds it"},
	{`--web|starling view`, "shows a page until it is stopped: TestLivePage opens one"},
	{`segments\.4711|--metrics-listen|starling top`, "needs a run that is under way: TestTop and TestMetrics have one"},
}

// longOnes run as printed in make walk only: each takes more than two seconds on the smallest graph.
var longOnes = regexp.MustCompile(`starling bench (wire|kernels$|kernels  )|simulate llm|` +
	`--workers 32|leaf-spine|\$[CS] `)

// until are commands that run until they are stopped.
var until = regexp.MustCompile(`starling (serve|switch) |--epochs 100000 .*&$`)

// smaller has graphs of a few hundred vertices where a page has many.
var smaller = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`--nodes \d+`), "--nodes 300"},
	{regexp.MustCompile(`--edges \d+`), "--edges 2400"},
	{regexp.MustCompile(`--scale [\d.]+`), "--scale 0.001"},
	{regexp.MustCompile(`(--like (ogbn-\w+|reddit|flickr))( --symmetrize)? --out`), "$1$3 --scale 0.001 --out"},
	{regexp.MustCompile(`--rows \d+`), "--rows 2000"},
	{regexp.MustCompile(`--threads 64`), "--threads 2"},
	{regexp.MustCompile(`starling serve `), "starling serve --listen 127.0.0.1:0 "}, // others may have the port
}

// shorter has few epochs, rounds and seeds: the tests want to know whether a command works.
var shorter = []struct {
	what *regexp.Regexp
	with string
}{
	{regexp.MustCompile(` --epochs \d+`), ""},
	{regexp.MustCompile(`starling (train|compare|simulate train) `), "starling $1 --epochs 2 "},
	{regexp.MustCompile(` --epochs 2 (--from)`), " $1"},
	{regexp.MustCompile(`--rounds \d+`), "--rounds 1"},
	{regexp.MustCompile(`--seeds \d+`), "--seeds 2"},
}

var comment = regexp.MustCompile(`\s+# .*`)

// typed is a command as it is run.
func (p printed) typed() string {
	text := comment.ReplaceAllString(p.text, "")
	for _, s := range smaller {
		text = s.what.ReplaceAllString(text, s.with)
	}
	if walking == "" {
		for _, s := range shorter {
			text = s.what.ReplaceAllString(text, s.with)
		}
	}
	return text
}

// walking is set by make walk: everything runs as printed and in a terminal, and what was run is written to this file.
var walking = os.Getenv("STARLING_WALK")

// why is why a command is not run; "": it is.
func (p printed) why() string {
	for _, n := range notRun {
		if regexp.MustCompile(n.what).MatchString(p.text) {
			return n.why
		}
	}
	if walking == "" && longOnes.MatchString(p.text) {
		return "takes long: make walk runs it"
	}
	return ""
}

// TestPrintedCommandsRun: every command that README.md and docs print runs as it is printed, in the order of its block,
// on a small graph; those that cannot run here are listed with the reason, and have flags and values that are accepted.
func TestPrintedCommandsRun(t *testing.T) {
	t.Parallel()
	given := printedGiven(t)
	var all []block
	for _, file := range printedPages(t) {
		page := strings.TrimPrefix(filepath.ToSlash(file), "../../")
		blocks := blocksOf(page, readFile(t, "", file))
		if strings.HasPrefix(page, "docs/stories/") { // the commands of a story go on from each other
			blocks = []block{slices.Concat(blocks...)}
		}
		all = append(all, blocks...)
	}
	if len(all) < 60 {
		t.Fatalf("%d blocks", len(all))
	}
	w := &walk{t: t}
	var wg sync.WaitGroup
	next := make(chan block)
	for range 3 { // at a time: workers wait for each other
		wg.Go(func() {
			for b := range next {
				w.run(b, given)
			}
		})
	}
	for _, b := range all {
		next <- b
	}
	close(next)
	wg.Wait()
	w.write()
}

// walk is what has been run.
type walk struct {
	t  *testing.T
	mu sync.Mutex
	of []row
}

// row is a command and what came of it.
type row struct {
	printed
	result  string
	seconds float64
}

func (w *walk) add(p printed, result string, took time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.of = append(w.of, row{p, result, took.Seconds()})
}

// write writes the table of make walk.
func (w *walk) write() {
	if walking == "" {
		return
	}
	slices.SortFunc(w.of, func(a, b row) int { return cmp.Or(cmp.Compare(a.page, b.page), cmp.Compare(a.line, b.line)) })
	var out strings.Builder
	for _, r := range w.of {
		fmt.Fprintf(&out, "%-34s %7.1f s  %-90.90s  %s\n", fmt.Sprintf("%s:%d", r.page, r.line), r.seconds, r.text, r.result)
	}
	if err := os.WriteFile(walking, []byte(out.String()), 0o644); err != nil {
		w.t.Error(err)
	}
}

// assigned is a line that gives variables of later lines their values.
var assigned = regexp.MustCompile(`^[A-Za-z]=(".*"|\S+)$`)

// run runs a block in a folder with what pages take for given.
func (w *walk) run(b block, given string) {
	dir, err := os.MkdirTemp("", "printed")
	if err == nil {
		defer os.RemoveAll(dir)
		err = errors.Join(os.CopyFS(dir, os.DirFS(given)), os.Mkdir(filepath.Join(dir, "bin"), 0o755),
			os.Symlink(binary, filepath.Join(dir, "bin/starling")))
	}
	if err != nil {
		w.t.Error(err)
		return
	}
	variables := ""
	var made []string
	for _, p := range b {
		if assigned.MatchString(p.typed()) {
			variables += p.typed() + "\n"
			continue
		}
		if p.why() == "" {
			made = clear(dir, p.text, made)
		}
		start := time.Now()
		result := w.command(p, dir, variables)
		w.add(p, result, time.Since(start))
	}
	w.look(b[0], dir)
}

var outputs = regexp.MustCompile(`--(?:out|json|html|checkpoint-dir) ([\w./-]+)`)

// clear removes what was given under the name of what a command makes, unless a command of the block has made it.
func clear(dir, text string, made []string) []string {
	for _, m := range outputs.FindAllStringSubmatch(text, -1) {
		if m[1] != "-" && !slices.Contains(made, m[1]) {
			os.RemoveAll(filepath.Join(dir, m[1]))
			made = append(made, m[1])
		}
	}
	return made
}

// command runs a command, or checks it, and is what came of it.
func (w *walk) command(p printed, dir, variables string) string {
	if reason := p.why(); reason != "" {
		if err := parsed(p.text); err != nil {
			w.t.Errorf("%v: %v", p, err)
		}
		return "not run: " + reason
	}
	if checked, result := w.elsewhere(p); checked {
		return result
	}
	out, status := shell(w.t, dir, variables+p.typed(), until.MatchString(p.typed()))
	if status != 0 {
		w.t.Errorf("%v: exit status %d\n%s", p, status, out)
		return fmt.Sprintf("FAILED, exit status %d", status)
	}
	return "ok"
}

var goPackages = regexp.MustCompile(` \./([\w/]+)`)

// elsewhere checks commands that other tests run: targets of make, tests, and scripts.
func (w *walk) elsewhere(p printed) (is bool, result string) {
	words := strings.Fields(strings.TrimPrefix(p.text, "make build && "))
	for len(words) > 1 && (words[0] == "sudo" || strings.Contains(words[0], "=")) {
		words = words[1:]
	}
	switch {
	case words[0] == "make":
		if target := "\n" + words[1] + ":"; !strings.Contains(readFile(w.t, "", "../../Makefile"), target) {
			w.t.Errorf("%v: the Makefile has no such target", p)
		}
		return true, "not run: a target of the Makefile, which there is"
	case words[0] == "go":
		for _, m := range goPackages.FindAllStringSubmatch(p.text, -1) {
			if _, err := os.Stat(filepath.Join("../..", m[1])); err != nil && m[1] != "train/full/echo" {
				w.t.Errorf("%v: %v", p, err)
			}
		}
		return true, "not run: tests of a package, which there is"
	case strings.HasPrefix(words[0], "scripts/") || words[0] == "$B":
		if name := strings.TrimPrefix(words[0], "scripts/"); words[0] != "$B" && smokes[name].line == "" {
			w.t.Errorf("%v: there is no such script with a smallest input", p)
		}
		return true, "not run: TestScriptsRunOnTheirSmallestInput runs it on a small graph"
	}
	return false, ""
}

var variable = regexp.MustCompile(`\$\w+`)

// parsed is an error of a command's flags or their values, without running it.
func parsed(text string) error {
	at := strings.Index(text, "starling ")
	if at < 0 || strings.HasPrefix(text, "docker") || strings.HasPrefix(text, "kubectl") {
		return nil
	}
	text, _, _ = strings.Cut(text[at+len("starling "):], " #")
	text, _, _ = strings.Cut(strings.Trim(text, "'& "), "'")
	text = variable.ReplaceAllString(text, "1")
	c, rest, err := root(strings.Fields(text)).Find(strings.Fields(text))
	if err != nil {
		return err
	}
	return c.ParseFlags(rest)
}

// shell runs a line by bash, whose starling is ours and whose make has built it. A line that runs until it is stopped
// is stopped once it has shown something.
func shell(t *testing.T, dir, line string, stopped bool) (out string, status int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	words := []string{"bash", "-c", line}
	if stopped {
		line, _ = strings.CutSuffix(strings.ReplaceAll(line, "&& ", "|| exit 1\n"), "&")
		words[2] = line + ` >shown 2>&1 & for i in $(seq 600); do sleep 0.05; [ -s shown ] && break; done; cat shown
			kill -TERM $!; wait $!; s=$?; [ $s = 130 ] && s=0; exit $s`
	}
	if script, err := exec.LookPath("script"); walking != "" && err == nil { // a terminal
		words = []string{script, "-qec", "exec bash -c " + quoteWord(words[2]), "/dev/null"}
	}
	c := exec.CommandContext(ctx, words[0], words[1:]...)
	c.Dir, c.WaitDelay, c.SysProcAttr = dir, time.Second, &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) } // and what it has started
	c.Env = append(os.Environ(), "PATH="+filepath.Dir(binary)+":"+filepath.Join(dir, "tools")+":"+os.Getenv("PATH"),
		"TERM=xterm-256color", "XDG_CACHE_HOME="+filepath.Join(dir, "caches"), "MAKEFLAGS=")
	text, err := c.CombinedOutput()
	if err != nil && c.ProcessState == nil {
		t.Error(err)
		return "", -1
	}
	return string(text), c.ProcessState.ExitCode()
}

// patience is how long a command or script may take. In make walk it is all epochs, on a machine that may have other
// work: all of it has go test's limit.
func patience() time.Duration {
	if walking != "" {
		return 20 * hang
	}
	return hang
}

func quoteWord(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// look opens the pages that commands wrote in a browser, where there is one.
func (w *walk) look(p printed, dir string) {
	if walking == "" {
		return
	}
	pages, _ := filepath.Glob(filepath.Join(dir, "*.html"))
	for _, page := range pages {
		result := "ok in a browser"
		// A name of its own, without the # of a repeated one: it is in the page's address.
		name := fmt.Sprintf("%s line %d %s", filepath.Base(p.page), p.line, filepath.Base(page))
		if !w.t.Run(name, func(t *testing.T) { lookAt(t, readFile(t, "", page), "light", 1280) }) {
			result = "FAILED in a browser"
		}
		w.add(printed{p.page, p.line, "open " + filepath.Base(page)}, result, 0)
	}
}

// printedGiven is a folder with what the pages take for given: graphs, parts, a run, and a user's own files.
func printedGiven(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	sbm := []string{"generate", "sbm", "--nodes", "300", "--edges", "2400", "--features", "16", "--classes", "4",
		"--quiet", "--out"}
	works(t, dir, append(sbm, "graph")...)
	works(t, dir, "partition", "graph", "--parts", "4", "--out", "parts", "--quiet")
	works(t, dir, "train", "graph", "--model", "sage", "--epochs", "2", "--out", "run", "--quiet")
	works(t, dir, "generate", "typed", "--like", "store", "--out", "store", "--quiet")
	works(t, dir, "train", "store", "--task", "link", "--target", "buys", "--model", "rgcn", "--epochs", "1", "--out",
		"shelf", "--quiet")
	for _, name := range []string{"cora", "arxiv", "block", "big", "products"} {
		if err := os.CopyFS(filepath.Join(dir, name), os.DirFS(filepath.Join(dir, "graph"))); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "first"), os.DirFS(filepath.Join(dir, "run"))); err != nil {
		t.Fatal(err)
	}
	labels, features := "id,label\n", "id,a,b\n"
	for i := range 60 {
		labels += fmt.Sprintf("%d,%s\n", i, []string{"red", "green"}[i%2])
		features += fmt.Sprintf("%d,%d,%d\n", i, i%2, i%3)
	}
	writeFile(t, dir, "labels.csv", labels)
	writeFile(t, dir, "x.csv", features)
	writeFile(t, dir, "edges.csv", edgeLines(60))
	writeFile(t, dir, "pairs.txt", "0 1\n2 3\n")
	writeFile(t, dir, "token", "a-secret-of-many-words-in-a-file\n")
	if out, err := exec.Command("bash", "-c", "cd "+dir+" && printf '0 1\n1 2\n2 0\n' | gzip > web.txt.gz && "+
		"mkdir web tables && seq 2 40 | sed 's/$/,1/' > web/edges-0.csv && cp web/edges-0.csv tables/edges.csv && mkdir tools && printf '#!/bin/sh\nexit 0\n' > tools/make && chmod +x tools/make").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	const links = "netsim/leo/testdata"
	if err := os.CopyFS(filepath.Join(dir, links), os.DirFS(filepath.Join("../..", links))); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestPrintedCommandsAreFound: what is a command on a page, and what is not.
func TestPrintedCommandsAreFound(t *testing.T) {
	blocks := blocksOf("p.md", "Text\n\n    starling train g \\\n      --epochs 3   # why\n    gcn on g: 3 vertices\n\n"+
		"more\n\n```sh\nsudo scripts/x\n```\n\n    $ starling info g\n    starling is great\n")
	got := fmt.Sprint(blocks)
	const want = "[[p.md:4: starling train g --epochs 3   # why] [p.md:10: sudo scripts/x] [p.md:13: starling info g]]"
	if got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if parsed("starling train g --epochs x") == nil || parsed("mpirun -n 2 starling train g --epochs 2 # c") != nil {
		t.Error("flags are not parsed")
	}
}

package main

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// smoke is how a script is run on its smallest input.
type smoke struct {
	line   string // its arguments
	walk   string // and more of them in make walk
	needs  string // what a machine may lack: root, a program or a file; then the script is not run
	long   bool   // it takes more than a few seconds: only make walk runs it
	status int    // that it ends with, where it finds something missing
}

const help = "--help" // where the smallest input needs what a machine with tests has not

// smokes are the scripts, by their names under scripts.
var smokes = map[string]smoke{
	"ab":             {line: "bin/starling bin/starling --rounds 1 --only 'arxiv gcn f32'"},
	"accuracy":       {line: "--seeds 1", needs: "$STARLING_DATA/planetoid"},
	"accuracy-links": {line: help}, // PyG
	"bench":          {line: "Peers"},
	"bench-ahead":    {line: "--shapes flickr:0.001 --workers 2 --hidden 8 --batch-size 16 --epochs 1 --strategies 'distdgl;lookahead'"},
	"bench-cuda":     {line: help}, // a GPU
	"bench-dgs": {line: "--graphs arxiv --cuts multilevel --seeds 1 --methods 'all neighbours;uniform' && " +
		"scripts/bench-dgs --what masks --graphs planted --vertices 200 --seeds 1 --every 2 " +
		"--methods 'vertices, part;columns, star' && " +
		"scripts/bench-dgs --what paper --figures 3.5t --scale 0.0005 --epochs 2 --seeds 1 --every 2"},
	"bench-disk":        {line: "--nodes 2000 --edges 10000 --features 16 --train 0.5 --limit 0 --rounds 1"},
	"bench-distributed": {line: "--parts gather --rows 256 --rounds 1 --seconds 0.1", needs: "root", long: true},
	"bench-family":      {line: "--what hop --epochs 2 --hidden 16", needs: "root", long: true},
	"bench-granndis":    {line: "--layers 3 --preload '0 1' --epochs 2", needs: "root", long: true},
	"bench-large":       {line: "--edges 3000 --steps 1"},
	"bench-mini":        {line: "--graphs arxiv --rounds 1 --batches 1 --peers ''"},
	"bench-partition":   {line: "--methods random,hash --parts 4"},
	"bench-python":      {line: help}, // PyG
	"bench-paths":       {line: "--parts train", needs: "root", long: true},
	"bench-peers":       {line: "--graphs arxiv --models gcn,sage,gat --rounds 1 --epochs 1 --peers ''"},
	"bench-plan":        {line: "--work work --prepare", long: true},
	"bench-scaling":     {line: "1"},
	"bench-send-order":  {line: "--rates 1gbit --rounds 1 --only halo --orders fifo", needs: "root", long: true},
	"bench-serve.lua":   {needs: "wrk"},
	"bench-shards":      {line: "2000", needs: "/usr/bin/time"},
	"bench-strategies":  {line: "--strategies halo --rates 1gbit --graphs reddit:0.001 --epochs 2", needs: "root"},
	"bench-switch":      {},
	"bench-web":         {line: "--nodes 200 --edges 800 --epochs 20 --pairs 1", needs: "curl"},
	"bench-together":    {line: "--scale 0.0005 --batch 8 --hidden 8 --epochs 2 --shares 0.05"},
	"bench-typed": {line: "--like small --scale 0.1 --models rgcn,hsage,rgat,hgt --rounds 1 --epochs 1 --peers '' && " +
		"scripts/bench-typed --like small --scale 0.1 --mode mini --models rgcn --rounds 1 --epochs 1 --peers ''"},
	"bench-wire":     {line: "--parts memory,calls --workers 2 --sizes 4096 --rounds 1 --seconds 0.01", long: true},
	"bench-wire.c":   {needs: "mpicc"},
	"bench-workers":  {line: "--rates 1gbit --workers 2 --epochs 2", needs: "root", long: true},
	"defaults":       {line: "data defaults-data bin/starling", needs: "$STARLING_DATA/geom"},
	"defaults-table": {line: "work"},
	"faults":         {line: "1"},
	"fuzz":           {line: "1s"},
	"hermod-figures": {line: "--figures 5.12 --gpus 32 --models gpt3-13b"},
	"leo-times":      {line: "--size 1048576 --count 20", long: true},
	"growth":         {line: "--edges 4000,8000 --steps import,ldg,mini"},
	"lost-workers":   {line: "1", long: true},
	"memory":         {line: "--only gin", long: true},
	"netcluster":     {line: "up --hosts 2 --name smoke && scripts/netcluster down --name smoke", needs: "root"},
	"nvrtc":          {status: 1}, // pip installs nothing here
	"papers": {line: "--graphs reddit:0.001 --workers 2 --epochs 3 --rounds 1 --sim-workers 8 --sim-grids 2 " +
		"--grid-workers 4 --g3-workers 2 --wide 16 --papers bns,cagnet",
		walk: ",sancus,neutrontp,plexus,granndis,distdgl,bytegnn,hopgnn,salient,g3"},
	"predict":            {line: "--strategies halo --rates 400 --epochs 2", needs: "root", long: true},
	"soak":               {line: "--minutes 0.2 --every 5 --sample 1 --workers 2 --spared 1 --out work", long: true},
	"story-fraud":        {line: "--seeds 1 --nodes 1000 --epochs 2 --svg work/fraud.svg"},
	"switchgnn-figures":  {line: "--figures 18 --graphs reddit --scales reddit:0.001 --workers 8", long: true},
	"test-arm64":         {},
	"test-race":          {line: "./event"},
	"test-release":       {line: help},
	"test-tools":         {long: true}, // make test runs it before
	"try-install":        {line: help}, // minutes, and debootstrap
	"try-cuda-faults":    {line: "work", needs: "nvidia-smi"},
	"try-kubernetes":     {line: help}, // it builds a cluster for many minutes
	"try-launchers":      {line: "--no-install openmpi", needs: "mpirun", long: true},
	"try-shards":         {line: "--edges 4000 --limit 0"},
	"try-pythons":        {line: help}, // minutes, and a package index
	"vulncheck":          {},
	"walk":               {line: help},
	"peers/citation.py":  {needs: "torch"},
	"peers/cuda.py":      {needs: "torch"},
	"peers/epoch.py":     {needs: "torch"},
	"peers/export-check": {needs: "torch"},
	"peers/film.py":      {needs: "torch"},
	"peers/golden.py":    {needs: "torch"},
	"peers/import-check": {needs: "torch"},
	"peers/link.py":      {needs: "torch"},
	"peers/setup":        {line: help},
	"peers/train.py":     {needs: "torch"},
	"peers/typed.py":     {needs: "torch"},
}

// TestScriptsRunOnTheirSmallestInput: every script under scripts runs, on graphs of a few hundred vertices. A script
// that has no line in smokes fails; the text of one that needs a program that is not here is parsed, and it is said to
// be left out.
func TestScriptsRunOnTheirSmallestInput(t *testing.T) {
	t.Parallel()
	tree := smokeTree(t)
	found := map[string]bool{}
	var left []string
	next := make(chan string)
	var mu sync.Mutex
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for name := range next {
				t.Run(name, func(t *testing.T) {
					if why := runSmoke(t, tree, name); why != "" {
						mu.Lock()
						left = append(left, name+": "+why)
						mu.Unlock()
					}
				})
			}
		})
	}
	err := filepath.WalkDir("../../scripts", func(path string, d fs.DirEntry, err error) error {
		name := strings.TrimPrefix(filepath.ToSlash(path), "../../scripts/")
		info, e := d.Info()
		if err != nil || e != nil || d.IsDir() {
			return cmp.Or(err, e)
		}
		if _, ok := smokes[name]; !ok && info.Mode()&0o111 != 0 {
			t.Errorf("scripts/%s has no smallest input: give it a line in smokes", name)
		} else if ok {
			found[name] = true
			next <- name
		}
		return nil
	})
	close(next)
	wg.Wait()
	if err != nil {
		t.Error(err)
	}
	for name := range smokes {
		if !found[name] {
			t.Errorf("scripts/%s is not there", name)
		}
	}
	t.Logf("left out:\n%s", strings.Join(left, "\n"))
}

// smokeTree is a folder that scripts take for the project's: with their copies, and a command that makes small graphs.
func smokeTree(t *testing.T) string {
	t.Helper()
	tree := t.TempDir()
	repository, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(tree, "scripts"), os.DirFS("../../scripts")); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{"bin", "tools", "work", "build/python/bin"} {
		if err := os.MkdirAll(filepath.Join(tree, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	// Which scripts/fuzz reads.
	if err := os.CopyFS(filepath.Join(tree, "cluster"), os.DirFS("../../cluster")); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(repository)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries { // the packages, whose names scripts look for
		os.Symlink(filepath.Join(repository, e.Name()), filepath.Join(tree, e.Name())) // what is there stays
	}
	smoke := filepath.Join(repository, "cmd/starling/testdata/smoke")
	for name, to := range map[string]string{"bin/starling": "starling", "tools/go": "go", "tools/make": "none",
		"tools/apt-get": "none", "tools/pip": "none", "build/python/bin/python": "none"} {
		if err := os.Symlink(filepath.Join(smoke, to), filepath.Join(tree, name)); err != nil {
			t.Fatal(err)
		}
	}
	return tree
}

// lacks is what a machine lacks of what a script needs; "": nothing.
func (s smoke) lacks() string {
	switch {
	case s.needs == "":
		return ""
	case s.needs == "root":
		if os.Getuid() == 0 && exec.Command("ip", "netns", "list").Run() == nil {
			return ""
		}
	case s.needs == "torch":
		if exec.Command("python3", "-c", "import torch").Run() == nil {
			return "" // of which peers' own checks run
		}
	case strings.HasPrefix(s.needs, "$"):
		if _, err := os.Stat(os.Expand(s.needs, func(string) string { return smokeData() })); err == nil {
			return ""
		}
	default:
		if _, err := exec.LookPath(s.needs); err == nil {
			return ""
		}
	}
	return "needs " + s.needs
}

// smokeData is where public data is.
func smokeData() string {
	data, _ := filepath.Abs(cmp.Or(os.Getenv("STARLING_DATA"), "../../../shared/data"))
	return data
}

// broken is what a script shows that has a mistake, whatever it ends with.
var broken = regexp.MustCompile(`Traceback|unbound variable|syntax error|command not found|NameError`)

// leftOut is what a script says of a part that it does not run.
var leftOut = regexp.MustCompile(`(?m)^.* (?:is|are) left out\b.*$`)

// runSmoke runs a script, and says why not where it cannot, or what the script itself leaves out.
func runSmoke(t *testing.T, tree, name string) (left string) {
	t.Helper()
	s := smokes[name]
	if err := compiles(tree, name); err != nil {
		t.Errorf("scripts/%s: %v", name, err)
	}
	switch why := s.lacks(); {
	case why != "":
		return why
	case s.long && walking == "":
		return "takes long: make walk runs it"
	case s.needs == "torch", strings.Contains(name, "bench-serve"), strings.HasSuffix(name, ".c"):
		return "is a part of other scripts"
	}
	if walking != "" {
		s.line += s.walk
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	c := exec.CommandContext(ctx, "bash", "-c", "scripts/"+name+" "+s.line)
	c.Dir, c.WaitDelay, c.SysProcAttr = tree, time.Second, &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) } // and what it has started
	repository, _ := filepath.Abs("../..")
	c.Env = append(os.Environ(), "STARLING_REAL="+binary, "STARLING_TREE="+repository, "STARLING_DATA="+smokeData(),
		"STARLING_SCRATCH="+t.TempDir(), "STARLING_PYTHON="+filepath.Join(tree, "tools/pip"),
		"PATH="+filepath.Join(tree, "tools")+":"+os.Getenv("PATH"))
	start := time.Now()
	out, err := c.CombinedOutput()
	if status := c.ProcessState.ExitCode(); status != s.status || err != nil && status < 0 || broken.Match(out) {
		t.Errorf("scripts/%s %s: exit status %d\n%s", name, s.line, status, out)
	}
	t.Logf("%-20s %5.1f s", name, time.Since(start).Seconds())
	return strings.Join(leftOut.FindAllString(string(out), -1), "; ")
}

// compiles is an error of a script's text.
func compiles(tree, name string) error {
	text, err := os.ReadFile(filepath.Join(tree, "scripts", name))
	if err != nil {
		return err
	}
	first, _, _ := strings.Cut(string(text), "\n")
	check := exec.Command("true")
	switch {
	case strings.Contains(first, "python"):
		check = exec.Command("python3", "-c", "import ast, sys; ast.parse(sys.stdin.read())")
	case strings.Contains(first, "sh"):
		check = exec.Command("bash", "-n")
	}
	check.Stdin = strings.NewReader(string(text))
	if out, err := check.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

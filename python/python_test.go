// Package python_test builds the wheel of the Python package, installs it as users do, and runs the tests in tests/
// against what is installed.
package python_test

import (
	"cmp"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// environment is a fresh virtual environment with the wheel and numpy, the program, the folder that the wheel is in, and
// one with the wheel's package alone, for other Pythons.
type environment struct{ python, program, wheels, alone string }

var (
	once    sync.Once
	dir     string
	env     environment
	skipped string
	failed  string
)

func TestMain(m *testing.M) {
	code := m.Run()
	if dir != "" {
		os.RemoveAll(dir)
	}
	os.Exit(code)
}

// installed builds and installs the wheel, once.
func installed(t *testing.T) environment {
	t.Helper()
	once.Do(install)
	if skipped != "" {
		t.Skip(skipped)
	}
	if failed != "" {
		t.Fatal(failed)
	}
	return env
}

func install() {
	var err error
	if dir, err = os.MkdirTemp("", "starling-wheel-test-"); err != nil {
		failed = err.Error()
		return
	}
	with := cmp.Or(os.Getenv("STARLING_PYTHON"), "python3")
	venv := filepath.Join(dir, "venv")
	if out, err := exec.Command(with, "-m", "venv", "--without-pip", venv).CombinedOutput(); err != nil {
		skipped = "no virtual environment can be made, so the Python package is not tested: " + string(out)
		return
	}
	env = environment{filepath.Join(venv, "bin", "python"), filepath.Join(dir, "dist", "starling"),
		filepath.Join(dir, "dist"), filepath.Join(dir, "alone")}
	must := func(name string, args ...string) {
		c := exec.Command(name, args...)
		c.Dir, c.Env = "..", append(os.Environ(), "CGO_ENABLED=0")
		out, err := c.CombinedOutput()
		if err != nil && failed == "" {
			failed = strings.Join(c.Args, " ") + ": " + err.Error() + "\n" + string(out)
		}
	}
	if out, err := exec.Command(with, "-m", "pip", "--python", env.python, "install", "-q", "numpy").CombinedOutput(); err != nil {
		skipped = "pip cannot install numpy, so the Python package is not tested: " + string(out)
		return
	}
	must("make", "wheel", "COMMIT=test", "DIST="+env.wheels)
	list, _ := filepath.Glob(filepath.Join(env.wheels, "*.whl"))
	if len(list) != 1 {
		failed = cmp.Or(failed, fmt.Sprint("make wheel left the wheels ", list))
		return
	}
	wheel := list[0]
	must(with, "-m", "pip", "--python", env.python, "install", "-q", "--no-index", "--no-deps", wheel)
	must(with, "-m", "pip", "install", "-q", "--no-index", "--no-deps", "--target", env.alone, wheel)
}

// tests runs a file of tests with the package of the wheel. What a test needs that this Python does not have skips it.
func tests(t *testing.T, python, file string) {
	t.Helper()
	e := installed(t)
	if python == "" {
		python = e.python
	}
	c := e.command(t, python, "-W", "error::ResourceWarning", "-m", "unittest", "-v", file)
	c.Dir = "tests"
	out, err := c.CombinedOutput()
	for line := range strings.SplitSeq(string(out), "\n") {
		// of a whole file, which Python calls an error
		if why, skips := strings.CutPrefix(line, "unittest.case.SkipTest: "); skips {
			t.Skip(file, ": ", why)
		}
	}
	if err != nil {
		t.Errorf("%s: %v\n%s", file, err, out)
	}
	for line := range strings.SplitSeq(string(out), "\n") {
		if strings.Contains(line, " ... skipped ") {
			t.Skip(file, ": ", line)
		}
	}
}

// command runs a Python with the package of the wheel, temporary files of its own, and nothing of ours in its
// environment.
func (e environment) command(t *testing.T, python string, args ...string) *exec.Cmd {
	c := exec.Command(python, args...)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "STARLING") && !strings.HasPrefix(v, "PYTHON") {
			c.Env = append(c.Env, v)
		}
	}
	c.Env = append(c.Env, "TMPDIR="+t.TempDir(), "PYTHONDONTWRITEBYTECODE=1", "DGLBACKEND=pytorch",
		"XDG_CACHE_HOME="+t.TempDir())
	if python != e.python {
		c.Env = append(c.Env, "PYTHONPATH="+e.alone)
	}
	return c
}

// TestPages runs the Python of the pages about the package, block by block, in a folder of its own. What blocks need
// stands behind the word python: those that need what this Python does not have are left out.
func TestPages(t *testing.T) {
	t.Parallel()
	for page, peer := range map[string]string{"install": "", "from-pyg": "pyg", "from-dgl": "dgl"} {
		t.Run(page, func(t *testing.T) {
			e := installed(t)
			python := e.python
			if peer != "" {
				named := cmp.Or(os.Getenv("STARLING_"+strings.ToUpper(peer)), "../build/peers/"+peer+"/bin/python")
				if found, err := exec.LookPath(named); err == nil {
					python, _ = filepath.Abs(found)
				}
			}
			text, err := os.ReadFile("../docs/" + page + ".md")
			if err != nil {
				t.Fatal(err)
			}
			code, ours, missing := "", 0, map[string]bool{}
			for _, block := range regexp.MustCompile("(?s)```python( [^\n]*)?\n(.*?)```").FindAllSubmatch(text, -1) {
				if needs := strings.Fields(string(block[1])); !e.has(t, python, needs, missing) {
					t.Log("left out: a block that needs ", needs)
					continue
				} else if len(needs) == 0 {
					ours++
				}
				code += string(block[2])
			}
			if ours == 0 {
				t.Fatal("no Python of ours on the page")
			}
			c := e.command(t, python, "-c", code)
			c.Dir = t.TempDir()
			c.Env = append(c.Env, "PATH="+filepath.Dir(e.program)+":"+os.Getenv("PATH"), "XDG_CACHE_HOME="+e.cora(t))
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			} else {
				t.Logf("%s", out)
			}
		})
	}
}

// has tells if a Python has modules; missing are those that it is known not to have.
func (e environment) has(t *testing.T, python string, modules []string, missing map[string]bool) bool {
	for _, m := range modules {
		if missing[m] || e.command(t, python, "-c", "import "+m).Run() != nil {
			missing[m] = true
			return false
		}
	}
	return true
}

// cora is a folder of caches that has Cora: the real one where $STARLING_DATA has it, else a graph of its shape.
func (e environment) cora(t *testing.T) string {
	t.Helper()
	caches := t.TempDir()
	out := filepath.Join(caches, "starling", "datasets", "cora")
	args := []string{"generate", "sbm", "--nodes", "2708", "--edges", "10556", "--features", "1433", "--classes", "7"}
	data := filepath.Join(cmp.Or(os.Getenv("STARLING_DATA"), "../../shared/data"), "planetoid")
	if _, err := os.Stat(filepath.Join(data, "ind.cora.graph")); err == nil {
		args = []string{"import", "planetoid", data, "--name", "cora"}
	}
	if err := os.MkdirAll(filepath.Dir(out), 0o777); err != nil {
		t.Fatal(err)
	}
	if text, err := exec.Command(e.program, append(args, "--out", out, "--quiet")...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return caches
}

// with is a Python of build/ that a test needs, or one that a variable names; without it the test is skipped.
func with(t *testing.T, variable, path string) string {
	t.Helper()
	python := cmp.Or(os.Getenv(variable), filepath.Join("..", "build", path, "bin", "python"))
	found, err := exec.LookPath(python)
	if err != nil {
		t.Skip("not checked here: ", err)
	}
	found, _ = filepath.Abs(found)
	return found
}

// TestPyG trains on PyG's objects, to the bits of their folders, and runs PyG's layers with the weights.
func TestPyG(t *testing.T) {
	t.Parallel()
	tests(t, with(t, "STARLING_PYG", "peers/pyg"), "test_pyg.py")
}

// TestDGL does the same with DGL's graphs.
func TestDGL(t *testing.T) {
	t.Parallel()
	tests(t, with(t, "STARLING_DGL", "peers/dgl"), "test_dgl.py")
}

// TestEstimators holds the estimators to the rules of scikit-learn, by its own checks where they need no rows.
func TestEstimators(t *testing.T) {
	t.Parallel()
	tests(t, with(t, "", "python-tools"), "test_estimators.py")
}

// TestKernel interrupts and restarts the kernel of a notebook that trains: no process is left.
func TestKernel(t *testing.T) { t.Parallel(); tests(t, with(t, "", "python-tools"), "test_kernel.py") }

// TestShown: what terminals show while a run goes on, and when it fails.
func TestShown(t *testing.T) { t.Parallel(); tests(t, with(t, "", "python-tools"), "test_shown.py") }

// TestFrames trains on tables of pandas and polars.
func TestFrames(t *testing.T) { t.Parallel(); tests(t, with(t, "", "python-tools"), "test_frames.py") }

// TestTypesAndStyle: the package passes mypy --strict and ruff, and stays small.
func TestTypesAndStyle(t *testing.T) {
	t.Parallel()
	python := with(t, "", "python-tools")
	cache := filepath.Join("..", "build", "mypy") // kept, since an empty one takes most of the time
	for _, args := range [][]string{{"mypy", "--cache-dir", cache}, {"ruff", "check", "--no-cache", "."}} {
		if out, err := exec.Command(python, append([]string{"-m"}, args...)...).CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", args[0], err, out)
		}
	}
	files, lines := 0, 0
	sources, _ := filepath.Glob("starling/*.py")
	for _, path := range sources {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files, lines = files+1, lines+strings.Count(string(text), "\n")
	}
	if files < 5 || lines > 2000 {
		t.Errorf("%d files of %d lines, want at most 2,000", files, lines)
	}
}

// TestOptions: the options of the package are the flags of the program.
func TestOptions(t *testing.T) {
	t.Parallel()
	e := installed(t)
	room := t.TempDir()
	if err := os.MkdirAll(filepath.Join(room, "python", "starling"), 0o777); err != nil {
		t.Fatal(err)
	}
	c := exec.Command("go", "run", "./internal/release", "options", "-binary", e.program, "-source", room)
	c.Dir = ".."
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	want, err := os.ReadFile(filepath.Join(room, "python", "starling", "_options.py"))
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("starling/_options.py")
	if err != nil || string(got) != string(want) {
		t.Errorf("starling/_options.py is not what go generate ./python writes (%v)", err)
	}
}

// TestTrain trains on arrays in an environment that has nothing but numpy.
func TestTrain(t *testing.T) { t.Parallel(); tests(t, "", "test_train.py") }

// TestMisuse gives the package what it cannot train on, a full disk, and several processes at once.
func TestMisuse(t *testing.T) { t.Parallel(); tests(t, "", "test_misuse.py") }

// TestStops ends Python, or what it starts, in every way: no process and no folder is left.
func TestStops(t *testing.T) { t.Parallel(); tests(t, "", "test_stops.py") }

// TestWheel: the program in the wheel is small enough for a package index, and is also a command of the environment.
func TestWheel(t *testing.T) {
	t.Parallel()
	e := installed(t)
	tag := map[string]string{"amd64": "manylinux_2_17_x86_64", "arm64": "manylinux_2_17_aarch64"}[runtime.GOARCH]
	wheel := filepath.Join(e.wheels, "starling-0.dev0+gtest-py3-none-"+tag+".whl")
	if info, err := os.Stat(wheel); err != nil || info.Size() > 40_000_000 {
		t.Errorf("%s: %v; want at most 40 MB, %+v", wheel, err, info)
	}
	checkManylinux(t, e.program)
	want, err := exec.Command(e.program, "version").Output()
	if err != nil {
		t.Fatal(err)
	}
	got, err := exec.Command(filepath.Join(filepath.Dir(e.python), "starling"), "version").Output()
	if err != nil || string(got) != string(want) {
		t.Errorf("the command of the environment says %q (%v), want %q", got, err, want)
	}
}

// checkManylinux checks what the tag of the wheel says: libraries of the system alone, as glibc 2.17 has them.
func checkManylinux(t *testing.T, program string) {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	libraries, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range libraries {
		if !slices.Contains([]string{"libc.so.6", "libdl.so.2", "libpthread.so.0"}, name) {
			t.Errorf("the program needs %s, which not every Linux has", name)
		}
	}
	symbols, err := f.ImportedSymbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		var minor int
		if n, _ := fmt.Sscanf(s.Version, "GLIBC_2.%d", &minor); s.Version != "" && (n != 1 || minor > 17) {
			t.Errorf("%s is of %s, want GLIBC_2.17 or older", s.Name, s.Version)
		}
	}
}

// TestBareRoot trains in a root that has the program, the C library, /proc and /dev/null: no network, Go or Python.
// scripts/try-install does it in every way that docs/install.md has.
func TestBareRoot(t *testing.T) {
	t.Parallel()
	e := installed(t)
	if os.Getuid() != 0 {
		t.Skip("only root may change roots")
	}
	root := t.TempDir()
	needed, err := exec.Command("ldd", e.program).Output()
	if err != nil {
		t.Skip("ldd: ", err)
	}
	for _, lib := range regexp.MustCompile(`/\S+`).FindAllString(string(needed), -1) {
		b, err := os.ReadFile(lib)
		if err == nil {
			err = os.MkdirAll(filepath.Join(root, filepath.Dir(lib)), 0o777)
		}
		if err == nil {
			err = os.WriteFile(filepath.Join(root, lib), b, 0o777)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	err = errors.Join(os.Link(e.program, filepath.Join(root, "starling")), os.Mkdir(filepath.Join(root, "tmp"), 0o777),
		os.Mkdir(filepath.Join(root, "proc"), 0o777), os.Mkdir(filepath.Join(root, "dev"), 0o777),
		exec.Command("mknod", filepath.Join(root, "dev", "null"), "c", "1", "3").Run())
	if err != nil {
		t.Fatal(err)
	}
	script := `ip link set lo up; mount -t proc proc "$1/proc"; root=$1; shift; exec chroot "$root" /starling "$@"`
	for _, args := range []string{"get demo --out /graph --quiet", "train /graph --epochs 3 --workers 2 --json -"} {
		c := exec.Command("unshare", append([]string{"--net", "--pid", "--fork", "--mount", "sh", "-ec", script, "sh", root},
			strings.Fields(args)...)...)
		out, err := c.CombinedOutput()
		if strings.HasPrefix(string(out), "unshare: ") {
			t.Skip(string(out))
		}
		if err != nil || args[0] == 't' && !strings.Contains(string(out), `"test_accuracy"`) {
			t.Errorf("%s: %v\n%s", args, err, out)
		}
	}
}

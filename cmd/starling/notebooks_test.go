package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestNotebooks executes the notebooks of examples/ with the Python package, each in a kernel of its own, and looks at
// their outputs in a browser: nothing is cut off, and the curves of runs are drawn.
func TestNotebooks(t *testing.T) {
	t.Parallel()
	python, err := filepath.Abs("../../build/python-tools/bin/python")
	if err == nil {
		_, err = os.Stat(python)
	}
	if err != nil {
		t.Skip("no tools for the Python package: ", err)
	}
	books, err := filepath.Glob("../../examples/*.ipynb")
	if err != nil || len(books) < 4 {
		t.Fatal("notebooks: ", err, books)
	}
	pages := t.TempDir()
	c := exec.Command(python, append([]string{"../../python/tests/run_notebook.py", pages}, books...)...)
	c.Env = append(os.Environ(), "STARLING="+binary, "TMPDIR="+t.TempDir(), "PYTHONDONTWRITEBYTECODE=1",
		"XDG_CACHE_HOME="+t.TempDir())
	source, err := filepath.Abs("../../python")
	if err != nil {
		t.Fatal(err)
	}
	c.Env = append(c.Env, "PYTHONPATH="+source)
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, book := range books {
		name := filepath.Base(book)
		t.Run(name, func(t *testing.T) {
			p := openTab(t, "file://"+filepath.Join(pages, name+".html"), "light", 1280)
			for _, x := range []struct {
				mode  string
				width int
			}{{"light", 1280}, {"dark", 400}} {
				p.fits(x.mode, x.width)
				if n := value[int](p, curvesDrawn); n < 2 {
					t.Errorf("%s, %d wide: %d charts are drawn, want the loss and the metric of a run", x.mode, x.width, n)
				}
			}
			p.quiet("")
		})
	}
}

// curvesDrawn is how many charts have lines that can be seen.
const curvesDrawn = `[...document.querySelectorAll(".starling-charts svg.curves")].filter(svg => {
  const r = svg.getBoundingClientRect(), lines = [...svg.querySelectorAll("polyline")];
  return r.width > 150 && r.height > 100 && lines.length && lines.every(l => getComputedStyle(l).stroke != "none" &&
    getComputedStyle(l).stroke != getComputedStyle(svg.closest(".starling-charts")).backgroundColor);
}).length`

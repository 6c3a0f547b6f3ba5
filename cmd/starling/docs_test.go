package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var (
	flagName = regexp.MustCompile(`(^|[^\w-])--([a-z][a-z0-9-]*)`)
	called   = regexp.MustCompile(`(?:^|[\s/(])starling ((?:bench |simulate |paths )?[a-z]+)((?: [^|;&)]*)?)`)
	quoted   = regexp.MustCompile("`[^`]*`")
	joined   = regexp.MustCompile(`\\\n\s*`)
)

// othersFlags are flags of other programs that pages show.
var othersFlags = []string{
	"bind-to", "oversubscribe", // mpirun
	"cpus-per-task", "gpus-per-task", "array", "mpi", // srun, sbatch
	"no-python", "nproc-per-node", // torchrun
	"bidir",        // iperf3
	"from-literal", // kubectl
}

// flagsOf are the flags of all commands, by what is typed.
func flagsOf(c *cobra.Command, typed string, into map[string]map[string]bool) {
	c.InitDefaultHelpFlag()
	c.InitDefaultVersionFlag()
	names := map[string]bool{}
	for _, set := range []*pflag.FlagSet{c.Flags(), c.InheritedFlags()} {
		set.VisitAll(func(f *pflag.Flag) { names[f.Name] = true })
	}
	into[typed] = names
	for _, sub := range c.Commands() {
		flagsOf(sub, strings.TrimSpace(typed+" "+sub.Name()), into)
	}
}

// misnamed are the commands in calls of starling in a text that there are not, and the flags that the command has not.
func misnamed(text string, flags map[string]map[string]bool) (wrong []string) {
	for _, line := range strings.Split(joined.ReplaceAllString(text, " "), "\n") {
		line, _, _ = strings.Cut(line, " # ")
		for _, call := range called.FindAllStringSubmatch(line, -1) {
			has, ok := flags[call[1]]
			if first, _, two := strings.Cut(call[1], " "); two && !ok { // its second word is an argument
				has, ok = flags[first]
			}
			if !ok {
				wrong = append(wrong, call[1])
				continue
			}
			for _, m := range flagName.FindAllStringSubmatch(call[2], -1) {
				if !has[m[2]] {
					wrong = append(wrong, call[1]+" --"+m[2])
				}
			}
		}
	}
	return wrong
}

// codeOf is what a page shows as typed: indented lines, fences and quotes, which may go on in the next line.
func codeOf(page string) (code string) {
	fenced, prose := false, ""
	for _, line := range strings.SplitAfter(page+"\n\n", "\n") {
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case fenced || strings.HasPrefix(line, "    "):
			code += line
		case line != "\n":
			prose += line
		default: // a quote ends with its paragraph at the latest
			for _, q := range quoted.FindAllString(prose, -1) {
				code += strings.ReplaceAll(strings.Trim(q, "`"), "\n", " ") + "\n"
			}
			prose = ""
		}
	}
	return code
}

// TestPagesNameFlags: a flag that a page tells of exists: of starling, of a script of ours or,
// where it is listed, of another program; and where it is typed, as in our help's examples, the
// command exists and has it.
func TestPagesNameFlags(t *testing.T) {
	t.Parallel()
	flags := map[string]map[string]bool{}
	top := root(nil)
	top.InitDefaultHelpCmd()
	top.InitDefaultCompletionCmd()
	flagsOf(top, "", flags)
	known := map[string]bool{}
	for _, names := range flags {
		for name := range names {
			known[name] = true
		}
	}
	scripts := ""
	pages := map[string]string{}
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		in := strings.TrimPrefix(filepath.ToSlash(path), "../../")
		if err != nil || d.IsDir() {
			if in == ".git" || in == "build" || in == "bin" {
				return fs.SkipDir
			}
			return err
		}
		text := func() string {
			b, e := os.ReadFile(path)
			err = e
			return string(b)
		}
		switch {
		case strings.HasPrefix(in, "scripts/"):
			scripts += text()
		case strings.HasSuffix(in, ".md") && in != "CHANGELOG.md": // which tells of what was, too
			pages[in] = text()
		}
		return err
	})
	if err != nil || len(pages) < 10 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	for page, text := range pages {
		for _, m := range flagName.FindAllStringSubmatch(text, -1) {
			if !known[m[2]] && !slices.Contains(othersFlags, m[2]) && !strings.Contains(scripts, "--"+m[2]) {
				t.Errorf("%s tells of --%s, which nothing has", page, m[2])
			}
		}
		for _, wrong := range misnamed(codeOf(text), flags) {
			t.Errorf("%s types starling %s, which there is not", page, wrong)
		}
	}
	examples(top, func(c *cobra.Command) {
		for _, wrong := range misnamed(c.Example, flags) {
			t.Errorf("the help of %s types starling %s, which there is not", c.CommandPath(), wrong)
		}
	})
}

func examples(c *cobra.Command, visit func(*cobra.Command)) {
	visit(c)
	for _, sub := range c.Commands() {
		examples(sub, visit)
	}
}

func TestMisnamedFlagsAreFound(t *testing.T) {
	flags := map[string]map[string]bool{"train": {"model": true}, "bench wire": {"only": true}}
	text := "    ./bin/starling train g --model gcn \\\n      --modle x # --y\nSee `starling bench wire --ops a | starling\ntrain --only`, `starling trian`.\n"
	const want = "train --modle, bench wire --ops, train --only, trian"
	if got := strings.Join(misnamed(codeOf(text), flags), ", "); got != want {
		t.Error(got)
	}
}

package main

import (
	"slices"
	"strings"
	"testing"

	"starling/run"
)

// flagsShown are the flags that a help lists.
func flagsShown(help string) (names []string) {
	for line := range strings.Lines(help) {
		if word, ok := strings.CutPrefix(strings.TrimLeft(line, " "), "--"); ok {
			names = append(names, strings.FieldsFunc(word, func(r rune) bool { return r == ' ' || r == '\n' })[0])
		} else if _, word, ok := strings.Cut(line, ", --"); ok && strings.HasPrefix(strings.TrimLeft(line, " "), "-h") {
			names = append(names, strings.Fields(word)[0])
		}
	}
	return names
}

// TestShortHelp: train --help shows what people need, and --help-all everything.
func TestShortHelp(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	short := flagsShown(works(t, dir, "train", "--help").stdout)
	all := flagsShown(works(t, dir, "train", "--help-all").stdout)
	if len(short) < 25 || len(short) > 35 || len(all) < 80 {
		t.Errorf("%d of %d flags", len(short), len(all))
	}
	for _, name := range append(slices.Clone(commonFlags), short...) {
		if !slices.Contains(all, name) || !slices.Contains(short, name) {
			t.Errorf("--%s is not in both", name)
		}
	}
	if o := works(t, dir, "help", "train"); !strings.Contains(o.stdout, "more flags: starling train --help-all\n") {
		t.Error(o.stdout)
	}
}

// TestWordsOfUsers: flags and values of other libraries, and of other Englishes, are understood.
func TestWordsOfUsers(t *testing.T) {
	t.Parallel()
	dir := small(t)
	o := works(t, dir, "train", "graph", "--dry-run", "--model", "GraphSAGE", "--learning-rate", "0.5", "--optimiser",
		"ADAM",
		"--num-layers", "2", "--mode", "mini", "--sampler", "neighbors", "--num-neighbors", "4,3", "--row-normalise")
	for _, want := range []string{"model: sage\n", "lr: 0.5\n", "optimizer: adam\n", "layers: 2\n",
		"sampler: neighbour\n",
		"row_normalize: true\n"} {
		if !strings.Contains(o.stdout, want) {
			t.Errorf("no %q in\n%s", want, o.stdout)
		}
	}
	works(t, dir, "train", "graph", "--dry-run", "--model", "GCN")
	writeFile(t, dir, "edges.csv", "a,b\nb,c\n")
	for _, flag := range []string{"--undirected", "--symmetrise", "--symmetrize"} {
		o := works(t, dir, "import", "edgelist", "edges.csv", flag, "--out", "und", "--overwrite")
		if !strings.Contains(o.stdout, "4 edges") {
			t.Errorf("%s: %s", flag, o.stdout)
		}
	}
	for _, help := range []string{"train", "import", "generate"} {
		if text := works(t, dir, help, "--help").stdout; strings.Contains(text, "ormalis") ||
			strings.Contains(text, "ymmetris") {
			t.Errorf("%s --help has two spellings", help)
		}
	}
}

// TestCompletion: a shell completes commands, flags that help does not show, and values.
func TestCompletion(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, c := range []struct{ typed, want string }{
		{"train --model ", "gcn sage gat"}, {"train --strategy ", "halo"}, {"train --sampler=", "neighbour cluster"},
		{"train --check", "--checkpoint-dir --checkpoint-every"}, {"tra", "train"}, {"partition --method ",
			"multilevel metis"},
		{"import ", strings.Join(run.Formats(), " ")}, {"generate ", "sbm rmat"}, {"predict --what ",
			"labels embeddings"},
		{"export --format ", "pyg dgl"},
	} {
		o := works(t, dir, append([]string{"__complete"}, strings.Split(c.typed, " ")...)...)
		for _, want := range strings.Fields(c.want) {
			if !strings.Contains("\n"+o.stdout, "\n"+want) {
				t.Errorf("%q: no %s in %q", c.typed, want, o.stdout)
			}
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		works(t, dir, "completion", shell)
	}
}

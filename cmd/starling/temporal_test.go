package main

import (
	"fmt"
	"os/exec"
	"testing"
)

// payments is a folder with pay, a dataset of accounts and payments that have times.
func payments(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	works(t, dir, "generate", "fraud", "--nodes", "600", "--out", "bank", "--quiet")
	works(t, dir, "import", "table", "bank/payments.csv", "--src", "payer", "--dst", "payee", "--time", "paid",
		"--vertices", "bank/accounts.csv", "--id", "account", "--label", "fraud", "--features",
		"days_open,income,device_age", "--standardize", "--vertex-time", "decided", "--split", "time:0.6,0.8", "--out",
		"pay", "--quiet")
	return dir
}

// temporal is a run that shows a seed vertex what is from before its time.
func temporal(data string, more ...string) []string {
	return append([]string{"train", data, "--mode", "mini", "--model", "sage", "--temporal", "uniform", "--fanout", "4,4",
		"--layers", "2", "--hidden", "8", "--batch-size", "64", "--seed", "5"}, more...)
}

// TestTemporalKilled: a temporal run that is killed and goes on ends with the bits of one that was left alone, on one
// worker and on two.
func TestTemporalKilled(t *testing.T) {
	t.Parallel()
	a := autoKilled{dir: payments(t)}
	for name, how := range map[string][]string{"one": nil, "two": {"--workers", "2", "--in-process"}} {
		saving := append(how, "--resume-if-any", "--checkpoint-dir", name, "--checkpoint-every", "1")
		s := startCommand(t, in(t, a.dir, exec.Command(binary, temporal("pay", append(saving, "--epochs", "100000")...)...)))
		a.wait(t, name, "epoch-00*[1-9]*")
		if err := s.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		s.end()
		saved := a.epochs(t, name)
		epochs := fmt.Sprint(saved + 2)
		works(t, a.dir, temporal("pay", append(saving, "--epochs", epochs, "--out", name+".model", "--json",
			name+".json", "--quiet")...)...)
		works(t, a.dir, temporal("pay", append(how, "--epochs", epochs, "--out", name+".alone", "--json",
			name+".alone.json", "--quiet")...)...)
		if readFile(t, a.dir, name+".model/model.safetensors") != readFile(t, a.dir, name+".alone/model.safetensors") {
			t.Errorf("%s, killed after %d epochs: other weights than of a run that was left alone", name, saved)
		}
		got, want := losses(t, result(t, readFile(t, a.dir, name+".json"))),
			losses(t, result(t, readFile(t, a.dir, name+".alone.json")))
		if fmt.Sprint(got) != fmt.Sprint(want) || len(got) != saved+2 {
			t.Errorf("%s: losses %v, of a run that was left alone %v", name, got, want)
		}
	}
}

// TestTemporalRefuses: one sentence each, which names the flag and the remedy.
func TestTemporalRefuses(t *testing.T) {
	t.Parallel()
	dir := payments(t)
	const flag = "--temporal uniform"
	for _, c := range []struct {
		words []string
		more  []string
	}{
		{[]string{flag, "--model gcn", "use sage, gin or gat"}, []string{"--model", "gcn"}},
		{[]string{flag, "--model resgcn+", "use sage, gin or gat"}, []string{"--model", "resgcn+"}},
		{[]string{flag, "--model mlp", "leave it out"}, []string{"--model", "mlp"}},
		{[]string{flag, "--norm batch", "use --norm layer or none"}, []string{"--norm", "batch"}},
		{[]string{flag, "--sampler cluster", "use --sampler neighbour"}, []string{"--sampler", "cluster", "--fanout", "auto"}},
		{[]string{flag, "--replace", "leave it out"}, []string{"--replace"}},
		{[]string{flag, "--inductive", "leave it out"}, []string{"--inductive"}},
		{[]string{flag, "--learn-embeddings", "leave one of them out"}, []string{"--learn-embeddings", "4"}},
		{[]string{"--temporal", "use --mode mini"}, []string{"--mode", "full", "--fanout", "auto", "--batch-size", "1024"}},
		{[]string{"--temporal", "soon", "uniform", "recent"}, []string{"--temporal", "soon"}},
		{[]string{flag, "--task link", "leave out --temporal"}, []string{"--task", "link"}},
		{[]string{"hopgnn", flag, "--strategy"}, []string{"--strategy", "hopgnn", "--workers", "2"}},
	} {
		refuses(t, dir, c.words, replacing(temporal("pay"), c.more)...)
	}
	copyInto(t, dir, "graph")
	refuses(t, dir, []string{"--temporal", "no times", "leave out --temporal"}, temporal("graph")...)
	works(t, dir, "generate", "typed", "--like", "small", "--out", "typed", "--quiet")
	refuses(t, dir, []string{flag, "--model rgcn", "leave out --temporal"},
		replacing(temporal("typed"), []string{"--model", "rgcn"})...)
	works(t, dir, temporal("pay", "--epochs", "2", "--out", "run", "--quiet")...)
	refuses(t, dir, []string{"temporal", "use starling predict"}, "serve", "run", "pay", "--listen", "127.0.0.1:0")
	works(t, dir, "predict", "run", "pay", "--out", "labels.npy", "--quiet")
}

// replacing is a command with other values of flags, each pair of more that begins with one it has.
func replacing(args, more []string) []string {
	out := append([]string{}, args...)
	for i := 0; i < len(more); i++ {
		at := -1
		for k, a := range out {
			if a == more[i] {
				at = k
			}
		}
		if at >= 0 && i+1 < len(more) {
			i++
			out[at+1] = more[i]
			continue
		}
		out = append(out, more[i])
	}
	return out
}

package run

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"starling/event"
	"starling/spec"
)

// TestMemoryIsSaidBefore: before the work, several processes say what each of them and all will take.
func TestMemoryIsSaidBefore(t *testing.T) {
	dir := t.TempDir()
	web, out := filepath.Join(dir, "web"), filepath.Join(dir, "graph")
	if err := os.Mkdir(web, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(web, "edges-0.csv"), []byte("1,2\n2,3\n3,1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	var first []string // of each command, what it says before its progress
	listen := event.Func(func(e event.Event) {
		if n, ok := e.(event.Note); ok {
			first = append(first, n.Text)
		} else {
			first = append(first, "work")
		}
	})
	tasks := func(flag string) Processes {
		p, err := ProcessesOf(flag, 1, "none", nil, func(string) string { return "" })
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	in := ShardOptions{Processes: tasks("--workers"), Memory: "1MiB"}
	if _, err := ImportShards(t.Context(), "edgelist", web, ImportOptions{}, in, out, listen); err != nil {
		t.Fatal(err)
	}
	const want = "1 process: each takes at most 1.0 MiB for its data (--memory) and about 64.0 MiB beside, 65.0 MiB in all"
	if len(first) < 2 || first[0] != want {
		t.Errorf("%q, want %s first", first, want)
	}
	s := spec.DefaultPartition()
	s.Parts, s.Out, s.Method, s.Shared.Processes, first = 2, filepath.Join(dir, "parts"), "fennel", 1, nil
	if _, err := PartitionShared(t.Context(), out, s, tasks("--processes"), "1MiB", listen); err != nil {
		t.Fatal(err)
	}
	const wantParts = "1 process: each takes at most 1.0 MiB for edges (--memory), about 64.0 MiB for the program, " +
		"48 B for 3 vertices, and 54 B for an average part: 65.0 MiB, 65.0 MiB in all"
	if len(first) < 2 || first[0] != wantParts {
		t.Errorf("%q, want %s first", first, wantParts)
	}
}

// TestTasksAreProcesses: the tasks of a launcher are the processes, whose number must be theirs; a helper is none of
// them.
func TestTasksAreProcesses(t *testing.T) {
	of := func(env string, launcher string) (Processes, error) {
		return ProcessesOf("--workers", 3, launcher, nil, func(name string) string {
			for _, word := range strings.Fields(env) {
				if value, is := strings.CutPrefix(word, name+"="); is {
					return value
				}
			}
			return ""
		})
	}
	for env, want := range map[string][2]int{"": {0, 0}, "PMI_RANK=2 PMI_SIZE=3": {2, 3}, "PMI_RANK=0 PMI_SIZE=3": {0, 3},
		"SLURM_JOB_ID=5 SLURM_PROCID=0 SLURM_NTASKS=3": {0, 0}, // a batch script
		"STARLING_HELPER=1 PMI_RANK=2 PMI_SIZE=3":      {0, 0}} {
		p, err := of(env, "auto")
		if err != nil || [2]int{p.role.Rank, p.role.Size} != want ||
			p.Silent() != (p.role.Rank > 0 || strings.HasPrefix(env, helperVariable)) {
			t.Errorf("%s: %+v, %v", env, p, err)
		}
		if h := (&helpers{of: p}); p.role.Size > 0 && (h.start() != nil || h.n != 0) {
			t.Errorf("%s: a task has started others", env)
		}
	}
	if _, err := of("PMI_RANK=2 PMI_SIZE=4", "auto"); err == nil || !strings.Contains(err.Error(), "found 3, want 4") {
		t.Error(err)
	}
	if p, err := of("PMI_RANK=2 PMI_SIZE=4", "none"); err != nil || p.role.Size != 0 {
		t.Error(p, err)
	}
}

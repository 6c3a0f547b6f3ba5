package main

import (
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"
)

// ofLaunchers are the variables that would make these tests' own commands tasks.
var ofLaunchers = []string{"SLURM_STEP_ID", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK", "PMI_SIZE",
	"RANK", "WORLD_SIZE", "JOB_COMPLETION_INDEX", "STARLING_SIZE", "STARLING_MASTER", "STARLING_TOKEN"}

// launched is a small graph in four parts, and the losses of one worker.
func launched(t *testing.T) (dir string, want []float64) {
	t.Helper()
	dir = small(t)
	works(t, dir, "partition", "graph", "--parts", "4", "--out", "parts", "--quiet")
	return dir, losses(t, result(t, works(t, dir, trainArgs("--json", "-", "--quiet")...).stdout))
}

// trained compares a result with that of one worker.
func trained(t *testing.T, what, dir string, want []float64) {
	t.Helper()
	m := result(t, readFile(t, dir, "r.json"))
	sameLosses(t, what, losses(t, m), want)
	if m["workers"] != 4.0 {
		t.Errorf("%s: %v workers", what, m["workers"])
	}
	if err := os.Remove(filepath.Join(dir, "r.json")); err != nil {
		t.Error(err)
	}
	nothingLeft(t, dir)
	for _, d := range []string{dir, filepath.Join(temporary(dir), fmt.Sprint("starling-", os.Getuid()))} {
		if left, _ := filepath.Glob(filepath.Join(d, ".starling-*")); len(left) > 0 {
			t.Errorf("%s: %v was left", what, left)
		}
	}
}

// task is a command with a launcher's variables.
func task(t *testing.T, dir string, env []string, args ...string) *started {
	t.Helper()
	return startCommand(t, withEnv(in(t, dir, exec.Command(binary, args...)), env...))
}

// withEnv gives a command more variables.
func withEnv(c *exec.Cmd, env ...string) *exec.Cmd {
	c.Env = append(c.Environ(), env...)
	return c
}

func taskArgs(more ...string) []string {
	return append(append([]string{"train", "parts", "--json", "r.json", "--timeout", fmt.Sprint(hang.Seconds())},
		quick...), more...)
}

// The same command in every task: one coordinates, all train.
func TestTasks(t *testing.T) {
	t.Parallel()
	dir, want := launched(t)
	if err := os.Mkdir(filepath.Join(dir, "meet"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, env, args string }{
		{"mpich, in the working folder", "PMI_RANK=%d PMI_SIZE=4", ""},
		{"slurm on one host", "SLURM_STEP_ID=0 SLURM_JOB_ID=7 SLURM_PROCID=%d SLURM_STEP_NUM_TASKS=4 " +
			"SLURM_STEP_NUM_NODES=1 SLURM_STEP_NODELIST=here", ""},
		{"torchrun, at an address", "RANK=%d WORLD_SIZE=4 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + freePort() +
			" STARLING_TOKEN=correct-horse-battery-staple", ""},
		{"pods, in a folder that is given", "JOB_COMPLETION_INDEX=%d STARLING_SIZE=4", "--rendezvous file:meet"},
	} {
		var tasks []*started
		for _, rank := range []int{2, 1, 3, 0} { // in any order
			tasks = append(tasks, task(t, dir, strings.Fields(fmt.Sprintf(c.env, rank)),
				taskArgs(strings.Fields(c.args)...)...))
		}
		for _, s := range tasks {
			if status := s.end(); status != 0 {
				t.Errorf("%s: status %d\n%s", c.name, status, s.stderr.String())
			}
		}
		trained(t, c.name, dir, want)
	}
}

// Tasks on two hosts: with a secret the rendezvous is where the launcher says that the first is,
// without in the working folder, which has one.
func TestTasksOnTwoHosts(t *testing.T) {
	newCluster(t, "--hosts", "2")
	dir, want := launched(t)
	for _, c := range []struct{ name, env string }{
		{"mpich", "PMI_RANK=%d PMI_SIZE=4 MPI_LOCALNRANKS=2"},
		{"slurm", "SLURM_STEP_ID=0 SLURM_JOB_ID=7 SLURM_PROCID=%d SLURM_STEP_NUM_TASKS=4 SLURM_STEP_NUM_NODES=2 " +
			"SLURM_STEP_NODELIST=10.77.0.[1-2] STARLING_TOKEN=correct-horse-battery-staple"},
	} {
		var tasks []*exec.Cmd
		var said [4]bytes.Buffer
		for rank := range 4 {
			cmd := netcluster("exec", append([]string{fmt.Sprint(rank / 2), binary}, taskArgs()...)...)
			withEnv(in(t, dir, cmd), strings.Fields(fmt.Sprintf(c.env, rank))...)
			cmd.Stdout, cmd.Stderr = &said[rank], &said[rank]
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			tasks = append(tasks, cmd)
		}
		for rank, cmd := range tasks {
			if err := cmd.Wait(); err != nil {
				t.Errorf("%s: rank %d: %v\n%s", c.name, rank, err, said[rank].String())
			}
		}
		if where := map[string]string{"mpich": "file:" + dir,
			"slurm": "tcp:10.77.0.1:"}[c.name]; !strings.Contains(said[0].String(), where) {
			t.Errorf("%s: no %s in %s", c.name, where, said[0].String())
		}
		trained(t, c.name, dir, want)
	}
}

// The manifest says everywhere how many pods there are, and what they are told is right.
func TestManifest(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.FromSlash("../../deploy/kubernetes.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	find := func(pattern string) string {
		t.Helper()
		m := regexp.MustCompile(`(?m)` + pattern).FindStringSubmatch(text)
		if m == nil {
			t.Fatalf("no %s in the manifest", pattern)
		}
		return m[1]
	}
	n := find(`^  completions: (\d+)$`)
	if find(`^  parallelism: (\d+)$`) != n || find(`STARLING_SIZE\n +value: "(\d+)"$`) != n {
		t.Errorf("it does not say %s pods everywhere", n)
	}
	job, sub, port := find(`kind: Job\nmetadata:\n  name: (\S+)`), find(`subdomain: (\S+)`), find(`containerPort: (\d+)`)
	if find(`kind: Service\nmetadata:\n  name: (\S+)`) != sub || find(`STARLING_MASTER\n +value: (\S+)`) != job+"-0."+sub+":"+port || find(`port: (\d+)`) != port {
		t.Errorf("pods do not find %s-0.%s:%s", job, sub, port)
	}
	dir := small(t)
	works(t, dir, "partition", "graph", "--parts", n, "--out", "parts", "--quiet")
	var args []string
	for _, m := range regexp.MustCompile(`(?m)^            - ([^n]\S*)$`).FindAllStringSubmatch(text, -1) {
		args = append(args, strings.ReplaceAll(m[1], "/data/", ""))
	}
	works(t, dir, append(args, "--dry-run")...)
	// The comment says where the requests are from, and that command prints them.
	command := find("of `starling (plan [^`]*)`")
	of := find(`"([^"]*)" of .starling plan`)
	asked := works(t, dir, append(strings.Fields(command), "--strategies", "halo", "--rates-file", "rates")...).stdout
	if line := regexp.MustCompile(`\n` + of + `: requests: \{cpu: "\d+", memory: \d+Mi\}\n`); !line.MatchString(asked) {
		t.Errorf("%q is not in\n%s", line, asked)
	}
	find(`requests:\n +cpu: ("\d+")\n +memory: \d+Gi$`)
}

// A worker's process that is killed is started again by its own task.
func TestKilledTask(t *testing.T) {
	t.Parallel()
	dir, want := launched(t)
	var tasks []*started
	for _, rank := range []int{1, 2, 3, 0} {
		tasks = append(tasks, task(t, dir, []string{fmt.Sprintf("PMI_RANK=%d", rank), "PMI_SIZE=4"},
			append(taskArgs(), endless...)...))
	}
	first := tasks[3]
	first.until(t, `^epoch `)
	pids := workersOf(t, dir)
	if len(pids) != 4 {
		t.Fatalf("workers %v", pids)
	}
	for _, pid := range pids[1:3] {
		syscall.Kill(pid, syscall.SIGKILL)
	}
	first.until(t, `training goes on from epoch`)
	first.until(t, `^epoch `)
	if err := first.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	for _, s := range tasks {
		wanted := 0 // it was told to stop, and did
		if s == first {
			wanted = 130
		}
		if status := s.end(); status != wanted {
			t.Errorf("status %d\n%s%s", status, s.stdout.String(), s.stderr.String())
		}
	}
	m := result(t, readFile(t, dir, "r.json"))
	if again, _ := m["restarts"].([]any); len(again) == 0 {
		t.Errorf("restarts %v", m["restarts"])
	}
	got := losses(t, m)
	n := min(len(got), len(want)) // a slow machine has done fewer
	sameLosses(t, "the first epochs", got[:n], want[:n])
	nothingLeft(t, dir)
}

// Kubernetes moves a pod by ending it and starting another: the others go on with that one. Where the pod of rank 0 is
// ended the run stops and saves, and no pod ends well, so that all are started again.
func TestPodsThatMove(t *testing.T) {
	t.Parallel()
	dir, _ := launched(t)
	if err := os.Mkdir(filepath.Join(dir, "meet"), 0o755); err != nil {
		t.Fatal(err)
	}
	pod := func(rank int) *started {
		return task(t, dir, []string{fmt.Sprintf("JOB_COMPLETION_INDEX=%d", rank), "STARLING_SIZE=4"},
			append(taskArgs("--rendezvous", "file:meet"), endless...)...)
	}
	var pods []*started
	for rank := range 4 {
		pods = append(pods, pod(rank))
	}
	first, moved := pods[0], pods[2]
	first.until(t, `^epoch `)
	moved.Process.Signal(syscall.SIGTERM)
	if status := moved.end(); status != 1 || !strings.Contains(moved.stderr.String(), "takes the place of this one") {
		t.Errorf("the pod that was ended: status %d\n%s", status, moved.stderr.String())
	}
	pods[2] = pod(2)
	first.until(t, `training goes on from epoch`)
	first.until(t, `^epoch `)
	first.Process.Signal(syscall.SIGTERM)
	for rank, s := range pods {
		if status := s.end(); status != 130 {
			t.Errorf("rank %d: status %d\n%s%s", rank, status, s.stdout.String(), s.stderr.String())
		}
	}
	if m := result(t, readFile(t, dir, "r.json")); m["reason"] != "interrupted" {
		t.Errorf("reason %v", m["reason"])
	}
	nothingLeft(t, dir)
}

// Slurm ends a job by telling every process of it, and a task tells its own worker too:
// that is no second Ctrl-C, all stop after the same epoch and save.
func TestTerminatedTasks(t *testing.T) {
	t.Parallel()
	dir, _ := launched(t)
	var tasks []*started
	for _, rank := range []int{1, 2, 3, 0} {
		tasks = append(tasks, task(t, dir, []string{fmt.Sprintf("PMI_RANK=%d", rank), "PMI_SIZE=4"},
			append(taskArgs("--heartbeat", fmt.Sprint(hang.Seconds())), endless...)...))
	}
	first := tasks[3]
	first.until(t, `^epoch `)
	pids := workersOf(t, dir)
	for _, s := range tasks {
		pids = append(pids, s.Process.Pid)
	}
	for range 3 {
		for _, pid := range pids { // some may be gone by now
			syscall.Kill(pid, syscall.SIGTERM)
		}
	}
	for _, s := range tasks {
		if status := s.end(); status != 130 && (s == first || status != 0) {
			t.Errorf("status %d\n%s%s", status, s.stdout.String(), s.stderr.String())
		}
	}
	if m := result(t, readFile(t, dir, "r.json")); m["reason"] != "interrupted" {
		t.Errorf("reason %v", m["reason"])
	}
	nothingLeft(t, dir)
}

func TestTaskMistakes(t *testing.T) {
	t.Parallel()
	dir, _ := launched(t)
	as := func(env string, args ...string) output {
		t.Helper()
		return finish(t, withEnv(in(t, dir, exec.Command(binary, args...)), strings.Fields(env)...))
	}
	refusesAs := func(env, want string, args ...string) {
		t.Helper()
		args = append([]string{"train", "parts", "--timeout", "1"}, args...)
		refused(t, as(env, args...), []string{want}, args)
	}
	refusesAs("PMI_RANK=4 PMI_SIZE=4", "PMI_RANK")
	refusesAs("PMI_RANK=1 PMI_SIZE=4", "the tasks that mpich has started", "--workers", "3")
	refusesAs("PMI_RANK=0 PMI_SIZE=3", "the parts of parts")
	// it does not wait for rank 0
	refusesAs("PMI_RANK=1 PMI_SIZE=3", "the parts of parts", "--timeout", fmt.Sprint(2*hang.Seconds()))
	refusesAs("JOB_COMPLETION_INDEX=1 STARLING_SIZE=4", "STARLING_MASTER")
	refusesAs("PMI_RANK=1 PMI_SIZE=4", "--rendezvous", "--rendezvous", "zookeeper:x")
	refusesAs("PMI_RANK=1 PMI_SIZE=4", "--model", "--model", "gnc")
	refusesAs("", "--launcher", "--launcher", "lsf")
	refusesAs("", "it is for workers that a launcher starts", "--rendezvous", "file:.")
	refusesAs("", "no such file", "--hosts", "none")
	refusesAs("", "it is for --hosts", "--ssh-command", "rsh")
	if err := os.WriteFile(filepath.Join(dir, "hosts"), []byte("localhost slots=3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refusesAs("", "3 slots", "--hosts", "hosts")
	// A task whose coordinator never comes gives up.
	if o := as("PMI_RANK=1 PMI_SIZE=4", "train", "parts", "--timeout", "1"); o.status != 2 ||
		!strings.Contains(o.stderr, "no run in ") {
		t.Errorf("status %d, %s", o.status, o.stderr)
	}
	args := []string{"train", "graph", "--timeout", fmt.Sprint(2 * hang.Seconds())}
	refused(t, as("PMI_RANK=1 PMI_SIZE=4", args...), []string{"DIR", "a dataset", "starling partition graph --parts 4"}, args)
	if o := as("PMI_RANK=0 PMI_SIZE=4", "train", "graph", "--launcher", "none", "--epochs", "1", "--quiet"); o.status != 0 {
		t.Errorf("status %d, %s", o.status, o.stderr)
	}
}

// Under the launchers themselves, where they are installed.
func TestMPILaunchers(t *testing.T) {
	t.Parallel()
	dir, want := launched(t)
	for _, c := range []struct{ launcher, args, from string }{{"mpirun.openmpi", "-n 4 --oversubscribe", "openmpi-bin"},
		{"mpiexec.mpich", "-n 4", "mpich"}} {
		t.Run(c.launcher, func(t *testing.T) {
			path, err := exec.LookPath(c.launcher)
			if err != nil {
				t.Skipf("%s is not installed: nothing was run under it (Debian's package is %s)", c.launcher, c.from)
			}
			cmd := exec.Command(path, append(append(strings.Fields(c.args), binary), taskArgs()...)...)
			withEnv(in(t, dir, cmd), "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1")
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			trained(t, c.launcher, dir, want)
		})
	}
}

// Workers that know where etcd is, and nothing else.
func TestMeetingInEtcd(t *testing.T) {
	t.Parallel()
	path, err := exec.LookPath("etcd")
	if err != nil {
		t.Skip("etcd is not installed: no run used it (Debian's package is etcd-server)")
	}
	dir, want := launched(t)
	var urls [2]string
	for i := range urls {
		urls[i] = "http://127.0.0.1:" + freePort()
	}
	server := exec.Command(path, "--data-dir", inMemory(t), "--listen-client-urls", urls[0], "--advertise-client-urls",
		urls[0],
		"--listen-peer-urls", urls[1], "--initial-advertise-peer-urls", urls[1],
		"--initial-cluster", "default="+urls[1], "--log-level", "error")
	var said bytes.Buffer
	server.Stdout, server.Stderr = &said, &said
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Process.Kill()
		server.Wait()
	})
	for end := time.Now().Add(hang); ; time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get(urls[0] + "/health")
		if err == nil {
			resp.Body.Close()
			break
		}
		if time.Now().After(end) {
			t.Fatal("etcd did not start: ", said.String())
		}
	}
	at := "etcd:" + urls[0] + "/test"
	refuses(t, dir, []string{"--listen", "--token-file"}, "train", "parts", "--no-launch", "--rendezvous", at)
	token := []string{"STARLING_TOKEN=correct horse battery staple"}
	var all []*started
	for rank := range 4 {
		all = append(all, task(t, dir, token, "worker", "--rendezvous", at, "--rank", fmt.Sprint(rank), "--timeout",
			fmt.Sprint(hang.Seconds())))
	}
	all = append(all, task(t, dir, token, taskArgs("--no-launch", "--rendezvous", at)...))
	for _, s := range all {
		if status := s.end(); status != 0 {
			t.Errorf("status %d\n%s", status, s.stderr.String())
		}
	}
	trained(t, "etcd", dir, want)
}

// inMemory is a folder on no disk, if there is one: a server that waits for a busy disk
// does not answer meanwhile.
func inMemory(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "etcd-")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// A hosts file, with a command in ssh's place that stays here.
func TestHosts(t *testing.T) {
	t.Parallel()
	dir, want := launched(t)
	for name, text := range map[string]string{
		"ssh": "#!/bin/sh\necho \"$1: $2\" >> calls\n[ \"$1\" != gone ] || { echo 'ssh: no such host' >&2; exit " +
			"255; }\nshift\nexec sh -c \"$*\"\n",
		"hosts": "127.0.0.1 slots=3 dir=copy\nlocalhost slots=2\n",
		"lost":  "127.0.0.1 slots=3\ngone\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.CopyFS(filepath.Join(dir, "copy"), os.DirFS(filepath.Join(dir, "parts"))); err != nil {
		t.Fatal(err)
	}
	works(t, dir, taskArgs("--hosts", "hosts", "--ssh-command", "./ssh", "--quiet")...)
	trained(t, "hosts", dir, want)
	calls := readFile(t, dir, "calls")
	if strings.Count(calls, "127.0.0.1: ") != 3 || strings.Count(calls, "localhost: ") != 1 ||
		strings.Count(calls, "--part-dir") != 3 || strings.Contains(calls, "TOKEN=") {
		t.Error(calls)
	}
	o := starling(t, dir, taskArgs("--hosts", "lost", "--ssh-command", "./ssh", "--listen", "127.0.0.1:0")...)
	if o.status != 1 || !strings.Contains(o.stderr, "before it had logged in to gone; its last line: ssh: no such host") {
		t.Errorf("status %d, %s", o.status, o.stderr)
	}
	if n := strings.Count(readFile(t, dir, "calls"), "gone: "); n != 1 {
		t.Errorf("a host that cannot be logged in to was tried %d times", n)
	}
	nothingLeft(t, dir)
	refuses(t, dir, []string{"--parts 5"}, "train", "graph", "--hosts", "hosts")
}

// A run that a launcher starts again goes on where it was.
func TestResumeIfAny(t *testing.T) {
	t.Parallel()
	dir := small(t)
	again := func(epochs string) map[string]any {
		t.Helper()
		return result(t, works(t, dir, trainArgs("--epochs", epochs, "--checkpoint-dir", "ck", "--resume-if-any",
			"--json", "-", "--quiet")...).stdout)
	}
	again("4")
	got := again("10")
	sameLosses(t, "resumed", losses(t, got), losses(t, result(t,
		works(t, dir, trainArgs("--json", "-", "--quiet")...).stdout)))
	refuses(t, dir, []string{"--resume-if-any", "--checkpoint-dir"}, trainArgs("--resume-if-any")...)
}

package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"syscall"
	"testing"
)

// whenStopped takes away what would outlive tests that a user stops, whose own cleanups
// are not run then: hosts of clusters with all that runs there, and the tests' folders.
func whenStopped(dir string) {
	told := make(chan os.Signal, 1)
	signal.Notify(told, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-told
		for name := range clusters(os.Getpid()) {
			netcluster("down", "--name", name).Run()
		}
		os.RemoveAll(dir)
		os.Exit(130)
	}()
}

// clusters are the names of those that tests of a process have made.
func clusters(pid int) map[string]bool {
	names := map[string]bool{}
	out, _ := exec.Command("ip", "netns", "list").Output()
	of := regexp.MustCompile(fmt.Sprintf(`(?m)^(stt%d(?:lane\d+)?)-`, pid))
	for _, found := range of.FindAllStringSubmatch(string(out), -1) {
		names[found[1]] = true
	}
	return names
}

// stoppedVar makes this program one that builds clusters and waits to be stopped.
const stoppedVar = "STARLING_TEST_STOPPED"

func waitToBeStopped(dir string) {
	for _, args := range [][]string{nil, {"--name", fmt.Sprintf("stt%dlane0", os.Getpid())}} {
		if out, err := netcluster("up", args...).CombinedOutput(); err != nil {
			fmt.Printf("%v: %s\n", err, out)
		}
	}
	fmt.Println(dir)
	select {}
}

// TestStopped: tests that are stopped leave no namespaces and no folder behind.
func TestStopped(t *testing.T) {
	t.Parallel()
	needNamespaces(t)
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), stoppedVar+"=1")
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if before := clusters(c.Process.Pid); err != nil || len(before) != 2 {
		t.Errorf("clusters %v, %q, %v", before, line, err)
	}
	c.Process.Signal(os.Interrupt)
	c.Wait()
	if left := clusters(c.Process.Pid); len(left) > 0 || c.ProcessState.ExitCode() != 130 {
		t.Errorf("status %d, left are %v", c.ProcessState.ExitCode(), left)
	}
	if _, err := os.Stat(strings.TrimSpace(line)); !os.IsNotExist(err) {
		t.Errorf("of the folder %s: %v", line, err)
	}
}

package cluster

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the process when its parent dies. A group of
// its own keeps the terminal's Ctrl-C from it: the coordinator passes that on, so
// that all stop after the same epoch.
func dieWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

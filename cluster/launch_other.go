//go:build !linux

package cluster

import "os/exec"

// dieWithParent has nothing to ask of this system: a worker ends when its control
// connection does.
func dieWithParent(*exec.Cmd) {}

//go:build amd64 || arm64 || riscv64 || loong64

package xdp

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestVethTakesFramesWithoutEthtool: the other end of a veth gets receive offload, in this network namespace and in
// another, without the program ethtool.
func TestVethTakesFramesWithoutEthtool(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("network namespaces need root")
	}
	space := fmt.Sprintf("stv%d", os.Getpid())
	for _, peer := range []string{"far", "far netns " + space} {
		t.Run(peer, func(t *testing.T) {
			runtime.LockOSThread() // and never unlocked: the thread, with its namespace, ends with the goroutine
			if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
				t.Skipf("no network namespace: %v", err)
			}
			steps(t, "ip netns add "+space, "ip link add near type veth peer name "+peer)
			defer exec.Command("ip", "netns", "delete", space).Run()
			near, err := net.InterfaceByName("near")
			if err != nil {
				t.Fatal(err)
			}
			far, err := linkOf(near.Index)
			if err != nil || far.kind != "veth" || far.elsewhere != strings.Contains(peer, "netns") {
				t.Fatalf("%+v, %v", far, err)
			}
			if offloaded(t, far) {
				t.Skip("veths have receive offload here from the beginning")
			}
			if err := takesFrames(near); err != nil || !offloaded(t, far) {
				t.Errorf("%v, receive offload %v", err, offloaded(t, far))
			}
		})
	}
}

// offloaded reports whether the other end has receive offload.
func offloaded(t *testing.T, of ends) bool {
	t.Helper()
	var is uint32
	read := func() (err error) {
		is, err = receiveOffload("far", unix.ETHTOOL_GGRO, 0)
		return err
	}
	err := error(nil)
	if of.elsewhere {
		err = within(of.nsid, read)
	} else {
		err = read()
	}
	if err != nil {
		t.Fatal(err)
	}
	return is == 1
}

func steps(t *testing.T, lines ...string) {
	t.Helper()
	for _, line := range lines {
		words := strings.Fields(line)
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			t.Skipf("%s: %v: %s", line, err, out)
		}
	}
}

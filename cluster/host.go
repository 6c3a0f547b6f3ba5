package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"strings"
)

// hostID is equal for processes that can share memory, and differs between hosts.
// Containers and network namespaces of one machine count as hosts of their own:
// they need not see the same files, and their links are what a run is about.
func hostID() string {
	name, _ := os.Hostname()
	marks := []string{name}
	if boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil {
		marks = append(marks, string(boot))
	}
	for _, space := range []string{"net", "mnt", "ipc"} {
		link, _ := os.Readlink("/proc/self/ns/" + space)
		marks = append(marks, link)
	}
	sum := sha256.Sum256([]byte(strings.Join(marks, "\n")))
	return hex.EncodeToString(sum[:8])
}

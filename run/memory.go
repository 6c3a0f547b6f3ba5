package run

import (
	"bufio"
	"os"
	"path"
	"strconv"
	"strings"
)

// memoryTotal and memoryFree are the bytes of memory this process may use at
// most and may use now, as the kernel and the control group say; 0 if unknown.
func memoryTotal() int64 {
	return least(meminfo("MemTotal"), cgroup("memory.max"), cgroup("memory.limit_in_bytes"))
}

func memoryFree() int64 {
	free := meminfo("MemAvailable")
	// A control group's use counts its page cache, which the kernel gives up when
	// asked; that part is free.
	used := cgroup("memory.current") - cgroupStat("inactive_file") - cgroupStat("active_file")
	if limit := cgroup("memory.max"); limit > 0 {
		free = least(free, max(limit-used, 1))
	}
	return free
}

// least is the smallest of the known numbers.
func least(known ...int64) (n int64) {
	for _, k := range known {
		if k > 0 && (n == 0 || k < n) {
			n = k
		}
	}
	return n
}

func meminfo(key string) int64 { return 1024 * keyed("/proc/meminfo", key+":") }

// cgroup reads a limit of this process's control group, or of the one mounted at
// the root, as containers see it. "max" and absence read as 0.
func cgroup(name string) int64 {
	for _, dir := range []string{"/sys/fs/cgroup" + ownGroup(), "/sys/fs/cgroup", "/sys/fs/cgroup/memory"} {
		b, err := os.ReadFile(path.Join(dir, name))
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n < 1<<60 {
			return n
		}
	}
	return 0
}

func cgroupStat(key string) int64 {
	for _, dir := range []string{"/sys/fs/cgroup" + ownGroup(), "/sys/fs/cgroup"} {
		if n := keyed(path.Join(dir, "memory.stat"), key); n > 0 {
			return n
		}
	}
	return 0
}

// ownGroup is the path of this process's version 2 control group.
func ownGroup() string {
	b, _ := os.ReadFile("/proc/self/cgroup")
	for line := range strings.Lines(string(b)) {
		if group, ok := strings.CutPrefix(line, "0::"); ok {
			return strings.TrimSpace(group)
		}
	}
	return ""
}

// keyed finds the number after a key in a file of "key number" lines.
func keyed(file, key string) int64 {
	f, err := os.Open(file)
	if err != nil {
		return 0
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if w := strings.Fields(lines.Text()); len(w) >= 2 && w[0] == key {
			n, _ := strconv.ParseInt(w[1], 10, 64)
			return n
		}
	}
	return 0
}

// PeakRSS is the most memory this process has had resident, mapped files included.
func PeakRSS() int64 {
	if n := keyed("/proc/self/status", "VmHWM:"); n > 0 {
		return 1024 * n
	}
	return maxRSS()
}

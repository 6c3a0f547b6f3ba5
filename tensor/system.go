package tensor

import (
	"bufio"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// MemoryTotal is how many bytes of memory this process may use at most: the
// machine's, or less where a control group (a container, a batch job) says so.
// It is 0 where nothing tells.
func MemoryTotal() int64 { return system.total() }

// MemoryFree is how many it may still use now. Pages that only keep files do not
// count as used: the kernel gives them up when asked.
func MemoryFree() int64 { return system.free() }

// system is where Linux tells; other systems have neither file.
var system = limits{proc: "/proc", groups: "/sys/fs/cgroup"}

type limits struct{ proc, groups string }

func (l limits) total() int64 {
	n := 1024 * keyed(path.Join(l.proc, "meminfo"), "MemTotal:")
	for _, dir := range l.own() {
		n = least(n, limitOf(dir))
	}
	return n
}

func (l limits) free() int64 {
	n := 1024 * keyed(path.Join(l.proc, "meminfo"), "MemAvailable:")
	for _, dir := range l.own() {
		if limit := limitOf(dir); limit > 0 {
			n = least(n, max(limit-usedIn(dir), 1))
		}
	}
	return n
}

// own lists the folders of the control groups that limit this process: its own and
// all above it, since the tightest counts, in the layout of either version. A
// container may see the host's name of its group but only its own folder, which is
// then the topmost.
func (l limits) own() (dirs []string) {
	text, _ := os.ReadFile(path.Join(l.proc, "self/cgroup"))
	for line := range strings.Lines(string(text)) {
		_, rest, _ := strings.Cut(strings.TrimSpace(line), ":")
		controllers, group, _ := strings.Cut(rest, ":")
		var tops []string
		switch {
		case rest == "":
		case controllers == "":
			tops = []string{l.groups, path.Join(l.groups, "unified")}
		case strings.Contains(","+controllers+",", ",memory,"):
			tops = []string{path.Join(l.groups, "memory")}
		}
		for _, top := range tops {
			for g := path.Join("/", group); ; g = path.Dir(g) {
				dirs = append(dirs, path.Join(top, g))
				if g == "/" {
					break
				}
			}
		}
	}
	return dirs
}

// limitOf is a group's limit, 0 where it has none (version 1 then shows a number
// near the largest).
func limitOf(dir string) int64 {
	n := least(number(path.Join(dir, "memory.max")), number(path.Join(dir, "memory.limit_in_bytes")))
	if n > math.MaxInt64/2 {
		return 0
	}
	return n
}

// usedIn is what a group and those in it use, files' pages left out.
func usedIn(dir string) int64 {
	stat := path.Join(dir, "memory.stat")
	if used := number(path.Join(dir, "memory.usage_in_bytes")); used > 0 {
		return used - keyed(stat, "total_inactive_file") - keyed(stat, "total_active_file")
	}
	return number(path.Join(dir, "memory.current")) - keyed(stat, "inactive_file") - keyed(stat, "active_file")
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

// number is the one a file holds; "max" and absence read as 0.
func number(file string) int64 {
	text, _ := os.ReadFile(file)
	n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	return n
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

// RSS is the memory this process has resident now, mapped files included; where
// there is no /proc, the most it has had.
func RSS() int64 { return resident("VmRSS:") }

// PeakRSS is the most it has had.
func PeakRSS() int64 { return resident("VmHWM:") }

func resident(key string) int64 {
	if n := keyed(path.Join(system.proc, "self/status"), key); n > 0 {
		return 1024 * n
	}
	return maxRSS()
}

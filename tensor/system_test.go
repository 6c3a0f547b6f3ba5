package tensor

import (
	"os"
	"path/filepath"
	"testing"
)

// TestMemoryLimits lays out control groups of both versions as Linux shows them.
func TestMemoryLimits(t *testing.T) {
	const gib = 1 << 30
	meminfo := "MemTotal:       8388608 kB\nMemFree: 1 kB\nMemAvailable:    4194304 kB\n" // 8 GiB, 4 free
	tests := []struct {
		name        string
		files       map[string]string
		total, free int64
	}{
		{"no groups", nil, 8 * gib, 4 * gib},
		{"version 2", map[string]string{
			"proc/self/cgroup":               "0::/jobs/one\n",
			"groups/jobs/one/memory.max":     "2147483648\n",
			"groups/jobs/one/memory.current": "1610612736\n",
			"groups/jobs/one/memory.stat":    "anon 1073741824\ninactive_file 268435456\nactive_file 268435456\n",
		}, 2 * gib, 1 * gib},
		{"the group above is tighter", map[string]string{
			"proc/self/cgroup":               "0::/jobs/one\n",
			"groups/jobs/one/memory.max":     "max\n",
			"groups/jobs/one/memory.current": "1073741824\n",
			"groups/jobs/memory.max":         "3221225472\n",
			"groups/jobs/memory.current":     "1073741824\n",
		}, 3 * gib, 2 * gib},
		{"version 1", map[string]string{
			"proc/self/cgroup":                        "5:devices:/\n4:cpu,memory:/job\n0::/\n",
			"groups/memory/job/memory.limit_in_bytes": "1073741824\n",
			"groups/memory/job/memory.usage_in_bytes": "805306368\n",
			"groups/memory/job/memory.stat": "cache 1\ninactive_file 7\ntotal_inactive_file " +
				"134217728\ntotal_active_file 134217728\n",
			"groups/memory/memory.limit_in_bytes": "9223372036854771712\n",
			"groups/unified/memory.max":           "max\n",
		}, 1 * gib, gib / 2},
		{"a container that sees its own group at the top", map[string]string{
			"proc/self/cgroup":      "0::/host/name/of/it\n",
			"groups/memory.max":     "1073741824\n",
			"groups/memory.current": "1073741824\n",
		}, 1 * gib, 1},
	}
	for _, c := range tests {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, filepath.Join(dir, "proc/meminfo"), meminfo)
			for name, text := range c.files {
				write(t, filepath.Join(dir, name), text)
			}
			l := limits{proc: filepath.Join(dir, "proc"), groups: filepath.Join(dir, "groups")}
			if got := l.total(); got != c.total {
				t.Errorf("total %d, want %d", got, c.total)
			}
			if got := l.free(); got != c.free {
				t.Errorf("free %d, want %d", got, c.free)
			}
		})
	}
	none := limits{proc: filepath.Join(t.TempDir(), "absent")}
	if none.total() != 0 || none.free() != 0 {
		t.Error("memory known where nothing tells it")
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

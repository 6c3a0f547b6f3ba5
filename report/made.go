package report

import (
	"cmp"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"starling/event"
	"starling/spec"
)

// Made says how a result was made, so that it can be made again.
type Made struct {
	Version string  `json:"version"`
	Commit  string  `json:"commit"`
	Date    string  `json:"date"` // RFC 3339, in UTC
	Machine Machine `json:"machine"`
}

// Machine is the host of a run's first worker.
type Machine struct {
	Host        string `json:"host"`
	System      string `json:"system"` // linux/amd64
	Processor   string `json:"processor,omitempty"`
	Cores       int    `json:"cores"`
	MemoryBytes int64  `json:"memory_bytes"`
}

// NewMade is for a result made here and now, on a machine with these bytes of memory.
func NewMade(version, commit string, memory int64) *Made {
	host, _ := os.Hostname()
	return &Made{version, commit, time.Now().UTC().Format(time.RFC3339),
		Machine{host, runtime.GOOS + "/" + runtime.GOARCH,
			Processor(), runtime.NumCPU(), memory}}
}

// Processor is the name of this machine's, where the system tells.
func Processor() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// String is one line.
func (m *Made) String() string {
	if m == nil {
		return ""
	}
	x := m.Machine
	return fmt.Sprintf("Starling %s (commit %s), %s, on %s: %s, %s, %s of memory", m.Version,
		cmp.Or(m.Commit, "unknown"),
		m.Date, x.Host, cmp.Or(x.Processor, x.System), event.Counted(x.Cores, "core"), event.Bytes(x.MemoryBytes))
}

// Setting is one of a run, as in starling.yaml.
type Setting struct{ Name, Value string }

// settingsOf are all settings of a run, for a page.
func settingsOf(s *spec.Spec) (out []Setting) {
	if s == nil {
		return nil
	}
	for line := range strings.Lines(s.String()) {
		if name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": "); ok {
			out = append(out, Setting{name, strings.Trim(value, `"`)})
		}
	}
	return out
}

// sharedSettings are the settings that all rows of a comparison have in common; those that differ have all values.
func (c *Comparison) sharedSettings() []Setting {
	var out []Setting
	for _, row := range c.Rows {
		for i, s := range settingsOf(row.Spec) {
			switch {
			case i == len(out):
				out = append(out, s)
			case !slices.Contains(strings.Split(out[i].Value, ", "), s.Value):
				out[i].Value += ", " + s.Value
			}
		}
	}
	return out
}

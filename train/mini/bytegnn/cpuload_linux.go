package bytegnn

import (
	"bytes"
	"os"
	"strconv"
)

// cpuTimes are how much time all processors of this host have been busy and in all, in ticks.
func cpuTimes() (busy, all float64, ok bool) {
	b, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0, false
	}
	line, _, _ := bytes.Cut(b, []byte("\n"))
	for i, field := range bytes.Fields(line) {
		v, err := strconv.ParseFloat(string(field), 64)
		if i == 0 || err != nil || i > 8 { // guests are counted as users already
			continue
		}
		all += v
		if i != 4 && i != 5 { // idle, waiting for a disk
			busy += v
		}
	}
	return busy, all, all > 0
}

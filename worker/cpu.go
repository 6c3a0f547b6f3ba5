package worker

import (
	"time"

	"starling/report"
	"starling/tensor"
)

// cpuUse is the processor time of a worker's training, and how much there was.
type cpuUse struct {
	Seconds float64 `json:"seconds"` // user and system
	Wall    float64 `json:"wall"`
	Cores   float64 `json:"cores"` // of its host, divided by the workers there
}

// measureCPU begins to measure; end returns what was used until then by this process, of which
// its host has so many.
func measureCPU(here int) (end func() cpuUse) {
	start, before := time.Now(), tensor.CPUSeconds()
	return func() cpuUse {
		return cpuUse{Seconds: tensor.CPUSeconds() - before, Wall: time.Since(start).Seconds(),
			Cores: float64(processors) / float64(max(here, 1))}
	}
}

// CPUShare is the share of all processors' time that workers used.
func CPUShare(shares []*Share) report.Number {
	var used, cores, wall float64
	for _, s := range shares {
		used, cores, wall = used+s.CPU.Seconds, cores+s.CPU.Cores, max(wall, s.CPU.Wall)
	}
	if wall == 0 {
		return 0
	}
	return report.Number(used / (wall * cores))
}

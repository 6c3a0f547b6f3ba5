package worker

import (
	"time"

	"starling/tensor"
)

// cpuUse is the processor time of a worker's training, and how much there was.
type cpuUse struct {
	Seconds float64 `json:"seconds"` // user and system
	Wall    float64 `json:"wall"`
	Cores   float64 `json:"cores"` // of its host, divided by the workers there
}

// measureCPU begins to measure; end returns what this process has used until then. Its host has here processes of
// the run.
func measureCPU(here int) (end func() cpuUse) {
	start, before := time.Now(), tensor.CPUSeconds()
	return func() cpuUse {
		return cpuUse{Seconds: tensor.CPUSeconds() - before, Wall: time.Since(start).Seconds(),
			Cores: float64(processors) / float64(max(here, 1))}
	}
}

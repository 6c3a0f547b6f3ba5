package plan

import (
	"fmt"

	"starling/cost"
)

// requests is what a worker asks of a scheduler of hosts, as a line of deploy/kubernetes.yaml: the cores that it was
// planned with, and a fifth more memory than predicted.
func requests(cores int, p *cost.Prediction) string {
	const mib = 1 << 20
	return fmt.Sprintf("requests: {cpu: \"%d\", memory: %dMi}", max(cores, 1), (p.Memory+p.Memory/5+mib-1)/mib)
}

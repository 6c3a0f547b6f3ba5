package run

import (
	"fmt"
	"net"
	"os"
	"os/exec"

	"starling/cluster"
	"starling/graph"
	"starling/spec"
)

// countSlots takes the number of workers from the file of --hosts, if nothing else says it.
func countSlots(s *spec.Spec) error {
	if err := s.CompleteParts(); err != nil || s.Launch.Hosts == "" || s.Cluster.Workers > 0 ||
		s.PartitionFolder() != "" {
		return err
	}
	hosts, err := spec.ReadHosts(s.Launch.Hosts, cluster.ReadHosts)
	s.Cluster.Workers = len(cluster.Slots(hosts))
	return err
}

// hostSlots is the host of every worker, from the file of --hosts. Without --listen, the
// rendezvous is at the address of this host on the route to them.
func hostSlots(s *spec.Spec) ([]cluster.Host, error) {
	hosts, err := spec.ReadHosts(s.Launch.Hosts, cluster.ReadHosts)
	if err != nil {
		return nil, err
	}
	slots := cluster.Slots(hosts)
	if s.Cluster.Workers > len(slots) {
		return nil, spec.Mistake("--hosts", fmt.Sprintf("%s with %d slots", s.Launch.Hosts, len(slots)),
			fmt.Sprintf("%d, one per worker", s.Cluster.Workers), "add hosts, or slots=N after their names")
	}
	if s.Launch.Listen == "" {
		near, err := cluster.NearHosts(hosts)
		if err != nil {
			return nil, spec.Mistake("--hosts", graph.Sentence(err.Error()), "names that this host can look up",
				"or give the address at which workers reach this host as --listen")
		}
		s.Launch.Listen = net.JoinHostPort(near.String(), "0")
	}
	return slots[:s.Cluster.Workers], nil
}

// overSSH is the command that runs a worker on its host.
func (c *clusterRun) overSSH(w *WorkerSpec) (*exec.Cmd, error) {
	h := c.slots[w.Rank]
	w.PartDir = h.Dir
	binary := h.Binary
	if binary == "" {
		var err error
		if binary, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	args := append([]string{binary}, w.args()...)
	return cluster.SSH(c.spec.Launch.SSHCommand, h, append(args, "--token-file", "-"), w.Token)
}

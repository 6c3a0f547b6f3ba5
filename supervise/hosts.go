package supervise

import (
	"fmt"
	"net"
	"os"
	"os/exec"

	"starling/cluster"
	"starling/event"
	"starling/graph"
	"starling/spec"
	"starling/worker"
)

// hostSlots is the host of every worker, from the file of --hosts. Without --listen, the
// rendezvous is at the address of this host on the route to them.
func hostSlots(s *spec.Spec) ([]cluster.Host, error) {
	hosts, err := spec.ReadHosts(s.Launch.Hosts, cluster.ReadHosts)
	if err != nil {
		return nil, err
	}
	slots := cluster.Slots(hosts)
	if s.Cluster.Workers > len(slots) {
		return nil, spec.Mistake("--hosts", fmt.Sprintf("%s with %s", s.Launch.Hosts, event.Counted(len(slots), "slot")),
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
func (c *Run) overSSH(w *worker.Spec) (*exec.Cmd, error) {
	h := c.slots[w.Rank]
	w.PartDir = h.Dir
	binary := h.Binary
	if binary == "" {
		var err error
		if binary, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	args := append([]string{binary}, w.Args()...)
	return cluster.SSH(c.Spec.Launch.SSHCommand, h, append(args, "--token-file", "-"), w.Token)
}

package run

import (
	"fmt"
	"net"
	"os"
	"os/exec"

	"starling/cluster"
)

// readHosts is the host of every worker, of a hosts file. Where nothing else was said,
// workers meet at the address that the way to them starts from.
func (s *Spec) readHosts() ([]cluster.Host, error) {
	hosts, err := openHosts(s.Hosts)
	if err != nil {
		return nil, err
	}
	slots := cluster.Slots(hosts)
	if s.Workers > len(slots) {
		return nil, mistake("--hosts", fmt.Sprintf("%s with %d slots", s.Hosts, len(slots)), fmt.Sprintf("%d, one a worker", s.Workers), "add hosts, or slots=N after their names")
	}
	if s.Listen == "" {
		near, err := cluster.NearHosts(hosts)
		if err != nil {
			return nil, mistake("--hosts", err.Error(), "names that this host can look up", "or say with --listen where workers reach this one")
		}
		s.Listen = net.JoinHostPort(near.String(), "0")
	}
	return slots[:s.Workers], nil
}

func openHosts(path string) ([]cluster.Host, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, mistake("--hosts", unread(err), "a file with a host a line", "for example alpha slots=4")
	}
	defer f.Close()
	hosts, err := cluster.ReadHosts(f)
	if err != nil {
		return nil, mistake("--hosts", path+": "+err.Error(), "", "")
	}
	return hosts, nil
}

// overSSH is the command that runs a worker on its host.
func (r *recovery) overSSH(w *WorkerSpec) (*exec.Cmd, error) {
	h := r.slots[w.Rank]
	w.PartDir = h.Dir
	binary := h.Binary
	if binary == "" {
		var err error
		if binary, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	args := append([]string{binary}, w.args()...)
	return cluster.SSH(r.spec.SSHCommand, h, append(args, "--token-file", "-"), w.Token)
}

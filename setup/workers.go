package setup

import (
	"time"

	"starling/cluster"
	"starling/exchange"
	"starling/graph"
	"starling/partition"
	"starling/spec"
	"starling/train"
)

// ServersOf is the server of each rank; nil: every host is a server.
func ServersOf(s *spec.Spec) (of []int) {
	if s.Cluster.Servers == 0 {
		return nil
	}
	for r := range s.Cluster.Workers {
		of = append(of, ServerOf(s, r))
	}
	return of
}

// ServerOf is the server of a rank, if workers are grouped.
func ServerOf(s *spec.Spec, rank int) int {
	return rank / (s.Cluster.Workers / max(s.Cluster.Servers, 1))
}

// RemoteWorkers reports whether workers may be on other hosts.
func RemoteWorkers(s *spec.Spec) bool { return s.Launch.NoLaunch || s.Launch.Hosts != "" }

// Timeout bounds every wait of a worker for another.
func Timeout(s *spec.Spec) time.Duration { return time.Duration(s.Cluster.Timeout) * time.Second }

// Heartbeat is how long a worker may be silent.
func Heartbeat(s *spec.Spec) time.Duration { return time.Duration(s.Cluster.Heartbeat) * time.Second }

// Regroup makes strategies group workers by --servers, whatever the partition was made for.
func Regroup(s *spec.Spec, part *partition.Part) {
	if s.Cluster.Servers > 0 {
		part.Book.Servers = s.Cluster.Servers
	}
}

// Relays reports whether rows are relayed inside servers.
func Relays(s *spec.Spec) bool {
	c, _ := s.Choice()
	o, _ := train.OptionOf[exchange.RelayOption](c)
	return o.Relay
}

// CountSlots takes the number of workers from the file of --hosts, if nothing else says it.
func CountSlots(s *spec.Spec) error {
	if err := s.CompleteParts(); err != nil || s.Launch.Hosts == "" || s.Cluster.Workers > 0 ||
		s.PartitionFolder() != "" {
		return err
	}
	hosts, err := spec.ReadHosts(s.Launch.Hosts, cluster.ReadHosts)
	s.Cluster.Workers = len(cluster.Slots(hosts))
	return err
}

// Complete completes a spec as its files say.
func Complete(s *spec.Spec) error {
	if err := CountSlots(s); err != nil {
		return err
	}
	return s.Complete()
}

// LocalSecret is the secret of this user on this host.
func LocalSecret() ([]byte, error) {
	b, err := cluster.LocalSecret()
	if err != nil {
		return nil, spec.Mistake("--token-file", graph.Sentence("none is given, and "+err.Error()), "a file with a secret",
			"or let every user of this host join with --insecure")
	}
	return b, nil
}

package run

import (
	"time"

	"starling/exchange"
	"starling/partition"
	"starling/spec"
	"starling/train"
)

// serversOf is the server of each rank; nil: every host is a server.
func serversOf(s *spec.Spec) (of []int) {
	if s.Servers == 0 {
		return nil
	}
	for r := range s.Workers {
		of = append(of, serverOf(s, r))
	}
	return of
}

// serverOf is the server of a rank, if workers are grouped.
func serverOf(s *spec.Spec, rank int) int { return rank / (s.Workers / max(s.Servers, 1)) }

// remoteWorkers reports whether workers may be on other hosts.
func remoteWorkers(s *spec.Spec) bool { return s.NoLaunch || s.Hosts != "" }

// timeoutOf bounds every wait of a worker for another.
func timeoutOf(s *spec.Spec) time.Duration { return time.Duration(s.Timeout) * time.Second }

// heartbeatOf is how long a worker may be silent.
func heartbeatOf(s *spec.Spec) time.Duration { return time.Duration(s.Heartbeat) * time.Second }

// regroup makes strategies group workers by --servers, whatever the partition was made for.
func regroup(s *spec.Spec, part *partition.Part) {
	if s.Servers > 0 {
		part.Book.Servers = s.Servers
	}
}

// relays reports whether rows are relayed inside servers.
func relays(s *spec.Spec) bool {
	c, _ := s.Choice()
	o, _ := train.OptionOf[exchange.RelayOption](c)
	return o.Relay
}

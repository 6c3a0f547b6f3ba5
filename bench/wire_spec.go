package bench

import (
	"fmt"
	"slices"
	"strings"

	"starling/spec"
)

// WireSpec is everything a user can say to starling bench wire.
type WireSpec struct {
	Workers    int      `json:"workers"`
	Transports []string `json:"transports"` // tcp, shm, mpi, or auto: what the workers have in common
	Ops        []string `json:"ops"`        // of WireOps
	Sizes      []int    `json:"sizes"`      // bytes per rank
	Seconds    float64  `json:"seconds"`    // per row
	Turns      int      `json:"turns"`      // into which the seconds are divided
	Timeout    int      `json:"timeout"`    // seconds of any wait

	Listen    string `json:"-"` // address of the rendezvous
	NoLaunch  bool   `json:"-"` // the workers are started elsewhere
	TokenFile string `json:"-"`
	Insecure  bool   `json:"-"`
	Version   string `json:"-"` // of this program, which all workers must have
}

// DefaultWire measures this host in about half a minute.
func DefaultWire() WireSpec {
	return WireSpec{Workers: 2, Transports: []string{"tcp", "shm"}, Ops: wireOpsNamed(wireOps), Seconds: 0.3,
		Turns: 3, Timeout: 60,
		Sizes: []int{4 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20}}
}

const (
	mostWireBytes   = 1 << 30
	mostWireWorkers = 256
	mostWireTurns   = 1000
)

var wireTransports = []string{"tcp", "shm", "mpi", "auto"}

func (s *WireSpec) check() error {
	switch {
	case s.Workers < 2 || s.Workers > mostWireWorkers:
		return spec.Mistake("--workers", fmt.Sprint(s.Workers), fmt.Sprintf("2 to %d", mostWireWorkers), "")
	case !(s.Seconds > 0 && s.Seconds <= 3600):
		return spec.Mistake("--seconds", fmt.Sprint(s.Seconds), "more than 0, up to 3600", "")
	case s.Turns < 1 || s.Turns > mostWireTurns:
		return spec.Mistake("--turns", fmt.Sprint(s.Turns), fmt.Sprintf("1 to %d", mostWireTurns), "")
	case s.Timeout < 1:
		return spec.Mistake("--timeout", fmt.Sprint(s.Timeout), "at least 1", "")
	case s.NoLaunch && len(s.Transports) != 1:
		return spec.Mistake("--transports", strings.Join(s.Transports, ","), "one, with --no-launch",
			"workers that are started elsewhere can join one job only")
	}
	for _, op := range s.Ops {
		if !slices.Contains(WireOps(), op) {
			return spec.NotOneOf("--ops", op, WireOps())
		}
	}
	for _, t := range s.Transports {
		if !slices.Contains(wireTransports, t) {
			return spec.NotOneOf("--transports", t, wireTransports)
		}
	}
	for _, size := range s.Sizes {
		if size < 4*s.Workers || size > mostWireBytes || size%4 != 0 {
			return spec.Mistake("--sizes", fmt.Sprint(size),
				fmt.Sprintf("%d to %d bytes, a multiple of 4", 4*s.Workers, mostWireBytes), "")
		}
	}
	return nil
}

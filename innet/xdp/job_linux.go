//go:build amd64 || arm64 || riscv64 || loong64

package xdp

import (
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"

	"starling/innet"
)

// Limits of what is in the kernel.
const (
	maxJobs   = 16      // as the map jobs has
	maxHosts  = 256     // of a job
	maxPasses = 1 << 16 // of a packet, which keeps a CPU for some milliseconds
	// markBeyond is how many bytes wait for the process when packets that leave are marked:
	// half of the ring.
	markBeyond = 8 << 20
)

// What maps hold, as in switch.c.
type (
	address struct {
		IP   [4]byte
		Port uint16
		_    uint16
	}
	member struct{ Job, Host uint32 }
	counts struct{ Packets, Bytes, Sent, Dropped, Recirculated, Passed, Impossible int64 }
	block  struct{ Row, Rows, Slot, Slots uint32 }
	row    struct{ At, Count, Port, _ uint32 }
	slot   struct {
		Next                uint32
		Need, Port, Host, _ uint16
	}
	host struct {
		Device     uint32
		IP, OwnIP  [4]byte
		Port       uint16
		MAC, Own   [6]byte
		_          uint16
		Received   uint32
		Credited   uint32
		Unheard    uint32
		UnheardFor uint32
		Round      uint32
		Heard      uint32
	}
)

func keyOf(a netip.AddrPort) address {
	return address{IP: a.Addr().As4(), Port: networkOrder(a.Port())}
}

// job is the programs and maps of one job.
type job struct {
	*ebpf.Collection
	id   uint64
	slot int // among jobs
}

// fits refuses what these programs cannot do.
func fits(t *innet.Table) error {
	switch {
	case t.Above != innet.NoPort:
		return fmt.Errorf("a switch with another above it")
	case len(t.Below) > maxHosts || len(t.Below) != len(t.Route):
		return fmt.Errorf("%d hosts, in the kernel there may be %d", len(t.Route), maxHosts)
	}
	for i, port := range t.Below {
		if int(port) != i || int(t.Route[i]) != i {
			return fmt.Errorf("ports that are not the hosts")
		}
	}
	for i := range t.Blocks {
		b := &t.Blocks[i]
		if b.Index != nil {
			return fmt.Errorf("slots differ from the plan's")
		}
		for r := range b.Port {
			if passes := int(b.Ptr[r+1]-b.Ptr[r]) * t.Units; passes > maxPasses {
				return fmt.Errorf("row %d of block %d takes %d passes, in the kernel there may be %d", r, i, passes, maxPasses)
			}
		}
	}
	return nil
}

// newJob loads the programs with a table. REQUIRES: it fits.
func (p *Plane) newJob(t *innet.Table, number, window int) (*job, error) {
	blocks, rows, slots, into := flatten(t)
	spec := p.spec.Copy()
	delete(spec.Programs, "dispatch")
	mostRows, mostSlots := 1, 1
	for _, b := range blocks {
		mostRows, mostSlots = max(mostRows, int(b.Rows)), max(mostSlots, int(b.Slots))
	}
	for name, n := range map[string]int{"blocks": len(blocks), "rows": len(rows), "slots": len(slots), "into": len(into),
		"added": mostRows, "aggregators": mostSlots * t.Units, "hosts": len(t.Below)} {
		spec.Maps[name].MaxEntries = uint32(max(n, 1))
	}
	err := set(spec, map[string]any{"JOB": t.Job, "SLOT": uint32(number), "PORT": networkOrder(p.port),
		"UNITS": uint32(t.Units), "HOSTS": uint32(len(t.Below)), "BLOCKS": uint32(len(t.Blocks)),
		"CREDIT": uint32(max(window/4, 1)), "BACKLOG": uint32(markBeyond)})
	if err != nil {
		return nil, err
	}
	replace := map[string]*ebpf.Map{}
	for name := range shared {
		replace[name] = p.common.Maps[name]
	}
	c, err := ebpf.NewCollectionWithOptions(spec, ebpf.CollectionOptions{MapReplacements: replace})
	if err != nil {
		return nil, fmt.Errorf("the kernel refuses the program of a job: %w", err)
	}
	j := &job{Collection: c, id: t.Job, slot: number}
	for _, err := range []error{fill(c.Maps["blocks"], blocks), fill(c.Maps["rows"], rows), fill(c.Maps["slots"], slots),
		fill(c.Maps["into"], into)} {
		if err != nil {
			j.Close()
			return nil, fmt.Errorf("writing the table: %w", err)
		}
	}
	return j, nil
}

// flatten puts the blocks of a table in a row.
func flatten(t *innet.Table) (blocks []block, rows []row, slots []slot, into []uint32) {
	for i := range t.Blocks {
		b := &t.Blocks[i]
		blocks = append(blocks, block{uint32(len(rows)), uint32(len(b.Port)), uint32(len(slots)), uint32(len(b.Slots))})
		for r, port := range b.Port {
			rows = append(rows, row{At: uint32(len(into)) + b.Ptr[r], Count: b.Ptr[r+1] - b.Ptr[r], Port: uint32(port)})
		}
		for _, s := range b.Slots {
			slots = append(slots, slot{Next: s.Next, Need: s.Need, Port: s.Port, Host: s.Host})
		}
		into = append(into, b.Into...)
	}
	return blocks, rows, slots, into
}

// fill writes an array.
func fill[V any](m *ebpf.Map, values []V) error {
	const most = 1 << 16
	keys := make([]uint32, min(most, len(values)))
	for at := 0; at < len(values); at += most {
		n := min(most, len(values)-at)
		for i := range n {
			keys[i] = uint32(at + i)
		}
		if _, err := m.BatchUpdate(keys[:n], values[at:at+n], nil); err != nil {
			return err
		}
	}
	return nil
}

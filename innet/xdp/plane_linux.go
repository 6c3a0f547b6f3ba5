//go:build amd64 || arm64 || riscv64 || loong64

package xdp

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/cilium/ebpf/rlimit"

	"starling/innet"
	"starling/innet/udp"
)

//go:embed switch.bpf.o
var object []byte

// Plane is the programs on some devices.
type Plane struct {
	port   uint16
	spec   *ebpf.CollectionSpec
	common *ebpf.Collection // what all jobs share
	links  []link.Link
	ring   *ringbuf.Reader
	wg     sync.WaitGroup

	mu struct {
		sync.Mutex
		jobs [maxJobs]*job
	}
}

// Open puts the programs on devices, for a switch that listens on a port. What they cannot
// send they give to send.
func Open(devices []string, port uint16, send udp.Send) (*Plane, error) {
	p, err := load(port)
	if err != nil {
		return nil, err
	}
	for _, name := range devices {
		if err := p.attach(name); err != nil {
			p.Close()
			return nil, err
		}
	}
	p.wg.Go(func() { p.read(send) })
	return p, nil
}

// load loads what all jobs share.
func load(port uint16) (*Plane, error) {
	if err := features.HaveProgramHelper(ebpf.XDP, asm.FnLoop); err != nil {
		return nil, fmt.Errorf("programs that loop need Linux 5.17, and rights to load them: %w", err)
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("the kernel does not allow locked memory, which programs need: %w", err)
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("the embedded programs: %w", err)
	}
	p := &Plane{port: port, spec: spec}
	own := spec.Copy()
	for name := range own.Programs {
		if name != "dispatch" {
			delete(own.Programs, name)
		}
	}
	for name := range own.Maps {
		if !shared[name] && name != ".rodata" {
			delete(own.Maps, name)
		}
	}
	if err := set(own, map[string]any{"PORT": networkOrder(port)}); err != nil {
		return nil, err
	}
	if p.common, err = ebpf.NewCollection(own); err != nil {
		return nil, fmt.Errorf("the kernel refuses the program: %w", err)
	}
	if p.ring, err = ringbuf.NewReader(p.common.Maps["ring"]); err != nil {
		p.common.Close()
		return nil, err
	}
	return p, nil
}

// shared are the maps that all jobs use.
var shared = map[string]bool{"members": true, "jobs": true, "stats": true, "ring": true, "records": true}

// networkOrder returns a number whose bytes are in memory as in packets.
func networkOrder(port uint16) uint16 {
	return binary.NativeEndian.Uint16(binary.BigEndian.AppendUint16(nil, port))
}

// set gives constants their values.
func set(spec *ebpf.CollectionSpec, values map[string]any) error {
	for name, value := range values {
		v := spec.Variables[name]
		if v == nil {
			return fmt.Errorf("the embedded programs have no constant %s", name)
		}
		if err := v.Set(value); err != nil {
			return err
		}
	}
	return nil
}

func (p *Plane) attach(name string) error {
	dev, err := net.InterfaceByName(name)
	if err != nil {
		return fmt.Errorf("device %s: %w", name, err)
	}
	if err := takesFrames(dev); err != nil {
		return err
	}
	l, err := link.AttachXDP(link.XDPOptions{Program: p.common.Programs["dispatch"], Interface: dev.Index,
		Flags: link.XDPDriverMode})
	if err != nil {
		return fmt.Errorf("the driver of device %s takes no XDP program: %w", name, err)
	}
	p.links = append(p.links, l)
	return nil
}

// Close takes the programs away.
func (p *Plane) Close() error {
	var errs []error
	for _, l := range p.links {
		errs = append(errs, l.Close())
	}
	errs = append(errs, p.ring.Close())
	p.wg.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, j := range p.mu.jobs {
		if j != nil {
			j.Close()
			p.mu.jobs[i] = nil
		}
	}
	p.common.Close()
	return errors.Join(errs...)
}

// find is a job by its number.
// REQUIRES: mu held.
func (p *Plane) find(id uint64) *job {
	for _, j := range p.mu.jobs {
		if j != nil && j.id == id {
			return j
		}
	}
	return nil
}

// Install takes a job, with empty registers; hosts have a window of this number of packets.
func (p *Plane) Install(t *innet.Table, window int) error {
	if err := fits(t); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for slot, j := range p.mu.jobs {
		if j != nil {
			continue
		}
		j, err := p.newJob(t, slot, window)
		if err != nil {
			return err
		}
		if err := p.common.Maps["jobs"].Put(uint32(slot), j.Programs["add_rows"]); err != nil {
			j.Close()
			return err
		}
		p.mu.jobs[slot] = j
		return nil
	}
	return fmt.Errorf("%d jobs are in the kernel, which is the most it may have", maxJobs)
}

// Join lets packets from an address be a host's.
func (p *Plane) Join(id uint64, rank int, addr netip.AddrPort) error {
	if !addr.Addr().Is4() {
		return fmt.Errorf("host %d has address %v; in the kernel there is IPv4 only", rank, addr)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.find(id)
	if j == nil {
		return fmt.Errorf("job %x is not in the kernel", id)
	}
	if err := j.Maps["hosts"].Put(uint32(rank), host{}); err != nil { // it counts from 0 again
		return err
	}
	return p.common.Maps["members"].Put(keyOf(addr), member{Job: uint32(j.slot), Host: uint32(rank)})
}

// Leave ends a Join.
func (p *Plane) Leave(addr netip.AddrPort) {
	if addr.Addr().Is4() {
		p.common.Maps["members"].Delete(keyOf(addr)) // it may not have joined
	}
}

// Remove ends a job, and is how many packets of each host have come.
func (p *Plane) Remove(id uint64) (received []uint32) {
	p.mu.Lock()
	defer p.mu.Unlock()
	j := p.find(id)
	if j == nil {
		return nil
	}
	p.common.Maps["jobs"].Delete(uint32(j.slot))
	p.mu.jobs[j.slot] = nil
	var h host
	for k := uint32(0); j.Maps["hosts"].Lookup(k, &h) == nil; k++ {
		received = append(received, h.Received)
	}
	j.Close()
	return received
}

// Stats is what all jobs have done.
func (p *Plane) Stats() (s udp.Stats) {
	var each []counts
	if p.common.Maps["stats"].Lookup(uint32(0), &each) != nil {
		return s
	}
	for _, c := range each {
		s.Packets += c.Packets
		s.Bytes += c.Bytes
		s.Sent += c.Sent
		s.Dropped += c.Dropped
		s.Recirculated += c.Recirculated
		s.Passed += c.Passed
		s.Impossible += c.Impossible
	}
	return s
}

// read forwards what the programs have written, until the ring is closed.
func (p *Plane) read(send udp.Send) {
	var r ringbuf.Record
	for p.ring.ReadInto(&r) == nil {
		if slot, port, payload, ok := parseRecord(r.RawSample); ok {
			send(p.jobAt(slot), port, payload, p.ring.AvailableBytes() > 0)
		}
	}
}

// parseRecord is the job's slot, the port and the packet of a record.
func parseRecord(b []byte) (slot uint32, port int, payload []byte, ok bool) {
	if len(b) < 8+innet.HeaderBytes {
		return 0, 0, nil, false
	}
	return binary.NativeEndian.Uint32(b), int(binary.NativeEndian.Uint32(b[4:])), b[8:], true
}

// jobAt is the number of a job; 0: it has ended.
func (p *Plane) jobAt(slot uint32) uint64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if slot < maxJobs && p.mu.jobs[slot] != nil {
		return p.mu.jobs[slot].id
	}
	return 0
}

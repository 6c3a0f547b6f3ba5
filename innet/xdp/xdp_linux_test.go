//go:build amd64 || arm64 || riscv64 || loong64

package xdp

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cilium/ebpf"

	"starling/innet"
	"starling/internal/testseed"
)

// TestObject: the committed object is what the source gives, with the compiler that made it.
func TestObject(t *testing.T) {
	version, err := exec.Command("clang", "--version").Output()
	if err != nil {
		t.Skip("clang is not installed: the object was not compared with its source (Debian: clang, llvm)")
	}
	if first, _, _ := strings.Cut(string(version), "\n"); !strings.Contains(first, "clang version 14.0.6") {
		t.Skipf("the object was made by clang 14.0.6; this is %s, which gives another", first)
	}
	out := filepath.Join(t.TempDir(), "switch.bpf.o")
	if text, err := exec.Command("sh", "bpf/generate", "-o", out).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	made, err := os.ReadFile(out)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(made, object) {
		t.Error("switch.bpf.o is not what bpf/switch.c gives: make generate")
	}
}

// loaded is the shared part of the programs, on no device.
func loaded(t testing.TB) *Plane {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("loading programs into the kernel needs root")
	}
	p, err := load(testPort)
	if errors.Is(err, os.ErrPermission) || errors.Is(err, ebpf.ErrNotSupported) || errors.Is(err, errors.ErrUnsupported) {
		t.Skipf("this kernel, or this container, takes no programs: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

const testPort = 9900

// pair is the switch of package innet and that of the kernel, side by side.
type pair struct {
	table *innet.Table
	pure  *innet.Switch
	plane *Plane
	job   *job
	ended bool // pure has ended a round itself
}

func newPair(t testing.TB, table *innet.Table, window int) *pair {
	t.Helper()
	if err := table.Check(math.MaxInt64); err != nil {
		t.Fatal(err)
	}
	x := &pair{table: table, pure: innet.NewSwitch(table), plane: loaded(t)}
	if err := x.plane.Install(table, window); err != nil {
		t.Fatal(err)
	}
	x.job = x.plane.find(table.Job)
	for k := range table.Route {
		if err := x.plane.Join(table.Job, k, hostAddr(k)); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

func hostAddr(k int) netip.AddrPort {
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte{10, 0, byte(k >> 8), byte(k + 1)}), uint16(4000+k))
}

// frameOf is a packet of a host as it arrives.
func frameOf(k int, payload []byte) []byte {
	from, be := hostAddr(k), binary.BigEndian
	b := make([]byte, 42, 42+len(payload))
	copy(b, []byte{2, 0, 0, 0, 0, 99, 2, 0, 0, 0, 0, byte(k), 8, 0, 0x45})
	be.PutUint16(b[16:], uint16(28+len(payload)))
	b[22], b[23] = 64, 17
	copy(b[26:], from.Addr().AsSlice())
	copy(b[30:], []byte{10, 0, 9, 9})
	be.PutUint16(b[34:], from.Port())
	be.PutUint16(b[36:], testPort)
	be.PutUint16(b[38:], uint16(8+len(payload)))
	return append(b, payload...)
}

// leaves is what a switch sends: the port, and the packet's bytes.
func leaves(port int, payload []byte) string { return fmt.Sprintf("%d %x", port, payload) }

// parse is the host and the payload of a frame that leaves, with its headers checked.
func parse(t testing.TB, b []byte) string {
	t.Helper()
	be := binary.BigEndian
	if len(b) < 82 || int(be.Uint16(b[16:])) != len(b)-14 || int(be.Uint16(b[38:])) != len(b)-34 ||
		be.Uint16(b[34:]) != testPort || !bytes.Equal(b[26:30], []byte{10, 0, 9, 9}) || b[11] != 99 {
		t.Fatalf("headers of %d bytes: %x", len(b), b[:min(len(b), 82)])
	}
	var sum uint32
	for i := 14; i < 34; i += 2 {
		sum += uint32(be.Uint16(b[i:]))
	}
	if sum = sum&0xffff + sum>>16; sum&0xffff+sum>>16 != 0xffff {
		t.Fatalf("IP checksum: %x", b[14:34])
	}
	k := int(be.Uint16(b[36:])) - 4000
	if to := hostAddr(k).Addr().AsSlice(); !bytes.Equal(b[30:34], to) || b[5] != byte(k) {
		t.Fatalf("addresses of host %d: %x", k, b[:42])
	}
	return leaves(k, b[42:])
}

// inKernel is what the programs send for a packet, and whether it passes to the process.
func (x *pair) inKernel(t testing.TB, k int, payload []byte) (out []string, passed bool) {
	t.Helper()
	b := make([]byte, 2048)
	o := ebpf.RunOptions{Data: frameOf(k, payload), DataOut: b}
	verdict, err := x.plane.common.Programs["dispatch"].Run(&o)
	if err != nil {
		t.Fatal(err)
	}
	const drop, pass, redirected = 1, 2, 4
	switch verdict {
	case redirected:
		out = append(out, parse(t, o.DataOut))
	case drop, pass:
	default:
		t.Fatalf("verdict %d", verdict)
	}
	for x.plane.ring.AvailableBytes() > 0 {
		record, err := x.plane.ring.Read()
		if err != nil {
			t.Fatal(err)
		}
		slot, port, payload, ok := parseRecord(record.RawSample)
		if !ok || int(slot) != x.job.slot {
			t.Fatalf("record %x", record.RawSample)
		}
		out = append(out, leaves(port, payload))
	}
	return out, verdict == pass
}

// inProcess is what the switch of package innet does.
func (x *pair) inProcess(k int, payload []byte) (out []string, dropped bool) {
	var p innet.Packet
	if p.Parse(slices.Clone(payload)) != nil || p.Job == x.table.Job && x.impossible(p.Round) {
		return nil, true
	}
	before := x.pure.Round()
	took := x.pure.Handle(k, &p, func(port int, p *innet.Packet) { out = append(out, leaves(port, p.Append(nil))) })
	x.ended = x.ended || p.Has(innet.Done) && p.Round == before && x.pure.Round() == before+1
	return out, took.Dropped
}

// impossible reports whether no host can be in a round: one later than that of a switch which has ended one.
func (x *pair) impossible(round uint32) bool { return x.ended && int32(round-x.pure.Round()) > 0 }

// forProcess reports whether a packet is for all other hosts, which the process sends, or no
// packet at all.
func forProcess(payload []byte) bool {
	var p innet.Packet
	return len(payload) < innet.HeaderBytes || p.Parse(payload) == nil && (p.Flags&^innet.ECN == innet.Done|innet.Fetch || p.Has(innet.ACK) && !p.Has(innet.Done))
}

// feed gives both a packet, and compares.
func (x *pair) feed(t testing.TB, k int, payload []byte) {
	t.Helper()
	before := x.plane.Stats()
	want, dropped := x.inProcess(k, payload)
	got, passed := x.inKernel(t, k, payload)
	if passed {
		if !forProcess(payload) || len(got) > 0 {
			t.Fatalf("host %d: %x passes to the process, with %q", k, payload, got)
		}
		return
	}
	slices.Sort(want)
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Fatalf("host %d sent\n%x\nthe kernel sends\n%s\nwant\n%s", k, payload, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if now := x.plane.Stats(); (now.Dropped > before.Dropped) != dropped {
		t.Fatalf("host %d: %x: dropped %t, want %t", k, payload, now.Dropped > before.Dropped, dropped)
	}
}

// randomPlan is one of few vertices, so that sums are complete often.
func randomPlan(t testing.TB, r *rand.Rand) *innet.Plan {
	hosts := 2 + r.IntN(4)
	g := &innet.Graph{}
	for v := range hosts * (1 + r.IntN(6)) {
		g.Host = append(g.Host, uint16(v%hosts))
	}
	for range len(g.Host) * (1 + r.IntN(4)) {
		if u, v := r.IntN(len(g.Host)), r.IntN(len(g.Host)); g.Host[u] != g.Host[v] {
			g.Src, g.Dst = append(g.Src, uint32(u)), append(g.Dst, uint32(v))
		}
	}
	if len(g.Src) == 0 {
		g.Src, g.Dst = []uint32{0}, []uint32{1}
	}
	blocks, err := innet.Blocks(g, innet.Slots(1+r.IntN(len(g.Host))), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &innet.Plan{Blocks: blocks, Hosts: hosts}
}

// randomPacket is mostly a row that is expected, sometimes anything.
func randomPacket(r *rand.Rand, p *innet.Plan, table *innet.Table, round uint32) (host int, payload []byte) {
	block := int(round) % len(p.Blocks) // a round is of one block
	b := p.Blocks[block]
	row := r.IntN(len(b.Rows))
	host = int(b.RowHost[row])
	pkt := innet.Packet{Header: innet.Header{Source: uint32(row), Block: uint16(block), Round: round, Job: table.Job,
		Last: uint16(r.IntN(5)), Value: uint16(r.IntN(2000)), Units: uint8(table.Units), Count: 1,
		From: uint16(host), To: uint16(r.IntN(p.Hosts)), Destination: uint32(r.IntN(len(b.Slots) + 1))}}
	switch r.IntN(20) {
	case 0:
		pkt.Flags = uint8(r.IntN(256))
	case 1:
		pkt.Flags = innet.Resend
	case 2:
		pkt.Flags = innet.Fetch
	case 3, 4:
		pkt.Flags, host = innet.Done, r.IntN(p.Hosts)
	case 5:
		pkt.Flags = innet.Overflow
	case 6:
		pkt.Round += uint32(r.IntN(4)*len(p.Blocks)) - uint32(2*len(p.Blocks))
	case 7:
		host = r.IntN(p.Hosts)
	case 8:
		pkt.Block, pkt.Source, pkt.To = uint16(block+r.IntN(2)*len(p.Blocks)), pkt.Source+uint32(r.IntN(3)), uint16(r.IntN(300))
	case 9:
		pkt.Job += uint64(r.IntN(2))
	}
	if pkt.Flags&(innet.Overflow|innet.Fetch|innet.Done) == 0 || r.IntN(3) == 0 {
		units := 1 + int(pkt.Round)%table.Units // all rows of a round have as many
		for range units * innet.UnitLanes {
			pkt.Body = append(pkt.Body, int32(r.Uint32())>>r.IntN(16))
		}
	}
	payload = pkt.Append(nil)
	switch r.IntN(60) {
	case 0:
		if n := r.IntN(len(payload)); (n-innet.HeaderBytes)%innet.UnitBytes != 0 { // a row of fewer units is one
			payload = payload[:n]
		}
	case 1:
		payload[22] = byte(r.IntN(2))
	}
	return host, payload
}

// TestSameAsPure: for every packet the kernel sends what the switch of package innet sends.
func TestSameAsPure(t *testing.T) {
	r := testseed.Rand(t)
	for range 6 {
		p := randomPlan(t, r)
		table := p.Table(r.Uint64(), 1+r.IntN(innet.MaxUnits))
		x := newPair(t, table, 1<<30)
		round := 1 + r.Uint32N(1000)
		for k := range p.Hosts { // so that all are known
			head := innet.Header{Flags: innet.Done, Round: round, Job: table.Job}
			x.feed(t, k, (&innet.Packet{Header: head}).Append(nil))
		}
		for x.pure.Round() < round+200 {
			host, payload := randomPacket(r, p, table, x.pure.Round())
			x.feed(t, host, payload)
		}
		if s := x.plane.Stats(); s.Recirculated == 0 && table.Units > 1 {
			t.Errorf("%+v", s)
		}
	}
}

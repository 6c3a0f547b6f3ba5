//go:build amd64 || arm64 || riscv64 || loong64

package xdp

import (
	"encoding/binary"
	"fmt"
	"net"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"starling/innet"
)

// BenchmarkSwitch is rows of one host, each for a number of aggregators, and sums of 16 rows for
// another: on one CPU, without hosts. device=none is the programs alone; device=veth has the
// kernel make frames that pass a veth, with the programs where they arrive. sent/op leave in
// the frame of the row that completed them, ring/op are read by the process.
func BenchmarkSwitch(b *testing.B) {
	for _, device := range []string{"none", "veth"} {
		for _, c := range []struct{ units, d int }{{1, 1}, {8, 0}, {8, 1}, {8, 4}} {
			b.Run(fmt.Sprintf("device=%s/bytes=%d/aggregators=%d", device, c.units*innet.UnitBytes, c.d), func(b *testing.B) {
				benchmark(b, device, c.units, c.d)
			})
		}
	}
}

const benchRows = 1024

// benchTable has rows of host 0 and sums for host 1.
func benchTable(units, d int) *innet.Table {
	t := (&innet.Plan{Hosts: 2}).Table(1, units)
	k := innet.TableBlock{Ptr: []uint32{0}}
	slots := max(benchRows*d/16, 1)
	for r := range benchRows {
		k.Port = append(k.Port, 0)
		for i := range d {
			k.Into = append(k.Into, uint32((r*d+i)%slots))
		}
		k.Ptr = append(k.Ptr, uint32(len(k.Into)))
	}
	for s := range slots {
		k.Slots = append(k.Slots, innet.TableSlot{Need: uint16(benchRows * d / slots), Port: 1, Host: 1, Next: uint32(s)})
	}
	t.Blocks = append(t.Blocks, k)
	return t
}

func benchmark(b *testing.B, device string, units, d int) {
	x := newPair(b, benchTable(units, d), 1<<30)
	last := []asm.Instruction{asm.LoadMapPtr(asm.R2, x.plane.common.Maps["jobs"].FD()), asm.Mov.Imm(asm.R3, int32(x.job.slot)),
		asm.Mov.Reg(asm.R1, asm.R6), asm.FnTailCall.Call()}
	options := ebpf.RunOptions{Repeat: uint32(b.N)}
	if device == "veth" {
		near := veth(b, x.plane)
		last = []asm.Instruction{asm.Mov.Imm(asm.R1, int32(near)), asm.Mov.Imm(asm.R2, 0), asm.FnRedirect.Call(), asm.Return()}
		options.Flags = unix.BPF_F_TEST_XDP_LIVE_FRAMES
	}
	row := (&innet.Packet{Header: innet.Header{Job: 1, Units: uint8(units)}, Body: make([]int32, units*innet.UnitLanes)}).Append(nil)
	options.Data = frameOf(0, row)
	flood := flooder(b, options.Data, last)
	x.inKernel(b, 1, (&innet.Packet{Header: innet.Header{Job: 1, Flags: innet.Done, Round: 1}}).Append(nil)) // it is heard
	sums := 0
	x.plane.wg.Go(func() { x.plane.read(func(uint64, int, []byte, bool) { sums++ }) })
	before := x.plane.Stats()
	b.ResetTimer()
	if _, err := flood.Run(&options); err != nil {
		b.Fatal(err)
	}
	b.StopTimer()
	now := x.plane.Stats()
	b.ReportMetric(float64(now.Packets-before.Packets)/b.Elapsed().Seconds(), "packets/s")
	b.ReportMetric(float64(now.Bytes-before.Bytes)/b.Elapsed().Seconds()/1e9, "GB/s")
	b.ReportMetric(float64(now.Dropped-before.Dropped)/float64(b.N), "dropped/op")
	b.ReportMetric(float64(now.Sent-before.Sent)/float64(b.N), "sent/op")
	x.plane.ring.Close()
	x.plane.wg.Wait()
	b.ReportMetric(float64(sums)/float64(b.N), "ring/op")
}

// veth makes a device whose other end has the programs, in a network namespace that ends with
// the benchmark, and is its number.
func veth(b *testing.B, p *Plane) (near int) {
	runtime.LockOSThread() // and never unlocked: the thread, with its namespace, ends with the goroutine
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		b.Skipf("no network namespace: %v", err)
	}
	for _, step := range []string{"ip link add near type veth peer name far", "ip link set near up", "ip link set far up"} {
		words := strings.Fields(step)
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			b.Skipf("%s: %v: %s", step, err, out)
		}
	}
	if err := p.attach("far"); err != nil {
		b.Fatal(err)
	}
	pass, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, Instructions: asm.Instructions{
		asm.Mov.Imm(asm.R0, 1), asm.Return()}})
	if err != nil {
		b.Fatal(err)
	}
	dev, err := net.InterfaceByName("near")
	if err != nil {
		b.Fatal(err)
	}
	l, err := link.AttachXDP(link.XDPOptions{Program: pass, Interface: dev.Index}) // where sums end
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { l.Close(); pass.Close() })
	return dev.Index
}

// flooder is a program that makes a frame the next row: rows in turn, then the next round.
func flooder(b *testing.B, frame []byte, last []asm.Instruction) *ebpf.Program {
	b.Helper()
	count, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: 8, MaxEntries: 1})
	if err != nil {
		b.Fatal(err)
	}
	const head, source, round = 42 + innet.HeaderBytes, 42, 42 + 24
	code := asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1), asm.LoadMem(asm.R7, asm.R1, 0, asm.Word),
		asm.LoadMem(asm.R8, asm.R1, 4, asm.Word), asm.Mov.Reg(asm.R1, asm.R7), asm.Add.Imm(asm.R1, head),
		asm.JGT.Reg(asm.R1, asm.R8, "out")}
	for at := 0; at+2 <= head; at += 2 { // the programs write into frames, which come again
		code = append(code, asm.StoreImm(asm.R7, int16(at), int64(binary.LittleEndian.Uint16(frame[at:])), asm.Half))
	}
	code = append(code, asm.StoreImm(asm.R10, -4, 0, asm.Word), asm.Mov.Reg(asm.R2, asm.R10), asm.Add.Imm(asm.R2, -4),
		asm.LoadMapPtr(asm.R1, count.FD()), asm.FnMapLookupElem.Call(), asm.JEq.Imm(asm.R0, 0, "out"),
		asm.LoadMem(asm.R1, asm.R0, 0, asm.DWord), asm.Mov.Reg(asm.R2, asm.R1), asm.Add.Imm(asm.R2, 1),
		asm.StoreMem(asm.R0, 0, asm.R2, asm.DWord), asm.Mov.Reg(asm.R2, asm.R1), asm.Mod.Imm(asm.R2, benchRows),
		asm.StoreMem(asm.R7, source, asm.R2, asm.Word), asm.Div.Imm(asm.R1, benchRows), asm.Add.Imm(asm.R1, 2),
		asm.StoreMem(asm.R7, round, asm.R1, asm.Word))
	code = append(code, last...)
	code = append(code, asm.Mov.Imm(asm.R0, 1).WithSymbol("out"), asm.Return())
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.XDP, AttachType: ebpf.AttachXDP, License: "none", Instructions: code})
	if err != nil {
		b.Fatalf("%+v", err)
	}
	b.Cleanup(func() { p.Close(); count.Close() })
	return p
}

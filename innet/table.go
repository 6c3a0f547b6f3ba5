package innet

import (
	"fmt"
	"math"
)

// Table is what the control plane writes into one switch. Ports are the hosts and switches
// that it is connected to.
type Table struct {
	Job    uint64
	Units  int      // that a packet carries
	Route  []uint16 // the port towards each host
	Below  []uint16 // ports of hosts and switches below, whose done packets are counted
	Above  int      // the port of the switch above; none: NoPort
	Spines int      // switches above, at ports from Above on; 0 is one
	Blocks []TableBlock
}

// upward is the port above for slot s of a block: its spine adds that slot's rows of all leaves.
func (t *Table) upward(block uint16, s uint32) int {
	return t.Above + spineOf(int(block), s, max(t.Spines, 1))
}

// isAbove reports whether a port leads to a switch above.
func (t *Table) isAbove(port int) bool {
	return t.Above != NoPort && port >= t.Above && port < t.Above+max(t.Spines, 1)
}

// spineOf is which of several spines adds slot s of a block. The slots of each block go round all of them, so that
// no link upwards is idle in a round, and blocks begin at different ones.
func spineOf(block int, s uint32, spines int) int {
	return int((uint64(block) + uint64(s)) % uint64(spines))
}

// NoPort is the port above the root.
const NoPort = -1

// TableBlock is one block of a table.
type TableBlock struct {
	Port  []uint16 // row r comes from this port
	Ptr   []uint32 // and is added to slots Into[Ptr[r]:Ptr[r+1]]
	Into  []uint32
	Slots []TableSlot
	// Index is the slot of each slot of the plan's block, noSlot: not here; nil: the same.
	Index []uint32
}

// TableSlot is one aggregator.
type TableSlot struct {
	Need uint16 // rows that make the sum complete here
	Port uint16 // where it goes then
	Host uint16 // that it is for
	Next uint32 // the plan's slot, for a host; the row of the next switch's table
}

const noSlot = math.MaxUint32

// Bytes of registers, per aggregator of one unit, beside its lanes: the round, and the count
// with the overflow bit; per row: the round it was last added in.
const (
	slotBytes = 8
	rowBytes  = 4
)

// Registers is the bytes of registers that a table needs.
func (t *Table) Registers() int64 {
	rows, slots := t.most()
	return int64(slots)*int64(t.Units*UnitBytes+slotBytes) + int64(rows)*rowBytes
}

// Bytes is the size of the table itself: what on hardware is match-action memory.
func (t *Table) Bytes() (bytes int64) {
	for i := range t.Blocks {
		b := &t.Blocks[i]
		bytes += int64(2*len(b.Port) + 4*len(b.Ptr) + 4*len(b.Into) + 10*len(b.Slots) + 4*len(b.Index))
	}
	return bytes
}

// most is the rows and the slots of the blocks that have most of them.
func (t *Table) most() (rows, slots int) {
	for i := range t.Blocks {
		rows, slots = max(rows, len(t.Blocks[i].Port)), max(slots, len(t.Blocks[i].Slots))
	}
	return rows, slots
}

// Check refuses tables that do not fit together, or do not fit into this memory, the bytes of
// registers.
func (t *Table) Check(memory int64) error {
	switch {
	case t.Units < 1 || t.Units > MaxUnits:
		return fmt.Errorf("packets of %d units, want 1 to %d", t.Units, MaxUnits)
	case len(t.Below) == 0 || len(t.Route) == 0 || len(t.Blocks) > maxBlocks+1:
		return fmt.Errorf("a table of %d hosts and %d blocks", len(t.Route), len(t.Blocks))
	case t.Above != NoPort && t.upward(0, uint32(max(t.Spines, 1)-1)) > math.MaxUint16:
		return fmt.Errorf("a table of %d hosts and %d switches above, want at most %d ports", len(t.Route), t.Spines,
			math.MaxUint16+1)
	case t.Registers() > memory:
		return fmt.Errorf("the table needs %d bytes of registers, the switch has %d", t.Registers(), memory)
	}
	for i := range t.Blocks {
		if err := t.Blocks[i].check(); err != nil {
			return fmt.Errorf("block %d: %w", i, err)
		}
	}
	return nil
}

func (b *TableBlock) check() error {
	if len(b.Ptr) != len(b.Port)+1 || b.Ptr[0] != 0 || int(b.Ptr[len(b.Port)]) != len(b.Into) {
		return fmt.Errorf("rows and their slots do not agree")
	}
	for r := range b.Port {
		if b.Ptr[r] > b.Ptr[r+1] {
			return fmt.Errorf("row %d ends before it begins", r)
		}
	}
	for _, s := range b.Into {
		if int(s) >= len(b.Slots) {
			return fmt.Errorf("slot %d of %d", s, len(b.Slots))
		}
	}
	for _, s := range b.Index {
		if s != noSlot && int(s) >= len(b.Slots) {
			return fmt.Errorf("slot %d of %d", s, len(b.Slots))
		}
	}
	return nil
}

// Table returns the table of a single switch, whose ports are the hosts.
func (p *Plan) Table(job uint64, units int) *Table {
	t := &Table{Job: job, Units: units, Route: ports(p.Hosts), Below: ports(p.Hosts), Above: NoPort}
	for _, b := range p.Blocks {
		own := TableBlock{Port: b.RowHost, Ptr: b.Ptr, Into: b.Into}
		for s, host := range b.SlotHost {
			own.Slots = append(own.Slots, TableSlot{b.Need[s], host, host, uint32(s)})
		}
		t.Blocks = append(t.Blocks, own)
	}
	return t
}

func ports(n int) (list []uint16) {
	for i := range n {
		list = append(list, uint16(i))
	}
	return list
}

// Tables returns the tables of two levels (§4): leaf k has the hosts that leafOf says, and each of the
// spines joins all leaves. A leaf adds up the rows of its own hosts. A sum whose rows and whose
// destination are all below one leaf is finished there; of others the slot's spine adds the leaves'
// partial sums. The barrier of a block is at its first spine; the others enter the next round with its
// first packet. On a leaf, ports are the hosts, and the numbers from that of hosts on are the spines'; on
// a spine, ports are the leaves.
func (p *Plan) Tables(job uint64, units int, leafOf []int, leaves, spines int) (below, above []*Table) {
	for range spines {
		above = append(above, &Table{Job: job, Units: units, Below: ports(leaves), Above: NoPort})
	}
	for k := range leaves {
		t := &Table{Job: job, Units: units, Above: p.Hosts, Spines: spines}
		for h, leaf := range leafOf {
			to := uint16(p.Hosts)
			if leaf == k {
				to = uint16(h)
				t.Below = append(t.Below, to)
			}
			t.Route = append(t.Route, to)
		}
		below = append(below, t)
	}
	for _, t := range above {
		for _, leaf := range leafOf {
			t.Route = append(t.Route, uint16(leaf))
		}
	}
	for i, b := range p.Blocks {
		l := leafBlocks{b: b, number: i, leafOf: leafOf, hosts: p.Hosts}
		for range above {
			l.up = append(l.up, newTableBlock(len(b.Slots)))
		}
		for k, t := range below {
			t.Blocks = append(t.Blocks, l.of(k))
		}
		for j, t := range above {
			t.Blocks = append(t.Blocks, *l.up[j])
		}
	}
	return below, above
}

// leafBlocks divides a block among leaves. Their partial sums become rows of the spines' blocks.
type leafBlocks struct {
	b      *Block
	number int
	leafOf []int
	hosts  int // which is also the port of the first spine
	up     []*TableBlock
}

func newTableBlock(slots int) *TableBlock {
	b := &TableBlock{Ptr: []uint32{0}, Index: make([]uint32, slots)}
	for s := range b.Index {
		b.Index[s] = noSlot
	}
	return b
}

// of is what a leaf has of the block.
func (l *leafBlocks) of(leaf int) TableBlock {
	b, leafOf := l.b, l.leafOf
	own := newTableBlock(len(b.Slots))
	// All rows have an entry, so that hosts name a row alike everywhere; those of other
	// leaves' hosts come from no port.
	for r, host := range b.RowHost {
		if leafOf[host] == leaf {
			for _, s := range b.Into[b.Ptr[r]:b.Ptr[r+1]] {
				own.Into = append(own.Into, own.slot(s))
				own.Slots[own.Index[s]].Need++
			}
			own.Port = append(own.Port, host)
		} else {
			own.Port = append(own.Port, uint16(l.hosts))
		}
		own.Ptr = append(own.Ptr, uint32(len(own.Into)))
	}
	for s, at := range own.Index {
		if at == noSlot {
			continue
		}
		slot, host := &own.Slots[at], b.SlotHost[s]
		slot.Host = host
		if leafOf[host] == leaf && slot.Need == b.Need[s] {
			slot.Port, slot.Next = host, uint32(s)
			continue
		}
		spine := spineOf(l.number, uint32(s), len(l.up))
		up := l.up[spine]
		slot.Port, slot.Next = uint16(l.hosts+spine), uint32(len(up.Port))
		up.Into = append(up.Into, up.slot(uint32(s)))
		up.Slots[up.Index[s]] = TableSlot{b.Need[s], uint16(leafOf[host]), host, uint32(s)}
		up.Port = append(up.Port, uint16(leaf))
		up.Ptr = append(up.Ptr, uint32(len(up.Into)))
	}
	return *own
}

// slot is the place of a plan's slot, made when first asked for.
func (b *TableBlock) slot(s uint32) uint32 {
	if b.Index[s] == noSlot {
		b.Index[s] = uint32(len(b.Slots))
		b.Slots = append(b.Slots, TableSlot{})
	}
	return b.Index[s]
}

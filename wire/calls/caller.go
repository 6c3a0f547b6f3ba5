package calls

const slotBits = 12

// Max bounds the calls to one peer that are under way.
const Max = 1 << slotBits

// First is the number of the first call between two ranks.
const First = 1 << slotBits

// Caller has the calls of type C to one peer that are under way, by number.
type Caller[C any] struct {
	slots []callerSlot[C]
	free  []int // of the slots
}

type callerSlot[C any] struct {
	generation uint32
	call       *C // nil: none is under way
}

// Full reports whether no further call can be under way.
func (c *Caller[C]) Full() bool { return len(c.free) == 0 && len(c.slots) == Max }

// Begin gives a call its number.
// REQUIRES: not full.
func (c *Caller[C]) Begin(call *C) (number uint32) {
	if len(c.free) == 0 {
		c.slots, c.free = append(c.slots, callerSlot[C]{}), append(c.free, len(c.slots))
	}
	slot := c.free[len(c.free)-1]
	c.free = c.free[:len(c.free)-1]
	s := &c.slots[slot]
	s.generation++
	s.call = call
	return s.generation<<slotBits | uint32(slot)
}

// UnderWay is the call of a number; nil: it is not under way.
func (c *Caller[C]) UnderWay(number uint32) *C {
	slot := number % Max
	if int(slot) >= len(c.slots) || c.slots[slot].generation<<slotBits|slot != number {
		return nil
	}
	return c.slots[slot].call
}

// End frees the slot of a call.
func (c *Caller[C]) End(number uint32) {
	slot := int(number % Max)
	c.slots[slot].call = nil
	c.free = append(c.free, slot)
}

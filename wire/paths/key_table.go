package paths

// keyTable counts the requests in progress per key, and has their path: open addressing with linear probing, so that a
// request allocates nothing once the table has grown.
type keyTable struct {
	slots []keySlot
	used  int
}

type keySlot struct {
	key   uint64
	count int32 // requests in progress; 0: the slot is empty
	path  int32
}

// find is the slot of a key, or the empty one where it would be. REQUIRES: there are slots.
func (t *keyTable) find(key uint64) int {
	mask := len(t.slots) - 1
	i := int(key) & mask
	for t.slots[i].count != 0 && t.slots[i].key != key {
		i = (i + 1) & mask
	}
	return i
}

// path returns the path of the requests in progress with a key.
func (t *keyTable) path(key uint64) (int, bool) {
	if t.used == 0 {
		return 0, false
	}
	s := &t.slots[t.find(key)]
	return int(s.path), s.count != 0
}

// add counts a request.
func (t *keyTable) add(key uint64, path int) {
	if 2*t.used >= len(t.slots) {
		t.grow()
	}
	s := &t.slots[t.find(key)]
	if s.count == 0 {
		t.used++
	}
	s.key, s.path = key, int32(path)
	s.count++
}

func (t *keyTable) grow() {
	old := t.slots
	t.slots = make([]keySlot, max(16, 2*len(old)))
	for _, s := range old {
		if s.count != 0 {
			t.slots[t.find(s.key)] = s
		}
	}
}

// remove takes a request away. The slots behind an emptied one move up, so that find still reaches them.
func (t *keyTable) remove(key uint64) {
	i := t.find(key)
	if t.slots[i].count--; t.slots[i].count > 0 {
		return
	}
	t.used--
	mask := len(t.slots) - 1
	for j := (i + 1) & mask; t.slots[j].count != 0; j = (j + 1) & mask {
		if home := int(t.slots[j].key) & mask; (j-home)&mask >= (j-i)&mask {
			t.slots[i], t.slots[j] = t.slots[j], keySlot{}
			i = j
		}
	}
}

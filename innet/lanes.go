package innet

// addLanes adds b to a, which are as long, and reports whether a lane overflowed. Lanes are of whole units where there are
// instructions for them.
func addLanes(a, b []int32) bool {
	b = b[:len(a)]
	if units := len(a) / UnitLanes; canAddUnits && units > 0 {
		over := addUnits(&a[0], &b[0], units)
		return addEach(a[units*UnitLanes:], b[units*UnitLanes:]) || over
	}
	return addEach(a, b)
}

// addEach is the same, lane by lane.
func addEach(a, b []int32) bool {
	b = b[:len(a)]
	var over int32
	for i, x := range a {
		y := b[i]
		sum := x + y
		over |= (x ^ sum) & (y ^ sum)
		a[i] = sum
	}
	return over < 0
}

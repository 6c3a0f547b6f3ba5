package cuda

// SetPartBytes has sums of pieces take another amount; what it returns puts the old one back.
func SetPartBytes(n int) func() {
	old := partBytes
	partBytes = n
	return func() { partBytes = old }
}

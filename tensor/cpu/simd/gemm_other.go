//go:build !amd64

package simd

// Other architectures have no level but Generic, so none of these is reached.

func (t *Tile) vector(Level, int) {}

func runShortRows(*ShortRows) {}

func runOuter(*Outer) {}

func transpose(*float32, *float32, int, int, int) {}

func copyLeft(*float32, *float32, int, int, int) {}

func (p Packing) rows(Level, *float32, *float32, int, int, int) {}

func (p Packing) rows16(*float32, *uint16, int, int, int) {}

func addRows(Level, []float32, []float32, int, int, int) {}

func addRows16(*float32, *uint16, int, int, int) {}

func fmaLoop(Level, int) int { return 0 }

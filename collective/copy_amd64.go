package collective

// copySteps is dst = src for stepBytes so many times, at least once, with non-temporal stores. It
// begins at a line of dst.
//
//go:noescape
func copySteps(dst, src *byte, steps int)

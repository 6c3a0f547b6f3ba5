package collective

// copySteps is dst = src for n times stepBytes, n at least 1, with non-temporal stores. It
// begins at a line of dst.
//
//go:noescape
func copySteps(dst, src *byte, steps int)

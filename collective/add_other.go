//go:build !amd64

package collective

const canStep = false

func addSteps32(dst, src *byte, steps int) { panic("not reached") }

func addSteps64(dst, src *byte, steps int) { panic("not reached") }

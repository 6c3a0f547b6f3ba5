//go:build !amd64

package wire

const canFold = false

func fold(p *byte, n int, rest *[64]byte, by *[4]uint64) { panic("not reached") }

//go:build !linux

package collective

func adviseHuge([]byte) {}

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// readKeys gives keys of a terminal as they are pressed, until restore is called; of anything else, none.
func readKeys(f *os.File) (keys <-chan byte, restore func()) {
	fd := int(f.Fd())
	before, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return nil, func() {}
	}
	single := *before
	single.Lflag &^= unix.ICANON | unix.ECHO // but Ctrl-C stays what it is
	if unix.IoctlSetTermios(fd, unix.TCSETS, &single) != nil {
		return nil, func() {}
	}
	pressed := make(chan byte, 16)
	go func() {
		var b [1]byte
		for {
			if n, err := f.Read(b[:]); n == 0 || err != nil {
				return
			}
			pressed <- b[0]
		}
	}()
	return pressed, func() { unix.IoctlSetTermios(fd, unix.TCSETS, before) }
}

//go:build unix

package event

import (
	"os"

	"golang.org/x/sys/unix"
)

// size returns the columns and rows of a terminal; 0 if f is not one.
func size(f *os.File) (columns, rows int) {
	s, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(s.Col), int(s.Row)
}

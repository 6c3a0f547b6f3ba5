//go:build unix

package event

import (
	"os"

	"golang.org/x/sys/unix"
)

// size is that of a terminal; 0: it is none.
func size(f *os.File) (columns, rows int) {
	s, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, 0
	}
	return int(s.Col), int(s.Row)
}

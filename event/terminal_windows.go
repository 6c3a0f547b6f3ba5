package event

import (
	"os"

	"golang.org/x/sys/windows"
)

// size returns the columns and rows of a console that understands escape sequences; 0 if f is not one.
func size(f *os.File) (columns, rows int) {
	h := windows.Handle(f.Fd())
	var mode uint32
	var info windows.ConsoleScreenBufferInfo
	if windows.GetConsoleMode(h, &mode) != nil || windows.GetConsoleScreenBufferInfo(h, &info) != nil ||
		windows.SetConsoleMode(h, mode|windows.ENABLE_VIRTUAL_TERMINAL_PROCESSING) != nil {
		return 0, 0
	}
	return int(info.Size.X), int(info.Window.Bottom-info.Window.Top) + 1
}

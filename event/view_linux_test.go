package event

import (
	"os"
	"syscall"
	"testing"
	"unsafe"
)

// A terminal gets a bar, once it has a width; anything else gets lines.
func TestView(t *testing.T) {
	f, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		t.Skip("no terminal can be made here: ", err)
	}
	defer f.Close()
	t.Setenv("TERM", "xterm")
	is := func(f *os.File) string {
		switch v := NewView(f, f); v.(type) {
		case *Bar:
			return "bar"
		case *Lines:
			return "lines"
		}
		return ""
	}
	if got := is(f); got != "lines" {
		t.Errorf("a terminal of no width gets a %s", got)
	}
	size := [4]uint16{24, 80} // rows, columns
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), syscall.TIOCSWINSZ,
		uintptr(unsafe.Pointer(&size))); errno != 0 {
		t.Fatal(errno)
	}
	if got := is(f); got != "bar" {
		t.Errorf("a terminal gets %s", got)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if got := is(w); got != "lines" {
		t.Errorf("a pipe gets a %s", got)
	}
}

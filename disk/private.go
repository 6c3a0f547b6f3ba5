package disk

import (
	"fmt"
	"os"
	"runtime"
)

// CheckPrivate refuses a file of a secret that other users can read or write, as ssh does: who can read it can join
// a run, who can write it can have workers join theirs. Pipes, such as a shell's <(command), have no such bits; a
// file that cannot be opened is an error later.
func CheckPrivate(path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() || runtime.GOOS == "windows" {
		return nil
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return &PublicError{Path: path, Mode: mode}
	}
	return nil
}

// PublicError is a file of a secret that others can read or write.
type PublicError struct {
	Path string
	Mode os.FileMode
}

// Found is what is wrong.
func (e *PublicError) Found() string {
	return fmt.Sprintf("%s with mode %04o: other users can read or write it", e.Path, e.Mode)
}

// Want is what a file of a secret must be.
func (e *PublicError) Want() string { return "a file that only its owner can read, mode 0600" }

// Fix is the remedy.
func (e *PublicError) Fix() string {
	return "chmod 600 " + e.Path + ", and make a new secret if others use this host"
}

func (e *PublicError) Error() string {
	return fmt.Sprintf("found %s, want %s; %s", e.Found(), e.Want(), e.Fix())
}

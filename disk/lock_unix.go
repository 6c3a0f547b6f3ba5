//go:build unix && !solaris && !illumos && !aix

package disk

import (
	"errors"
	"os"
	"syscall"
)

const noFollow = syscall.O_NOFOLLOW

const locks = true

// lock takes a file's lock, which ends when the file is closed; free is false if another
// process has it.
func lock(f *os.File) (free bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

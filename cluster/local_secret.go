package cluster

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"starling/disk"
)

// LocalSecret is this user's secret on this host, made when it is first needed. Runs on loopback
// want it where no token is given, so that other users of the host, who reach the same ports, can
// neither join nor watch them. Who may read the user's files has it anyway.
//
// It is one per user rather than one per run, as workers and watchers that are started by hand have
// nothing but an address to find it by.
func LocalSecret() ([]byte, error) {
	path, err := LocalSecretFile()
	if err != nil {
		return nil, err
	}
	b, err := readPrivate(path)
	if os.IsNotExist(err) {
		if err = makePrivate(path, rand.Text()+"\n"); err == nil {
			b, err = readPrivate(path) // another process may have been faster
		}
	}
	if err == nil && len(b) == 0 {
		err = fmt.Errorf("%s is empty; remove it, and a new one is made", path)
	}
	return b, err
}

// LocalSecretFile is where LocalSecret is kept: in the user's configuration folder, or in a
// temporary folder of the user's own where there is none that can be written to.
func LocalSecretFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err == nil {
		dir = filepath.Join(dir, "starling")
		err = os.MkdirAll(dir, 0o700)
	}
	if err != nil {
		if dir, err = PrivateFolder(); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "secret"), nil
}

// readPrivate reads a file that only this user can read.
func readPrivate(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular() || !disk.Ours(info) || runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("%s is not a file of this user alone (mode 0600); remove it, and a new one is made", path)
	}
	b, err := os.ReadFile(path)
	return bytes.TrimSpace(b), err
}

// makePrivate makes a file that only this user can read, unless there is one. It appears whole: a
// link, unlike renaming, never replaces what another process has made and uses.
func makePrivate(path, text string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".secret-*") // with mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.WriteString(text)
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err != nil {
		return err
	}
	if err = os.Link(f.Name(), path); os.IsExist(err) {
		return nil
	}
	return err
}

package main

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// disk mounts a disk of a size, or changes the one that is there.
func (s *scenario) disk(args []string) {
	s.t.Helper()
	at := filepath.Join(s.dir, args[0])
	var flags uintptr
	if len(args) > 2 && args[2] == "ro" {
		flags = unix.MS_RDONLY
	}
	there := os.MkdirAll(at, 0o755) == nil && unix.Access(filepath.Join(at, ".mounted"), unix.F_OK) == nil
	if there {
		flags |= unix.MS_REMOUNT
	}
	if err := unix.Mount("tmpfs", at, "tmpfs", flags, "size="+args[1]); err != nil {
		s.t.Skip("a tmpfs cannot be mounted here, so disks are not tried:", err)
	}
	if !there {
		s.t.Cleanup(func() { unix.Unmount(at, unix.MNT_DETACH) })
		os.WriteFile(filepath.Join(at, ".mounted"), nil, 0o644)
	}
}

//go:build !linux

package main

func (s *scenario) disk([]string) { s.t.Skip("disks are tried on Linux only") }

//go:build !linux

package main

import "os"

// readKeys gives no keys here: Ctrl-C ends the view.
func readKeys(*os.File) (keys <-chan byte, restore func()) { return nil, func() {} }

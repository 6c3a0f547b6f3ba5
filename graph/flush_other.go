//go:build !linux

package graph

import "os"

func startFlush(*os.File, int64, int64) {}

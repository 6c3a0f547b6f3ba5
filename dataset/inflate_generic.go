//go:build !amd64

package dataset

var canPlain = false

func unpackPlain(*inflate, int, int) {}

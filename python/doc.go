// Package python holds the Python package, in starling/, and its tests.
package python

//go:generate go build -trimpath -o ../build/starling-for-options ../cmd/starling
//go:generate go run ../internal/release options -binary ../build/starling-for-options -source ..

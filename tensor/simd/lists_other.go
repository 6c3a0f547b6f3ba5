//go:build !amd64

package simd

// Other architectures have no level but Generic, so none of these is reached.

func listRows(*List, *float32, int, int, int) {}

func runListTile(Level, *ListTile, int) {}

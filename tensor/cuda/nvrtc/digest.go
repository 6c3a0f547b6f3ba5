//go:build (linux || freebsd) && (amd64 || arm64) && !static

package nvrtc

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Sums is what the file beside the committed code says: the digest of all sources, and of the code of each
// module.
func Sums(kernels string, code map[string][]byte) (string, error) {
	var files []string
	for _, pattern := range []string{"*.cu", "*.cuh"} {
		found, err := filepath.Glob(filepath.Join(kernels, pattern))
		if err != nil {
			return "", err
		}
		files = append(files, found...)
	}
	slices.Sort(files)
	h := sha256.New()
	fmt.Fprintln(h, Version)
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return "", err
		}
		fmt.Fprintln(h, filepath.Base(f), len(text))
		h.Write(text)
	}
	lines := []string{fmt.Sprintf("%x  sources", h.Sum(nil))}
	for module, ptx := range code {
		lines = append(lines, fmt.Sprintf("%x  %s", sha256.Sum256(ptx), module))
	}
	slices.Sort(lines[1:])
	return strings.Join(lines, "\n") + "\n", nil
}

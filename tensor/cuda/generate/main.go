//go:build (linux || freebsd) && (amd64 || arm64) && !static

// Command generate compiles the kernels to PTX and writes it where it is embedded.
//
//	go run ./tensor/cuda/generate -nvrtc build/nvrtc -kernels tensor/cuda/kernels
package main

import (
	"bytes"
	"compress/gzip"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"starling/tensor/cuda"
	"starling/tensor/cuda/nvrtc"
)

func main() {
	dir := flag.String("nvrtc", "build/nvrtc", "folder that scripts/nvrtc has filled")
	kernels := flag.String("kernels", "tensor/cuda/kernels", "folder of the sources")
	flag.Parse()
	if err := generate(*dir, *kernels); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func generate(dir, kernels string) error {
	lib := nvrtc.Find(dir)
	if lib == "" {
		return fmt.Errorf("found no NVRTC in %s, want %s; run scripts/nvrtc", dir, nvrtc.Version)
	}
	c, err := nvrtc.Open(lib)
	if err != nil {
		return err
	}
	code := map[string][]byte{}
	for _, m := range cuda.Modules {
		ptx, err := c.Compile(filepath.Join(kernels, m+".cu"))
		if err != nil {
			return err
		}
		code[m] = ptx
		if err := write(filepath.Join(kernels, "ptx", m+".ptx.gz"), ptx); err != nil {
			return err
		}
	}
	sums, err := nvrtc.Sums(kernels, code)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(kernels, "ptx", "sums.txt"), []byte(sums), 0o644)
}

func write(file string, ptx []byte) error {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := z.Write(ptx); err != nil {
		return err
	}
	if err := z.Close(); err != nil {
		return err
	}
	return os.WriteFile(file, b.Bytes(), 0o644)
}

package cuda

import (
	"bytes"
	"compress/gzip"
	"embed"
	"io"
)

//go:embed kernels/ptx/*.ptx.gz
var compiled embed.FS

// Modules are the names of the kernels' files.
var Modules = []string{"aggregate", "attention", "draw", "edgewise", "elements", "mma_bf16", "mma_split", "mma_tf32",
	"product", "rows"}

// PTX is the committed code of a module.
func PTX(module string) []byte {
	packed, err := compiled.ReadFile("kernels/ptx/" + module + ".ptx.gz")
	if err != nil {
		panic(err)
	}
	r, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic(err)
	}
	text, err := io.ReadAll(r)
	if err != nil {
		panic(err)
	}
	return text
}

package simd

import "unsafe"

//go:generate sh -c "cd asm && go run ./compressedrows -out ../compressed_rows_amd64.s -stubs ../compressed_rows_stubs_amd64.go -pkg simd"

func compressRows(dst *CompressedRow, src *float32, rows, cols, stride int) {
	compressRows512((*byte)(unsafe.Pointer(dst)), src, rows, cols, 4*stride)
}

// compressedTiles512 and compressedTiles256 are by panels less one.
var (
	compressedTiles512 = [4]func(t *byte){compressedTile512p1, compressedTile512p2, compressedTile512p3,
		compressedTile512p4}
	compressedTiles256 = [4]func(t *byte){compressedTile256p1, compressedTile256p2, compressedTile256p3,
		compressedTile256p4}
)

func runCompressedTile(level Level, t *CompressedTile, panels int) {
	raw := (*byte)(unsafe.Pointer(t))
	if level >= AVX512 {
		compressedTiles512[panels-1](raw)
	} else {
		compressedTiles256[panels-1](raw)
	}
}

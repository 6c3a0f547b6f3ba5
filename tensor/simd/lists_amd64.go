package simd

import "unsafe"

//go:generate sh -c "cd asm && go run ./lists -out ../lists_amd64.s -stubs ../lists_stubs_amd64.go -pkg simd"

func listRows(dst *List, src *float32, rows, cols, stride int) {
	listRows512((*byte)(unsafe.Pointer(dst)), src, rows, cols, 4*stride)
}

// listTiles512 and listTiles256 are by panels less one.
var (
	listTiles512 = [4]func(t *byte){listTile512p1, listTile512p2, listTile512p3, listTile512p4}
	listTiles256 = [4]func(t *byte){listTile256p1, listTile256p2, listTile256p3, listTile256p4}
)

func runListTile(level Level, t *ListTile, panels int) {
	raw := (*byte)(unsafe.Pointer(t))
	if level >= AVX512 {
		listTiles512[panels-1](raw)
	} else {
		listTiles256[panels-1](raw)
	}
}

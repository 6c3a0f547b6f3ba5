package simd

//go:generate sh -c "cd asm && go run ./edgewise -out ../edgewise_amd64.s -stubs ../edgewise_stubs_amd64.go -pkg simd"

// eights is how many of n columns vectors do.
func eights(level Level, n int) int {
	if level < AVX2 {
		return 0
	}
	return n &^ 7
}

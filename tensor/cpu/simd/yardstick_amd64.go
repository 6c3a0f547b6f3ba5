package simd

//go:generate sh -c "cd asm && go run ./yardstick -out ../yardstick_amd64.s -stubs ../yardstick_stubs_amd64.go -pkg simd"

func streamFast(l Level, kind streamKind, dst, a, b *float32, turns int) {
	loops := [...]func(dst, a, b *float32, turns int){yardRead512, yardCopy512, yardTriad512}
	if l == AVX2 {
		loops = [...]func(dst, a, b *float32, turns int){yardRead256, yardCopy256, yardTriad256}
	}
	loops[kind](dst, a, b, turns)
}

// gatherFast reads a number of words of each row.
func gatherFast(l Level, src *byte, stride int, list []uint32, words int) {
	lines, tail := words/16, words%16
	low, high := &tailMasks[8-min(tail, 8)], &tailMasks[8-max(tail-8, 0)]
	if l == AVX2 {
		yardGather256(src, stride, &list[0], len(list), lines, tail, low, high)
	} else {
		yardGather512(src, stride, &list[0], len(list), lines, tail, low, high)
	}
}

package simd

//go:generate sh -c "cd asm && go run ./yardstick -out ../yardstick_amd64.s -stubs ../yardstick_stubs_amd64.go -pkg simd"

func streamFast(l Level, kind streamKind, dst, a, b *float32, turns int) {
	loops := [...]func(dst, a, b *float32, turns int){yardRead512, yardCopy512, yardTriad512}
	if l == AVX2 {
		loops = [...]func(dst, a, b *float32, turns int){yardRead256, yardCopy256, yardTriad256}
	}
	loops[kind](dst, a, b, turns)
}

func gatherFast(l Level, src *byte, stride int, list []uint32, lines int) {
	if l == AVX2 {
		yardGather256(src, stride, &list[0], len(list), lines)
	} else {
		yardGather512(src, stride, &list[0], len(list), lines)
	}
}

package simd

//go:generate sh -c "cd asm && go run ./element -out ../element_amd64.s"

//go:noescape
func mapAVX512(a *Map, native bool)

//go:noescape
func mapAVX2(a *Map)

//go:noescape
func actGradAVX512(a *ActGrad, native bool)

//go:noescape
func actGradAVX2(a *ActGrad)

//go:noescape
func dotAVX512(a *Dot)

//go:noescape
func dotAVX2(a *Dot)

//go:noescape
func finiteAVX512(a *Finite)

//go:noescape
func finiteAVX2(a *Finite)

//go:noescape
func columnSumsAVX512(a *ColumnSums)

//go:noescape
func columnSumsAVX2(a *ColumnSums)

//go:noescape
func normGradAVX512(a *NormGrad, native bool)

//go:noescape
func normGradAVX2(a *NormGrad)

//go:noescape
func layerGradAVX512(a *LayerGrad, native bool)

//go:noescape
func layerGradAVX2(a *LayerGrad)

//go:noescape
func softmaxAVX512(a *Softmax, native bool)

//go:noescape
func softmaxAVX2(a *Softmax)

//go:noescape
func argmaxAVX512(a *Argmax)

//go:noescape
func argmaxAVX2(a *Argmax)

//go:noescape
func bceAVX512(a *BCE, native bool)

//go:noescape
func bceAVX2(a *BCE)

//go:noescape
func adamAVX512(a *Adam)

//go:noescape
func adamAVX2(a *Adam)

//go:noescape
func sgdAVX512(a *SGD)

//go:noescape
func sgdAVX2(a *SGD)

//go:noescape
func keptAVX512(a *Kept)

//go:noescape
func logSumFast(a *logSums, sum, gap *float32, n int)

//go:noescape
func clearLinesAVX512(p *byte, lines int)

// StoreFence makes what ClearNonTemporal wrote appear to other cores before whatever is written next.
func StoreFence()

func clearLines(p *byte, lines int) { clearLinesAVX512(p, lines) }

// run calls the kernel of a level.
func run[T any](l Level, a *T, avx512, avx2, generic func(*T)) {
	switch {
	case l >= AVX512:
		avx512(a)
	case l == AVX2:
		avx2(a)
	default:
		generic(a)
	}
}

// runRounding calls the kernel of a level that stores rows, which AMX processors round by themselves.
func runRounding[T any](l Level, a *T, avx512 func(*T, bool), avx2, generic func(*T)) {
	switch {
	case l >= AVX512:
		avx512(a, l >= AMX)
	case l == AVX2:
		avx2(a)
	default:
		generic(a)
	}
}

func runMap(l Level, a *Map) {
	switch {
	case l >= AVX512:
		mapAVX512(a, l >= AMX)
	case l == AVX2 && a.Drop.Bits == nil:
		mapAVX2(a)
	default:
		mapGeneric(a)
	}
}

func runActGrad(l Level, a *ActGrad) {
	switch {
	case l >= AVX512:
		actGradAVX512(a, l >= AMX)
	case l == AVX2 && a.Drop.Bits == nil:
		actGradAVX2(a)
	default:
		actGradGeneric(a)
	}
}

func runDot(l Level, a *Dot)       { run(l, a, dotAVX512, dotAVX2, dotGeneric) }
func runFinite(l Level, a *Finite) { run(l, a, finiteAVX512, finiteAVX2, finiteGeneric) }
func runColumnSums(l Level, a *ColumnSums) {
	run(l, a, columnSumsAVX512, columnSumsAVX2, columnSumsGeneric)
}
func runNormGrad(l Level, a *NormGrad) {
	runRounding(l, a, normGradAVX512, normGradAVX2, normGradGeneric)
}
func runLayerGrad(l Level, a *LayerGrad) {
	runRounding(l, a, layerGradAVX512, layerGradAVX2, layerGradGeneric)
}
func runSoftmax(l Level, a *Softmax) { runRounding(l, a, softmaxAVX512, softmaxAVX2, softmaxGeneric) }
func runArgmax(l Level, a *Argmax)   { run(l, a, argmaxAVX512, argmaxAVX2, argmaxGeneric) }
func runBCE(l Level, a *BCE)         { runRounding(l, a, bceAVX512, bceAVX2, bceGeneric) }
func runAdam(l Level, a *Adam)       { run(l, a, adamAVX512, adamAVX2, adamGeneric) }
func runSGD(l Level, a *SGD)         { run(l, a, sgdAVX512, sgdAVX2, sgdGeneric) }

func runKept(l Level, a *Kept) {
	if l >= AVX512 {
		keptAVX512(a)
	} else {
		keptGeneric(a)
	}
}

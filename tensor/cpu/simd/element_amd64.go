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

func runDot(l Level, a *Dot) {
	switch {
	case l >= AVX512:
		dotAVX512(a)
	case l == AVX2:
		dotAVX2(a)
	default:
		dotGeneric(a)
	}
}

func runFinite(l Level, a *Finite) {
	switch {
	case l >= AVX512:
		finiteAVX512(a)
	case l == AVX2:
		finiteAVX2(a)
	default:
		finiteGeneric(a)
	}
}

func runColumnSums(l Level, a *ColumnSums) {
	switch {
	case l >= AVX512:
		columnSumsAVX512(a)
	case l == AVX2:
		columnSumsAVX2(a)
	default:
		columnSumsGeneric(a)
	}
}

func runNormGrad(l Level, a *NormGrad) {
	switch {
	case l >= AVX512:
		normGradAVX512(a, l >= AMX)
	case l == AVX2:
		normGradAVX2(a)
	default:
		normGradGeneric(a)
	}
}

func runLayerGrad(l Level, a *LayerGrad) {
	switch {
	case l >= AVX512:
		layerGradAVX512(a, l >= AMX)
	case l == AVX2:
		layerGradAVX2(a)
	default:
		layerGradGeneric(a)
	}
}

func runSoftmax(l Level, a *Softmax) {
	switch {
	case l >= AVX512:
		softmaxAVX512(a, l >= AMX)
	case l == AVX2:
		softmaxAVX2(a)
	default:
		softmaxGeneric(a)
	}
}

func runArgmax(l Level, a *Argmax) {
	switch {
	case l >= AVX512:
		argmaxAVX512(a)
	case l == AVX2:
		argmaxAVX2(a)
	default:
		argmaxGeneric(a)
	}
}

func runBCE(l Level, a *BCE) {
	switch {
	case l >= AVX512:
		bceAVX512(a, l >= AMX)
	case l == AVX2:
		bceAVX2(a)
	default:
		bceGeneric(a)
	}
}

func runAdam(l Level, a *Adam) {
	switch {
	case l >= AVX512:
		adamAVX512(a)
	case l == AVX2:
		adamAVX2(a)
	default:
		adamGeneric(a)
	}
}

func runSGD(l Level, a *SGD) {
	switch {
	case l >= AVX512:
		sgdAVX512(a)
	case l == AVX2:
		sgdAVX2(a)
	default:
		sgdGeneric(a)
	}
}

func runKept(l Level, a *Kept) {
	if l >= AVX512 {
		keptAVX512(a)
	} else {
		keptGeneric(a)
	}
}

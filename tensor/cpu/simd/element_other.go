//go:build !amd64

package simd

func runMap(_ Level, m *Map)               { mapGeneric(m) }
func runActGrad(_ Level, g *ActGrad)       { actGradGeneric(g) }
func runKept(_ Level, k *Kept)             { keptGeneric(k) }
func runDot(_ Level, d *Dot)               { dotGeneric(d) }
func runFinite(_ Level, f *Finite)         { finiteGeneric(f) }
func runColumnSums(_ Level, s *ColumnSums) { columnSumsGeneric(s) }
func runNormGrad(_ Level, g *NormGrad)     { normGradGeneric(g) }
func runLayerGrad(_ Level, g *LayerGrad)   { layerGradGeneric(g) }
func runSoftmax(_ Level, s *Softmax)       { softmaxGeneric(s) }
func runArgmax(_ Level, a *Argmax)         { argmaxGeneric(a) }
func runBCE(_ Level, b *BCE)               { bceGeneric(b) }
func runAdam(_ Level, a *Adam)             { adamGeneric(a) }
func runSGD(_ Level, s *SGD)               { sgdGeneric(s) }
func clearLines(*byte, int)                { panic("simd: no vectors to clear with") }

func logSumFast(_ *logSums, _, _ *float32, _ int) { panic("simd: no vectors") }

// StoreFence has nothing to wait for: nothing goes by non-temporal stores.
func StoreFence() {}

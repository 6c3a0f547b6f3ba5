package simd

func aggregateFast(level Level, a *RowSums) bool           { return false }
func attendFast(level Level, a *Attention) bool            { return false }
func attendGradFast(level Level, a *AttentionGrad) bool    { return false }
func packAttentionFast(level Level, a *AttentionPack) bool { return false }

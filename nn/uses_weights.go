package nn

// UsesWeights reports whether a model multiplies what comes over an edge by the edge's weight. GIN
// with features of edges does not.
func UsesWeights(model string, edgeDim int) bool {
	switch model {
	case "gcn", "sage", "resgcn+", "ressage+":
		return true
	case "gin":
		return edgeDim == 0
	}
	return false
}

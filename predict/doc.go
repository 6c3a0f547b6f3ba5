// Package predict uses a trained model: it predicts for a dataset or the parts of one, answers requests, and
// writes the model for other libraries.
//
// A reader finds, in this order:
//
//	predict, pairs  predictions for all vertices, and scores of pairs
//	parts           the same on one worker per part
//	serve           answers to HTTP requests
//	export          a model for PyG or DGL
package predict

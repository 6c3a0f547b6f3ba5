// Package predict uses a trained model: it predicts for a dataset or the parts of one, answers requests, and
// writes the model for other libraries.
//
// A reader finds, in this order:
//
//	options         what to predict, and where to
//	predicted       what was predicted, as files and in words
//	pairs           scores of pairs of vertices
//	candidates      where pairs rank among the candidates of a file
//	parts           predictions on one worker per part
//	shards          and left where their owners are
//	predict         the command
//	serve           answers to HTTP requests
//	tables          a dataset of new tables, as the run's was made
//	added           new vertices of a typed graph
//	explain         what a prediction is due to, in words
//	explain_page    and as a page with pictures
//	export          a model for PyG or DGL
package predict

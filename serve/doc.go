// Package serve is what happens to a model after training: predictions for the
// vertices of a graph, export to the names and layouts that Python libraries load,
// and an HTTP server that answers for one vertex at a time.
//
// A run's folder, written by starling train --out, has two files:
//
//	config.json         "format": "starling-run", "version": 1, the model's settings
//	model.safetensors   weights and running statistics, under PyG's names
//
// Everything is told in a dataset's own vertex ids. Row v of every array is the
// dataset's vertex v, whose name before import is graph.Dataset.ID(v).
//
// Prediction is one forward pass over the whole graph with all neighbours, as
// evaluation in training is. Embeddings are the input of the model's last layer.
package serve

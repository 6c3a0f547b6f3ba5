// Package serve uses a trained model: predictions for the
// vertices of a graph, export to the names and layouts that Python libraries load,
// and an HTTP server for predictions of single vertices and pairs.
//
// A run's folder, written by starling train --out, has two files:
//
//	config.json         "format": "starling-run", "version": 1, the model's settings
//	model.safetensors   weights and running statistics, under PyG's names
//
// Vertices are identified as in the dataset. Row v of every array is the
// dataset's vertex v, whose name before import is graph.Dataset.ID(v).
//
// Prediction is one forward pass over the whole graph with all neighbours, as
// evaluation in training is. Embeddings are the input of the model's last layer.
package serve

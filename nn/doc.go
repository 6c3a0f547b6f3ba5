// Package nn holds the models: layers with explicit backward passes, losses,
// optimisers, schedules, and the names under which weights are saved.
//
// # A layer is two steps
//
// Every message-passing layer transforms rows (dense) and aggregates them over
// edges (sparse), in whichever order costs less. Between the two stands an
// Aggregator: it is given the rows a layer sends and returns the sums, or the
// attention, over each vertex's neighbours. On one machine it is Local. On many
// it is a distributed strategy, which provides the rows, or the sums, of vertices
// that live elsewhere. Layers do not know which.
//
//	x ──Send──▶ messages ──Aggregator──▶ sums ──Finish──▶ y
//
// Send and Finish work on any range of rows, so that a strategy may run them in
// pieces while other rows are still travelling.
//
// # Rows in, rows out
//
// A layer's input may have more rows than its output: the outputs' vertices come
// first, then those that are only sources. On a whole graph the two are the same.
//
// # Numbers
//
// Layers reach numbers only through tensor.Device. The same layer runs on the
// CPU, on a GPU, and in float64 on the reference device that tests use.
package nn

// Package worker is one worker of a run: how it finds the run and joins it, what it is told, how it trains
// or predicts on its part, and what it ends with.
//
// A reader finds, in this order:
//
//	worker              a worker that is a process: join, work, and join again after a failure
//	join, paths         how it joins a run and connects with its peers
//	task                what it is told, and training as one rank
//	infer               predicting as one rank
//	gpus, processors    what workers of one host share
//	share, cpu          what it ends with, and the result that all shares make
package worker

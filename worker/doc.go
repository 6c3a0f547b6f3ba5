// Package worker is one worker of a run: how it finds the run and joins it, what it has to do, how it trains
// or predicts on its part, and what it ends with.
//
// A reader finds, in this order:
//
//	spec                    what a worker is started with, and the statuses that it exits with
//	gpus, processors        what workers of one host share
//	paths, links            the paths to its peers, and notes of those that are lost
//	join, leave             how it joins a run, connects with its peers, and ends the connections
//	task                    what it has to do
//	share                   what it ends with, and the result that all shares make
//	infer, work             predicting and training as one rank
//	worker                  a worker that is a process: join, work, and join again after a failure
package worker

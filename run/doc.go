// Package run joins everything: a spec says what to do, Train does it with the dataset, the
// device, the training loop, the checkpoints and the listeners, and returns a report.
//
// A reader finds, in this order:
//
//	prepare, plan, dry_run      what is checked and planned before the first epoch
//	train, pairs                one worker
//	cluster, goroutines,        several workers: in this process, or as processes that are
//	processes, keeper           restarted from the newest state
//	worker, join, task          the other side: one of them
//	launcher, rendezvous,       how workers that others start, or that are on other hosts, find
//	hosts                       the run
//	checkpoint, resume, state   the state of a run, on disk and between processes
//	compare, partition          the other commands that train or plan
//	data, get, info, predict,   the commands around training
//	export, serve, certs
//
// run/watch shows a run while it trains.
package run

import (
	_ "starling/train/full" // registers the full-graph strategies
	_ "starling/train/mini" // registers the mini-batch strategies
)

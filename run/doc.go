// Package run joins the rooms below it into what commands call: a spec says what to do, Train does it and
// returns a report.
//
// A reader finds, in this order:
//
//	prepare                     one worker: what is checked and planned before the first epoch
//	events, outputs             who hears of it: files, pages
//	model_folder, held_out      what a run writes at its end
//	auto                        --strategy auto: plan, try, and learn from the run
//	train, dry                  one worker, or several by package supervise; a dry run of them
//	compare, sweep, tune        many runs
//	data, table, schema         datasets, from tables too
//	processes                   several processes that make one dataset, or one partition
//	partition                   partitions
//	certs, switch               certificates, and a switch that adds
//	commands                    what commands call of other rooms as it is
//	view, view_runs, exit, interrupted   what commands show, the status they end with, and how an interrupted run goes on
package run

import (
	_ "starling/train/full" // registers the full-graph strategies
	_ "starling/train/mini" // registers the mini-batch strategies
)

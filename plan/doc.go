// Package plan says before a run what it will take: memory and bytes of one run, found by a dry run of its
// training loop, and of all strategies with their options, which it ranks by the time of an epoch.
//
// A reader finds, in this order:
//
//	dry_run, plan               one worker: its memory, by a dry run
//	count, dry_run_workers,     several workers: the memory of each, what they send, what they compute
//	workers
//	gpu, batched                what fits a GPU, and mini-batches where the full batch does not fit
//	options, rank, table,       what to plan every strategy for, the ranking, and how it is shown
//	requests, page
//	planner                     the candidates on one partition, and what is known of it
//	links, rates, flows         how fast this machine and its links are
//	cache, demand               what an epoch of a candidate computes and sends
//	ways, choose                the ways to compute and send, and all of it together
//	whatif                      graphs and clusters that are not at hand
package plan

// Package plan says before a run what it will take: memory and bytes of one run, found by a dry run of its
// training loop, and of all strategies with their options, which it ranks by the time of an epoch.
//
// A reader finds, in this order:
//
//	plan, dry_device,           one worker: its memory, by a dry run
//	dry_run
//	workers, dry_run_workers,   several workers: the memory of each, what they send, what they compute
//	count
//	gpu, batched                what fits a GPU, and mini-batches where the full batch does not fit
//	planner, table              every strategy: candidates, their predictions, the ranking
//	demand, messages, cache     what an epoch of a candidate computes and sends
//	rates, links, flows, ways   how fast this machine and its links are, and ways to compute and send
//	whatif                      graphs and clusters that are not at hand
package plan

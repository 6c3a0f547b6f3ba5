// Package supervise runs the workers of a run, as goroutines or as processes on one or many hosts, keeps their
// newest state, and starts lost ones again from it.
//
// A reader finds, in this order:
//
//	run                 a run of several workers: what is checked and planned before they start
//	rendezvous,         where workers that others start find the run
//	launcher, hosts
//	keeper              the newest state of all workers, in memory and on disk
//	goroutines          workers in this process
//	processes, fault    workers in processes of their own, which are restarted when they are lost
//	watched, chosen     what users see of a run, and what it chose by itself
//	result, report      what it ends with
package supervise

// Package supervise runs the workers of a run, as goroutines or as processes on one or many hosts, keeps their
// newest state, and starts lost ones again from it.
//
// A reader finds, in this order:
//
//	rendezvous, launcher    where workers that others start find the run
//	run                     a run of several workers, and what it chooses by itself
//	hosts, prepare          what is checked and planned before they start
//	keeper                  the newest state of all workers, in memory and on disk
//	goroutines              workers in this process
//	publish                 how others find the run, and what users see of it
//	fault, processes        workers in processes of their own, which are restarted when they are lost
//	result, report          what the run ends with
package supervise

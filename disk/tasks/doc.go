// Package tasks is work that several processes share through a folder: stages of numbered tasks, each done by one
// process, once. There is no coordinator. Every process runs the same program over the same folder, takes the tasks
// that no other has, and waits where the next stage needs what others still do; so processes may join, and be killed,
// at any time, on any host that sees the folder and honours its file locks (flock).
//
//	plan.json               what the work is; a folder of other work is refused
//	STAGE/00007/            what task 7 has made, complete: filled under another name, synced, renamed
//	STAGE/00007/result.json its result, and size and CRC-32C of each of its files
//	STAGE/00007.lock        locked by the process that does the task, which touches it as a sign of life
//	STAGE.done              all tasks of the stage are done
//	members/                a locked file of every process that reads the folder, which is not removed meanwhile
//	arrived/                a file of every task of a launcher that has joined; rank 0 waits for all
//	overwrite               what is at the target may be replaced
//
// A task is a function of the plan and of the results of earlier stages, never of who does it. So the results are the
// same for any number of processes, and after any number of them were killed.
package tasks

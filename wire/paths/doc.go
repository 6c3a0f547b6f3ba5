// Package paths describes the ways by which a request can go, and chooses one for each: LEO (Zhang, "Communication
// efficient distributed training systems", ch. 6).
//
// A file (YAML, see Parse) has three parts. The hardware of a host: compute nodes with a parallel capacity and a delay,
// and the links between them, in one of the models direct, on-path, off-path or custom. The paths: the stops that a
// request makes at the requester and at the responder; the links between two stops follow from the hardware. The
// requests of an application: for each type the paths it may take, the bytes on each hop, the compute time at each
// stop, and what depends on what.
//
//	requester                                responder
//	cpu ──link── nic ══════ network ══════ nic ──link── cpu
//	              └──link── acc                └──link── acc
//
// Before a run, NewPlan computes for every type r and path p (c: nodes, l: links inside hosts, S: bytes)
//
//	base T(p, r) = sum over l of (latency + S/bandwidth) + sum over c of (delay + compute time)
//	toll Q(p, r) = sum over l of S/bandwidth             + sum over c of compute time / capacity
//
// During a run a Policy chooses. NewLEO takes the path with the least k·toll + base (6.5), where k counts for each path
// how many requests in a row were slower than base, up to those under way (NewLEOStreak: beyond); NewLEOQueue, which runs
// use, estimates the queue instead. Beside them stand the exact optimum over the next requests (6.1 to 6.4), two greedy
// policies, one path, round-robin and random choice. All are pure: time is an argument, in seconds, and a Trace of
// arrivals replays the same choices (Replay).
//
// A Selector adds the request state table to a policy: requests that depend on one in progress keep its path.
package paths

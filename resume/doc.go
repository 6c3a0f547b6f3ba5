// Package resume is what a run starts from and what it leaves to be continued: the state of training, on
// disk and between processes, and the identity of the data that it is of.
//
// A reader finds, in this order:
//
//	identity            which data a run was trained on
//	resume              a state and its history, to a checkpoint and back
//	check               which values a checkpoint may have
//	learnt              rows of vertices that are learnt
//	checkpoint          when checkpoints are written, and who may write them
//	init_from           what a run starts from: its checkpoint, another run's weights, or nothing
//	state               a state as workers send it
package resume

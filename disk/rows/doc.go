// Package rows reads rows of files that are larger than memory before they are needed. It is for readers that know
// their future: which rows each of the coming batches needs is a pure function (Options.Draw), so that nothing has
// to be guessed. DiskGNN (2025) packs the rows of a batch together in a pass before training; here that pass is
// part of the run, a window of batches at a time.
//
//	planner   draws the batches of a window, in parallel; Belady's rule over the window says which of their rows
//	          are in memory when a batch needs them, and which are read (plan.go); then it chooses, by bytes and
//	          pieces:
//	  direct    the rows that some batches miss are read together, in ascending order, gaps included where a gap
//	            costs less than another piece (extents.go)
//	  packed    one ascending pass over the files for the whole window writes the rows that each batch misses to
//	            a place of its own in a file without a name, from where they come back in one piece (pack.go)
//	reader    brings the rows of batches, in order, as far ahead as its buffers reach (reader.go)
//	Feed      joins rows that were kept and rows that were read to those of a batch (feed.go)
//
// Pieces go through io_uring, or through threads where the system has none (engine.go), past the page cache where
// the file system allows that (O_DIRECT), so that pages of the graph stay. The file of packed rows has no name:
// nothing is left of it when the process ends, however it ends.
//
// Rows are bytes, and a batch has the same ones however they came.
package rows

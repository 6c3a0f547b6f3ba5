// Package table reads tables by columns: text (CSV, TSV; gzip or not), Parquet and npy; a file, a glob or a folder of
// shards.
//
//	t, err := table.Open(table.Options{}, "papers*.parquet")
//	t.Columns  // names and kinds, from the heads of the files
//	t.Read([]table.Want{{"pid", table.ID}, {"emb", table.Vector}}, func(b *table.Batch) error { … })
//
// Read streams batches of rows, shard by shard in natural order, and holds one batch. It converts cells to what is
// wanted; one that does not convert is an error that names file, line and column.
//
//	text     columns are called by the header, if the first line is one (header.go), else 1, 2, …
//	parquet  scalars, text, and lists of numbers, which are vectors
//	npy      one column, called as the file; a vector per row if the array has two dimensions
//
// What package dataset's importers share with these readers is here too: TextFile, Parquet, Array.
package table

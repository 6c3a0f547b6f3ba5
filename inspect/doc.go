// Package inspect says what is there: in a dataset, in a partition, on a host and on the networks between
// hosts.
//
// A reader finds, in this order:
//
//	estimate                what training on a dataset would take here
//	info, ranges            what a dataset has, and what is doubtful about it
//	columns, advice         its columns one by one, and what is recommended for them
//	typed                   its types and relations
//	dataset, page           all of it, in words and as a page
//	locality, parts         what a partition has, and how local batches are on it
//	devices                 what a host computes with
//	paths, probe            the networks of a host, and those between two
package inspect

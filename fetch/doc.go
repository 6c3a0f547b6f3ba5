// Package fetch downloads public datasets and imports them.
//
// A reader finds, in this order:
//
//	sets        the datasets: their files, where they are, and how they are imported
//	offline     what to do without a network
//	download    one file: continued where it was cut off, bounded, checked
//	options     where a dataset comes from and goes to
//	get         the command: download, unpack, import, or make what needs no network
package fetch

// Package fetch downloads public datasets and imports them.
//
// A reader finds, in this order:
//
//	sets        the datasets: their files, where they are, and how they are imported
//	download    one file: continued where it was cut off, bounded, checked
//	offline     what to do without a network
//	demo        the dataset that needs none
//	get         the command: download, unpack, import
package fetch

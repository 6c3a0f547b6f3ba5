// Package simulate runs what starling simulate does: training over a simulated network, in virtual time, and
// the networks' own case studies.
//
// A reader finds, in this order:
//
//	table, page,    strategies that train a real graph over simulated links
//	train
//	events          what their workers do, as files
//	rates           what computing is charged by, measured once
//	paths           which of several links requests take
//	llm             how transfers of language models are scheduled
package simulate

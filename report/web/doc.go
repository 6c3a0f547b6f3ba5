// Package web shows runs on a page while they go on: what they learn, what each worker does and whom it waits for,
// which bytes are sent, and what happened. The page is served to browsers, and saved as one file.
//
//	events ─▶ Run ─▶ panels (package chart) ─▶ Server ─▶ browsers: HTML, then changed panels as server-sent events
//	                                      └──▶ Page: one file without any outside reference
//
// A Run is a listener: it takes in events, of a run of this process or from a file, and keeps of them what fits a
// bounded memory. Nothing here holds up the run: an event is added to some numbers, panels are drawn on a goroutine
// that rests 50 times as long as it draws, and a browser that does not read misses updates, as each has no queue but
// the number of the last one that it was sent.
package web

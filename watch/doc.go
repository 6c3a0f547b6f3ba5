// Package watch shows a run while it trains: each worker's Reporter knows what the worker does,
// the run's Watcher collects what reporters say and tells of stalls, and Top and Prometheus
// metrics show it to users. A Meter sums up what a worker waited for and sent.
package watch

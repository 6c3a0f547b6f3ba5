// Package dataset imports files that users already have as dataset folders (see package
// graph), one file per format. Package generate draws graphs instead.
//
// Import is the entry. It writes the folder through graph.Writer, so it appears complete or
// not at all, and returns a Summary.
package dataset

// Package dataset makes dataset folders (see package graph): importers read the
// files users already have, generators draw graphs of a chosen shape.
//
// Import and Generate are the two entries. Both write the folder through
// graph.Writer, so it appears complete or not at all, and both return a Summary.
//
// Generated data is a pure function of the parameters: every edge, label,
// feature and split is drawn under a key made of the seed and its own index, so
// the same seed gives the same bytes on any number of cores. Edges are never held
// as a list: the builder asks for them twice, once to count and once to place.
package dataset

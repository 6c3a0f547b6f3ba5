// Package schema imports typed graphs: a schema says which tables have the vertices and edges of each type, and what
// becomes of their columns.
//
//	nodes:
//	  paper:  {files: papers*.parquet, id: pid, features: [emb, {col: year, standardize: true}], label: venue,
//	           split: part}
//	  author: {files: authors.csv, id: aid}
//	edges:
//	  - {type: [author, writes, paper], files: writes.csv, src: aid, dst: pid, reverse: written_by}
//
// Read parses one from YAML (yaml.go), from GraphStorm's JSON (graphstorm.go) or finds it in a folder of OGB
// (ogb.go) or DGL (dgl.go, dgl_chunks.go).
// Schema.Plan opens the tables, by their heads, and checks every name; a Plan says what each column becomes, and
// Plan.Import writes the dataset folder. Tables are streamed by package table, features go from there to the disk, and
// edges through graph.Sorter: memory is for ids, classes and words.
//
// The vertices of a type are in the order of its rows.
package schema

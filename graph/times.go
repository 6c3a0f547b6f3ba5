package graph

import (
	"fmt"
	"math"
	"path/filepath"
	"time"

	"starling/event"
)

// Edges and vertices may have times: of an edge when it came to be, of a vertex when its row was known.
//
//	edge_times.npy  int64 [edges]  in the order of indices.npy
//	times.npy       int64 [nodes]  NoTime for vertices that have none; in a typed graph over the one id space
//
// Times are seconds since 1970 (UTC) if meta.json has dates, else plain whole numbers, such as years or steps. Either
// file may be added to a folder later.

const (
	edgeTimesFile = "edge_times.npy"
	timesFile     = "times.npy"
)

// NoTime is the time of a vertex that has none: it was there before all others. It is numpy's NaT.
const NoTime = math.MinInt64

// MaxTime bounds times on both sides, so that differences of two fit.
const MaxTime = 1 << 62

// loadTimes maps the times of vertices, if there are any.
func (d *Dataset) loadTimes() (err error) {
	if !d.hasFile(timesFile) {
		return nil
	}
	d.Times, err = array[int64](d, timesFile, d.Meta.Nodes)
	return err
}

// loadEdgeTimes maps the times of edges, if there are any.
func (d *Dataset) loadEdgeTimes() (err error) {
	if !d.hasFile(edgeTimesFile) {
		return nil
	}
	d.Graph.EdgeTimes, err = array[int64](d, edgeTimesFile, d.Meta.Edges)
	return err
}

// checkTimes checks the values of all times, or of those that are small or were added to the folder later.
func (d *Dataset) checkTimes(all bool) error {
	check := func(file string, times []int64, none bool) error {
		if _, listed := d.Meta.Arrays[file]; listed && !all && 8*int64(len(times)) > SmallArray {
			return nil
		}
		return d.named(checkTimes(file[:len(file)-len(".npy")], times, none))
	}
	if err := check(edgeTimesFile, d.Graph.EdgeTimes, false); err != nil {
		return err
	}
	return check(timesFile, d.Times, true)
}

// checkTimes refuses times that are too far away, and those that are missing unless none may be.
func checkTimes(field string, times []int64, none bool) error {
	return parallelErr(int64(len(times)), 1<<18, func(lo, hi int64) error {
		for i, t := range times[lo:hi] {
			if (t < -MaxTime || t > MaxTime) && !(none && t == NoTime) {
				found := fmt.Sprintf("%d at position %d", t, lo+int64(i))
				if t == NoTime {
					found = fmt.Sprintf("no time at position %d", lo+int64(i))
				}
				return &InputError{Field: field, Found: found, Want: "-2^62 to 2^62", Fix: "correct it in the source and import it again"}
			}
		}
		return nil
	})
}

// checkEdgeTimes checks that there is one time per edge, or none.
func (g *CSR) checkEdgeTimes() error {
	if g.EdgeTimes == nil || len(g.EdgeTimes) == len(g.Indices) {
		return nil
	}
	return &InputError{Field: "edge_times", Found: event.Tally(len(g.EdgeTimes), "time"),
		Want: fmt.Sprintf("one per edge (%d)", len(g.Indices)), Fix: "write the file again from its source"}
}

// VertexTime is the time of a vertex, NoTime if it has none.
func (d *Dataset) VertexTime(v uint32) int64 {
	if d.Times == nil {
		return NoTime
	}
	return d.Times[v]
}

// TimeText writes a time of the dataset for people.
func (m *Meta) TimeText(t int64) string {
	switch {
	case t == NoTime:
		return "no time"
	case !m.Dates || t < -1<<36 || t > 1<<38: // outside, years have five digits and more
		return fmt.Sprint(t)
	}
	when := time.Unix(t, 0).UTC()
	if t%86400 == 0 {
		return when.Format(time.DateOnly)
	}
	return when.Format(time.RFC3339)
}

// EdgeTimes writes a time per edge, in the order of the graph's edges, which are written before.
func (w *Writer) EdgeTimes(times []int64) error {
	if err := checkTimes("edge_times", times, false); err != nil {
		return inFile(filepath.Join(w.dir, edgeTimesFile), err)
	}
	return writeArray(w, edgeTimesFile, times)
}

// Times writes a time per vertex; NoTime where there is none.
func (w *Writer) Times(times []int64) error {
	if err := checkTimes("times", times, true); err != nil {
		return inFile(filepath.Join(w.dir, timesFile), err)
	}
	return writeArray(w, timesFile, times)
}

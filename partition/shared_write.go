package partition

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"time"

	"starling/disk/tasks"
	"starling/graph"
)

// What each part needs of others, and its folder: stages halo and write of a partition by several processes (shared.go).

// halo lists the remote vertices of each part.
func (s *sharedJob) halo() error {
	if err := s.numberVertices(); err != nil {
		return err
	}
	if err := s.f.Do(s.ctx, "halo", s.k, func(k int, out *tasks.Out) (any, error) {
		r, err := s.f.Open("gather", k, "sources")
		if err != nil {
			return nil, err
		}
		defer r.Close()
		seen, n := newBits(len(s.number)), 0
		buf := make([]uint32, 1<<14)
		for left := s.q.Edges[k]; left > 0; {
			some := buf[:min(left, int64(len(buf)))]
			if _, err := io.ReadFull(r, bytesOf(some)); err != nil {
				return nil, err
			}
			for _, u := range some {
				if int(s.parts[u]) != k && seen.set(s.number[u]) {
					n++
				}
			}
			left -= int64(len(some))
		}
		list := seen.list(make([]uint32, 0, n))
		row := make([]int64, s.k)
		for q := range s.k {
			row[q] = int64(within(list, s.offsets[q+1]) - within(list, s.offsets[q]))
		}
		w, err := out.Create("halo")
		if err == nil {
			_, err = w.Write(bytesOf(list))
		}
		return row, err
	}); err != nil {
		return err
	}
	for k := range s.k {
		if err := s.f.Result("halo", k, &s.q.Traffic[k]); err != nil {
			return err
		}
		for _, n := range s.q.Traffic[k] {
			s.q.Remote[k] += n
		}
		s.q.CommVolume += s.q.Remote[k]
	}
	return nil
}

// numberVertices reads the orders of all parts.
func (s *sharedJob) numberVertices() error {
	if s.f.Done("write") {
		return nil // and they may be gone
	}
	n := s.d.Graph.Nodes()
	s.order, s.number = make([]uint32, n), make([]uint32, n)
	for k := range s.k {
		r, err := s.f.Open("gather", k, "order")
		if err != nil {
			return err
		}
		_, err = io.ReadFull(r, bytesOf(s.order[s.offsets[k]:s.offsets[k+1]]))
		r.Close()
		if err != nil {
			return err
		}
	}
	for i, v := range s.order {
		s.number[v] = uint32(i)
	}
	return nil
}

// write writes the parts.
func (s *sharedJob) write() error {
	if err := s.f.Do(s.ctx, "identify", 1, func(int, *tasks.Out) (any, error) { return identify(s.d, s.parts, s.k), nil }); err != nil {
		return err
	}
	var id string
	if err := s.f.Result("identify", 0, &id); err != nil {
		return err
	}
	w := &folderWriter{d: s.d, parts: s.parts, number: s.number, order: s.order}
	w.book = bookOf(s.d, s.k, s.q, WriteOptions{Servers: s.opt.Servers, Method: s.opt.Method, Seed: s.p.Seed})
	w.book.ID, w.book.Offsets = id, s.offsets
	w.markSplits()
	var ranks *ranks
	if err := s.f.Do(s.ctx, "write", s.k, func(k int, out *tasks.Out) (any, error) {
		if w.halos == nil {
			if err := s.mapHalos(w); err != nil {
				return nil, err
			}
			ranks = newRanks(len(s.parts))
		}
		return nil, s.writePart(w, k, ranks, out.Dir)
	}); err != nil {
		return err
	}
	if s.opt.Shared.Role.Helper {
		return nil
	}
	out := filepath.Join(s.f.Dir, "partition")
	return s.f.Finish(s.ctx, func() error { return s.publish(out, &w.book) })
}

// mapHalos maps the halos of all parts, and loads the degrees that gcn divides by.
func (s *sharedJob) mapHalos(w *folderWriter) error {
	w.halos = make([][]uint32, s.k)
	for k := range s.k {
		w.halos[k] = make([]uint32, s.q.Remote[k])
		if err := s.readAt("halo", k, "halo", bytesOf(w.halos[k]), 0); err != nil {
			return err
		}
	}
	if s.d.Graph.Weights == nil && !s.loops {
		return nil
	}
	w.gcn = make([]float64, len(s.parts))
	var one [8]byte
	for k := range s.k {
		r, err := s.f.Open("gather", k, "gcn")
		if err != nil {
			return err
		}
		for i := s.offsets[k]; i < s.offsets[k+1] && err == nil; i++ {
			_, err = io.ReadFull(r, one[:])
			w.gcn[s.order[i]] = math.Float64frombits(binary.LittleEndian.Uint64(one[:]))
		}
		r.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// writePart writes the folder of a part from its rows.
func (s *sharedJob) writePart(w *folderWriter, k int, r *ranks, dir string) error {
	core := s.coreOf(k)
	own := newRanks(len(s.parts))
	own.of(core)
	g := &graph.CSR{Indptr: make([]int64, len(core)+1), Indices: make([]uint32, s.q.Edges[k])}
	for i, v := range core {
		g.Indptr[i+1] = g.Indptr[i] + int64(s.d.Graph.Degree(v))
	}
	if err := s.readAt("gather", k, "sources", bytesOf(g.Indices), 0); err != nil {
		return err
	}
	r.of(w.halos[k])
	p := partWriter{all: w, k: k, ranks: r, out: graph.NewFolderWriter(dir), rows: g, at: own.rank}
	return p.write(s.ctx, filepath.Join(dir, partFile))
}

// publish puts the folder of the partition together and renames it.
func (s *sharedJob) publish(dir string, book *Book) error {
	out := filepath.Clean(s.opt.Out)
	if b, err := OpenBook(out); err == nil && b.ID == book.ID { // a process that was killed has done it
		if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
			return nil
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	for k := range s.k {
		to := filepath.Join(dir, fmt.Sprintf("part%d", k))
		if _, err := os.Stat(to); err == nil {
			continue
		}
		from := filepath.Join(s.f.Dir, "write", fmt.Sprintf("%05d", k))
		if err := cmp.Or(os.RemoveAll(filepath.Join(from, "result.json")), os.Rename(from, to)); err != nil {
			return err
		}
	}
	if err := writeSealed(filepath.Join(dir, bookFile), book, &book.CRC32C); err != nil {
		return err
	}
	text, err := json.Marshal(s.plan)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, settingsFile), text, 0o666)
	}
	if err != nil {
		return err
	}
	if _, err := os.Lstat(out); err == nil {
		if err := free(out, bookFile, s.f.Overwrites()); err != nil {
			return err
		}
		if err := os.Rename(out, filepath.Join(s.f.Dir, "replaced")); err != nil {
			return err
		}
	}
	return os.Rename(dir, out)
}

// reportShared is the report, as one process has it.
func (s *sharedJob) reportShared() (*Report, error) {
	var err error
	if s.all, err = ParseConstraints(s.everything(), s.d); err != nil {
		return nil, err
	}
	s.q.Balance = balances(s.parts, s.k, s.all)
	s.report(s.seconds)
	if s.failed != "" {
		s.r.Notes = append(s.r.Notes, s.failed)
	}
	if s.f.Absent != nil {
		s.r.Notes = append(s.r.Notes, s.f.WithoutRanks())
	}
	s.warnUneven()
	s.warnSmall()
	s.r.Plan = s.q.PlanFor(s.model)
	s.r.Plan.AddSampled(s.d.Graph, s.parts, s.d.Splits.Train, s.model, s.k, s.opt.Seed)
	s.r.Out, s.r.WriteSeconds = s.opt.Out, time.Since(s.begun).Seconds()-s.seconds
	if !s.opt.Verify {
		return s.r, nil
	}
	if err := VerifyAgainst(s.opt.Out, s.d); err != nil {
		return nil, fmt.Errorf("the partition was written but does not verify: %w", err)
	}
	s.r.Verified = true
	return s.r, nil
}

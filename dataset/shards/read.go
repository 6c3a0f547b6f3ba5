package shards

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"os"
	"unsafe"

	"starling/dataset"
	"starling/disk/tasks"
	"starling/event"
	"starling/graph"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// sumOf is a checksum of a plan.
func sumOf(p *plan) uint32 {
	text, err := json.Marshal(p)
	if err != nil {
		panic(err) // it is made of strings and numbers
	}
	return crc32.Checksum(text, castagnoli)
}

// readResult is what is known of a shard after stage read.
type readResult struct {
	Text      bool        // ids are names
	Edges     int64       // or rows of vertices
	Chunks    []chunkInfo `json:",omitempty"`
	KeysBytes int64
	Least     int64 // of ids that are numbers
	Most      int64
}

// chunkInfo is where a chunk is in the files of a shard.
type chunkInfo struct {
	Ends, IDs int
	KeysAt    int64
}

// read is stage read.
func (j *job) read() error {
	n := len(j.edges) + len(j.vertices)
	if err := j.f.Do(j.ctx, "read", n, func(k int, out *tasks.Out) (any, error) {
		if k >= len(j.edges) {
			return j.readVertices(k-len(j.edges), out)
		}
		return j.readEdges(k, out)
	}); err != nil {
		return err
	}
	j.counts = make([]readResult, n)
	for k := range n {
		if err := j.f.Result("read", k, &j.counts[k]); err != nil {
			return err
		}
	}
	if err := j.agree(); err != nil {
		return err
	}
	return j.differ()
}

// differ refuses a shard that is there twice, unless repeated edges are to be kept.
func (j *job) differ() error {
	if j.opt.KeepDuplicates {
		return nil
	}
	seen := map[string]int{}
	for k := range j.edges {
		if j.counts[k].Edges == 0 {
			continue
		}
		sums, err := j.f.Sums("read", k)
		if err != nil {
			return err
		}
		text := fmt.Sprint(sums["keys"], sums["ends"], sums["weights"])
		if other, twice := seen[text]; twice {
			return &graph.InputError{File: j.shard(k), Found: "the same edges as in " + j.shard(other), Want: "every shard once",
				Fix: "remove one of the two, or give --keep-duplicates if its edges are to count twice"}
		}
		seen[text] = k
	}
	return nil
}

// agree refuses shards whose ids are of different types, and ids that are not below Nodes.
func (j *job) agree() error {
	j.text = j.opt.IDs == "text"
	first, total := -1, int64(0)
	for k := range j.counts {
		c := &j.counts[k]
		if k < len(j.edges) {
			total += c.Edges
		}
		if c.Edges == 0 {
			continue
		}
		if first < 0 {
			first, j.text = k, c.Text
		}
		if c.Text != j.text {
			what := map[bool]string{false: "whole numbers", true: "names"}
			return &graph.InputError{File: j.shard(k), Field: "ids", Found: what[c.Text],
				Want: what[j.text] + ", as in " + j.shard(first),
				Fix:  "write the ids of all shards alike, or give --ids text if they are names, of which some look like numbers"}
		}
		if j.opt.Nodes > 0 && !c.Text && (c.Least < 0 || c.Most >= j.opt.Nodes) {
			worst := c.Most
			if c.Least < 0 {
				worst = c.Least
			}
			return &graph.InputError{File: j.shard(k), Field: "ids", Found: fmt.Sprint(worst),
				Want: fmt.Sprintf("0 to %d, as --nodes says", j.opt.Nodes-1), Fix: "give a larger --nodes or leave it out"}
		}
	}
	if total == 0 {
		return &graph.InputError{File: j.dir, Found: "no edges", Want: "a source and a target per line",
			Fix: "check that these are the right files"}
	}
	return nil
}

func (j *job) shard(k int) string {
	if k < len(j.edges) {
		return j.edges[k]
	}
	return j.vertices[k-len(j.edges)]
}

// unchanged refuses a shard that is not what it was when the work began.
func (j *job) unchanged(path string, s source) error {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return &graph.InputError{File: path, Found: "no such file", Want: "the shard that was there when the import began",
			Fix: "put it back to go on"}
	}
	if err != nil {
		return err
	}
	if info.Size() != s.Bytes || info.ModTime().UnixNano() != s.Time {
		return &graph.InputError{File: path, Found: "a shard that was written to while it was imported (" +
			event.Tally(info.Size(), "byte") + fmt.Sprintf(" after %d)", s.Bytes), Want: "it as it was",
			Fix: "begin again when all shards are complete"}
	}
	return nil
}

// shardWriter writes the chunks of a shard.
type shardWriter struct {
	result  readResult
	chunk   *chunk
	keys    keyWriter
	ends    *tasks.Writer
	weights *tasks.Writer
	flushed func() error // writes what else belongs to a chunk
}

func (j *job) newShardWriter(text bool, out *tasks.Out) (w *shardWriter, err error) {
	w = &shardWriter{chunk: newChunk(text, j.opt.Memory)}
	w.chunk.mostEnds = int(2 * edgesOfChunk(j.opt.Memory))
	w.result.Text, w.keys.text = text, text
	if w.keys.keys, err = out.Create("keys"); err != nil {
		return nil, err
	}
	if w.keys.index, err = out.Create("index"); err != nil {
		return nil, err
	}
	if w.ends, err = out.Create("ends"); err == nil && j.opt.Weights {
		w.weights, err = out.Create("weights")
	}
	return w, err
}

// flush writes the chunk.
func (w *shardWriter) flush() error {
	c := w.chunk
	if len(c.ends) == 0 {
		return nil
	}
	c.sort()
	if !c.text {
		least, most := c.pairs[0].id, c.pairs[len(c.pairs)-1].id
		if w.result.Chunks == nil {
			w.result.Least, w.result.Most = least, most
		}
		w.result.Least, w.result.Most = min(w.result.Least, least), max(w.result.Most, most)
	}
	w.result.Chunks = append(w.result.Chunks, chunkInfo{len(c.ends), c.n, w.keys.keys.Bytes()})
	w.keys.startRun()
	if err := c.eachKey(w.keys.put); err != nil {
		return err
	}
	if _, err := w.ends.Write(bytesOf(c.ends)); err != nil {
		return err
	}
	if w.weights != nil {
		if _, err := w.weights.Write(bytesOf(c.weights)); err != nil {
			return err
		}
	}
	if w.flushed != nil {
		if err := w.flushed(); err != nil {
			return err
		}
	}
	c.reset()
	return nil
}

func (w *shardWriter) finish() (readResult, error) {
	err := w.flush()
	w.result.KeysBytes = w.keys.keys.Bytes()
	return w.result, err
}

// bytesOf views numbers as the bytes of a little-endian file.
func bytesOf[T uint16 | uint32 | int32 | int64 | uint64 | float32](s []T) []byte {
	if len(s) == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&s[0])), len(s)*int(unsafe.Sizeof(s[0])))
}

// readEdges reads a shard of edges.
func (j *job) readEdges(k int, out *tasks.Out) (any, error) {
	from, path := j.plan.Edges[k], j.edges[k]
	if err := j.unchanged(path, from); err != nil {
		return nil, err
	}
	s, err := dataset.OpenEdgeShard(path, j.opt.ImportOptions)
	if err != nil {
		return nil, err
	}
	var result readResult
	if j.opt.IDs != "text" {
		if result, err = j.readNumbers(s, out); errors.Is(err, dataset.ErrNames) {
			if j.opt.IDs == "numbers" || j.opt.Nodes > 0 {
				return nil, &graph.InputError{File: path, Field: "ids", Found: "names", Want: "whole numbers",
					Fix: "leave --ids and --nodes out to have names numbered"}
			}
			if err = out.Clear(); err == nil {
				result, err = j.readNames(s, out)
			}
		}
	} else {
		result, err = j.readNames(s, out)
	}
	if err != nil {
		return nil, err
	}
	return result, j.unchanged(path, from)
}

func (j *job) readNumbers(s *dataset.EdgeShard, out *tasks.Out) (readResult, error) {
	w, err := j.newShardWriter(false, out)
	if err != nil {
		return readResult{}, err
	}
	if err := s.Numbers(func(src, dst []int64, weights []float32) error {
		if err := j.ctx.Err(); err != nil {
			return err
		}
		for i, u := range src {
			if w.chunk.full(0) {
				if err := w.flush(); err != nil {
					return err
				}
			}
			x := w.chunk.number(u)
			y := w.chunk.number(dst[i])
			w.chunk.ends = append(w.chunk.ends, x, y)
			if weights != nil {
				w.chunk.weights = append(w.chunk.weights, weights[i])
			}
		}
		w.result.Edges += int64(len(src))
		return nil
	}); err != nil {
		return readResult{}, err
	}
	return w.finish()
}

func (j *job) readNames(s *dataset.EdgeShard, out *tasks.Out) (readResult, error) {
	w, err := j.newShardWriter(true, out)
	if err != nil {
		return readResult{}, err
	}
	if err := s.Names(func(src, dst []byte, weight float32) error {
		if w.chunk.full(len(src) + len(dst)) {
			if err := errors.Join(j.ctx.Err(), w.flush()); err != nil {
				return err
			}
		}
		x := w.chunk.name(src)
		y := w.chunk.name(dst)
		w.chunk.ends = append(w.chunk.ends, x, y)
		if w.weights != nil {
			w.chunk.weights = append(w.chunk.weights, weight)
		}
		w.result.Edges++
		return nil
	}); err != nil {
		return readResult{}, err
	}
	return w.finish()
}

func getUint32s(b []byte, n int) []uint32 {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*uint32)(unsafe.Pointer(&b[0])), n)
}

package resume

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"strconv"
	"strings"

	"starling/cluster"
	"starling/nn"
	"starling/train"
)

// StateHeader is a state to start from, without its arrays, which are sent beside it.
type StateHeader struct {
	cluster.Position
	Steps   int     `json:"steps"`
	History History `json:"history"`
	Caches  bool    `json:"caches,omitempty"` // every worker sends its own too
	Only    bool    `json:"only,omitempty"`   // these are a worker's caches, nothing else
	// Shard is the file that the worker wrote its caches to; nil: they are sent.
	Shard *cluster.Shard `json:"shard,omitempty"`
	// Shards are files that every worker takes its rows from; none: what is its own is sent.
	Shards []string `json:"shards,omitempty"`
}

// PackState is a state as text and arrays. The name of an array starts with its group's name.
func PackState(st *train.State) (*StateHeader, *cluster.Stream, error) {
	var all []nn.Tensor
	for _, g := range []struct {
		name string
		list []nn.Tensor
	}{{"model", st.Model}, {"optimiser", st.Optim}, {"best", st.Best}} {
		for _, t := range g.list {
			t.Name = g.name + "/" + t.Name
			all = append(all, t)
		}
	}
	blob, err := PackTensors(all, nil)
	c := &StateHeader{Position: positionOf(st), Steps: st.Steps, History: historyIn(st), Caches: st.Caches != nil}
	return c, blob, err
}

// UnpackState is the inverse of PackState; own are the worker's caches, if any.
func UnpackState(c *StateHeader, blob, own []byte) (st *train.State, err error) {
	if c == nil {
		return nil, nil
	}
	all, err := UnpackTensors(blob)
	if err != nil {
		return nil, err
	}
	var caches []nn.Tensor
	if len(own) > 0 {
		if caches, err = nn.OpenSafetensors(own); err != nil {
			return nil, err
		}
	}
	if len(c.Shards) > 0 {
		if caches, err = openShards(c.Shards); err != nil {
			return nil, err
		}
	}
	st = c.History.state(c.Position)
	st.Steps, st.Caches = c.Steps, caches
	for _, t := range all {
		group, name, _ := strings.Cut(t.Name, "/")
		t.Name = name
		switch group {
		case "model":
			st.Model = append(st.Model, t)
		case "optimiser":
			st.Optim = append(st.Optim, t)
		case "best":
			st.Best = append(st.Best, t)
		}
	}
	return st, nil
}

// PackTensors is arrays as the bytes of a safetensors file.
func PackTensors(list []nn.Tensor, metadata map[string]string) (*cluster.Stream, error) {
	size, err := nn.SafetensorsSize(list, metadata)
	write := func(w io.Writer) error { return nn.WriteSafetensors(w, list, metadata) }
	return &cluster.Stream{Size: size, Write: write}, err
}

func UnpackTensors(blob []byte) ([]nn.Tensor, error) {
	list, _, err := nn.ReadSafetensors(bytes.NewReader(blob), int64(len(blob)))
	return list, err
}

// Sender takes a state, or a worker's caches.
type Sender func(body json.RawMessage, state *cluster.Stream) error

// SendState sends what of a rank's state has to be kept. The worker writes its caches to the folder of shards itself,
// and sends them only where it has none.
func SendState(rank int, shards string, send Sender) func(*train.State) error {
	return func(st *train.State) error {
		if rank == 0 { // all ranks have the same weights
			c, blob, err := PackState(st)
			if err == nil {
				err = sendCheckpoint(send, c, blob)
			}
			if err != nil {
				return err
			}
		}
		if st.Caches == nil {
			return nil
		}
		blob, err := PackTensors(st.Caches, map[string]string{"epoch": strconv.Itoa(st.Epoch)})
		if err != nil {
			return err
		}
		c := &StateHeader{Position: positionOf(st), Only: true}
		if c.Shard = WriteShard(shards, CachesFile(rank), blob); c.Shard != nil {
			blob = &cluster.Stream{Write: func(io.Writer) error { return nil }}
		}
		return sendCheckpoint(send, c, blob)
	}
}

// WriteShard writes a file to the folder of shards; nil: this host does not see the folder, or cannot write there.
func WriteShard(folder, name string, file *cluster.Stream) *cluster.Shard {
	if _, err := os.Stat(folder); folder == "" || err != nil {
		return nil
	}
	shard, err := cluster.WriteShard(folder, name, file.Write)
	if err != nil {
		return nil
	}
	return shard
}

func sendCheckpoint(send Sender, c *StateHeader, state *cluster.Stream) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return send(text, state)
}

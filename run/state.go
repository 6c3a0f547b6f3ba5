package run

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"starling/cluster"
	"starling/nn"
	"starling/train"
)

// checkpoint is a state to start from, without its arrays, which are sent beside it.
type checkpoint struct {
	cluster.Position
	Steps   int     `json:"steps"`
	History history `json:"history"`
	Caches  bool    `json:"caches,omitempty"` // every worker sends its own too
	Only    bool    `json:"only,omitempty"`   // these are a worker's caches, nothing else
}

// packState is a state as text and arrays. The name of an array starts with that of its group.
func packState(st *train.State) (*checkpoint, *cluster.Stream, error) {
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
	blob, err := packTensors(all, nil)
	c := &checkpoint{Position: positionOf(st), Steps: st.Steps, History: historyIn(st), Caches: st.Caches != nil}
	return c, blob, err
}

// unpackState is the inverse of packState; own are the worker's caches, if any.
func unpackState(c *checkpoint, blob, own []byte) (st *train.State, err error) {
	if c == nil {
		return nil, nil
	}
	all, err := unpackTensors(blob)
	if err != nil {
		return nil, err
	}
	var caches []nn.Tensor
	if len(own) > 0 {
		if caches, err = nn.OpenSafetensors(own); err != nil {
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

// packTensors is arrays as the bytes of a safetensors file.
func packTensors(list []nn.Tensor, metadata map[string]string) (*cluster.Stream, error) {
	size, err := nn.SafetensorsSize(list, metadata)
	write := func(w io.Writer) error { return nn.WriteSafetensors(w, list, metadata) }
	return &cluster.Stream{Size: size, Write: write}, err
}

func unpackTensors(blob []byte) ([]nn.Tensor, error) {
	list, _, err := nn.ReadSafetensors(bytes.NewReader(blob), int64(len(blob)))
	return list, err
}

// sender takes a state, or a worker's caches.
type sender func(body json.RawMessage, state *cluster.Stream) error

// sendState sends what of a rank's state has to be kept.
func sendState(rank int, send sender) func(*train.State) error {
	return func(st *train.State) error {
		if rank == 0 { // all ranks have the same weights
			c, blob, err := packState(st)
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
		blob, err := packTensors(st.Caches, map[string]string{"epoch": strconv.Itoa(st.Epoch)})
		if err != nil {
			return err
		}
		return sendCheckpoint(send, &checkpoint{Position: positionOf(st), Only: true}, blob)
	}
}

func sendCheckpoint(send sender, c *checkpoint, state *cluster.Stream) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	return send(text, state)
}

package web

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"starling/event"
)

// TestHostsBatchesAndGPUs: a page of mini-batches on two hosts of which one has GPUs: hosts, memory of GPUs, bytes
// between servers, and waits for the next batch.
func TestHostsBatchesAndGPUs(t *testing.T) {
	r := NewRun("")
	at := time.Unix(1e9, 0)
	r.Take(event.Started{Dataset: "products", Model: "sage", Strategy: "distdgl", Workers: 4, Epochs: 10}, at)
	for w := range 4 {
		x := event.Worker{Worker: w, Host: fmt.Sprint("node", w/2), PID: 70 + w, Epoch: 1, Memory: 3 << 30,
			Traffic: []event.Traffic{{Kind: "feature", Layer: -1, Link: "between_servers", Planned: 1 << 20,
				Counted: 1 << 20}},
			Slices: []event.Slice{{Ago: 2, Seconds: 1, Draw: 0.75, For: -1},
				{Ago: 1, Seconds: 1, Wait: 0.5, For: 3 - w}}}
		if w < 2 {
			x.Device, x.DeviceUsed, x.DeviceSize = "H200", int64(w+1)<<31, 8<<30
		}
		r.Take(x, at.Add(2*time.Second))
	}
	page := string(Page(r))
	for want, times := range map[string]int{
		"<td>node0</td>": 2, "<td>node1</td>": 2, ">GPU</th>": 1, ">GPU memory</th>": 1, "<td>H200</td>": 2,
		">2.0 GiB of 8.0 GiB<": 1, ">4.0 GiB of 8.0 GiB<": 1, "--share: 25%": 1, "--share: 50%": 1,
		"<td>between servers</td>": 1, `<path class="k-draw"`: 4, `<path class="k-wait"`: 4,
		"waiting for the next batch</span>": 1, "<dd>distdgl</dd>": 1} {
		if n := strings.Count(page, want); n != times {
			t.Errorf("%s is %d times there, want %d", want, n, times)
		}
	}
	alone := NewRun("")
	alone.On(event.Started{Workers: 1, Epochs: 1})
	alone.On(event.Worker{Host: "node0", Memory: 1 << 30})
	if strings.Contains(string(Page(alone)), "GPU</th>") {
		t.Error("a column of GPUs, and there are none")
	}
}

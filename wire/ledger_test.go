package wire

import (
	"encoding/json"
	"testing"

	"starling/coflow"
)

func TestLedger(t *testing.T) {
	l := NewLedger()
	for epoch := range uint32(1000) {
		k := Key{Coflow: coflow.ID{Epoch: epoch, Layer: int16(epoch % 3)}}
		l.add(true, Activation, SameHost, k, 10)
		l.add(false, Gradient, BetweenServers, k, 1)
		if epoch == 900 {
			old := Key{Coflow: coflow.ID{Epoch: 1}}
			l.add(true, Activation, SameHost, old, 5) // an epoch that is no longer told apart
		}
	}
	if got := l.Sent(); got != (Count{1001, 10005}) {
		t.Error(got)
	}
	if got := l.Received(); got != (Count{1000, 1000}) {
		t.Error(got)
	}
	c := l.Counts()
	if len(c) > 2*3*epochsKept {
		t.Errorf("%d entries are kept", len(c))
	}
	for epoch := int32(1000 - epochsKept); epoch < 1000; epoch++ {
		if got := c.Sum(func(e Entry) bool { return e.Epoch == epoch && e.Sent }); got != (Count{1, 10}) {
			t.Errorf("epoch %d: %v", epoch, got)
		}
	}
	if got, _ := json.Marshal([]any{c.ByKind(true), c.ByLink(false)}); string(got) !=
		`[{"activation":{"messages":1001,"bytes":10005}},{"between_servers":{"messages":1000,"bytes":1000}}]` {
		t.Error(string(got))
	}
	before := l.Counts()
	l.add(true, Control, SameProcess, Key{Coflow: coflow.ID{Epoch: 999}}, 3)
	since := l.Counts().Sub(before)
	if len(since) != 1 || since.Sum(func(Entry) bool { return true }) != (Count{1, 3}) {
		t.Error(since)
	}
}

package cluster

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzMessage: whatever a control connection carries is refused, or is a message as it was written.
func FuzzMessage(f *testing.F) {
	f.Add(written(f, message{Type: "state", Body: []byte(`{"epoch":7}`), blob: []byte("weights")}))
	f.Add([]byte("{\"type\":\"state\",\"bytes\":1099511627776}\t00000000\n"))
	f.Add([]byte("{\"type\":\"state\",\"bytes\":-1}\t00000000\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := heard(b)
		if err != nil {
			return
		}
		again, err := heard(written(t, m))
		if err != nil || again.Type != m.Type || !bytes.Equal(again.blob, m.blob) {
			t.Errorf("%+v, then %+v, %v", m, again, err)
		}
	})
}

// FuzzRosterPlaces: a worker takes a roster in which it and all peers have a place.
func FuzzRosterPlaces(f *testing.F) {
	f.Add([]byte(newMessage("roster", roster{Rank: 1, Peers: []Peer{{Rank: 0}, {Rank: 1, Server: 1}}, Own: 3}).Body), 5)
	f.Add([]byte(`{"rank":1,"peers":[{"rank":7},{"rank":-1,"server":-9}],"own":9223372036854775807}`), 0)
	f.Fuzz(func(t *testing.T, body []byte, blob int) {
		m, err := memberOf(message{Type: "roster", Body: body, blob: make([]byte, max(0, blob%1024))})
		if err != nil {
			return
		}
		for i, p := range m.Peers {
			if p.Rank != i || p.Server < 0 || p.Server >= len(m.Peers) {
				t.Errorf("peer %d is %+v", i, p)
			}
		}
	})
}

// FuzzReport: a coordinator takes whatever workers report of themselves, and shows it.
func FuzzReport(f *testing.F) {
	status, _ := json.Marshal(Status{Rank: 1, Waits: []Waiting{{Rank: 0, Seconds: 3, For: "rows"}}})
	f.Add("ping", status, []byte(`{"rank":0,"waits":[{"rank":99,"seconds":1e300}]}`))
	f.Add("failure", []byte(`{"text":"it","late":true}`), []byte(`{"text":7}`))
	f.Add("event", []byte(`{"kind":"epoch"}`), []byte(`[]`))
	f.Add("state", []byte(`{}`), []byte(`null`))
	f.Add("result", []byte(`{}`), []byte(`null`))
	f.Fuzz(func(t *testing.T, kind string, one, other []byte) {
		s := &session{}
		for rank := range 2 {
			s.joined = append(s.joined, &joinedWorker{conn: rank, rank: rank})
		}
		s.ranks = s.joined
		for rank, body := range [][]byte{one, other} {
			s.received(rank, message{Type: kind, Body: body})
		}
		shown := make([]Status, 2)
		for _, a := range s.out {
			if a.status != nil {
				shown[a.rank] = *a.status
			}
		}
		WhoWaits(shown)
		LongestWait(shown)
	})
}

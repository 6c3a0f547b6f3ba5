package cluster

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"testing"
	"time"

	"starling/wire"
)

// written is what a control connection carries for a message.
func written(t testing.TB, m message) []byte {
	t.Helper()
	a, b := net.Pipe()
	var got bytes.Buffer
	done := make(chan struct{})
	go func() {
		io.Copy(&got, b)
		close(done)
	}()
	if err := newControl(a, time.Second, wire.Real).write(m); err != nil {
		t.Fatal(err)
	}
	a.Close()
	<-done
	return got.Bytes()
}

// heard is what is read of some bytes.
func heard(b []byte) (message, error) {
	c := &control{conn: pipe{Reader: bytes.NewReader(b)}}
	c.in = bufio.NewReader(c.conn)
	m, _, err := c.read(maxGreeting, 1<<20, time.Second)
	return m, err
}

// Whichever bit is changed on the way, and wherever a message is cut off, no reader takes
// what is left for a message.
func TestFlippedBits(t *testing.T) {
	sent := message{Type: "state", Body: []byte(`{"epoch":7,"loss":[0.25,1e-3]}`), blob: []byte("weights\nof a layer")}
	whole := written(t, sent)
	if m, err := heard(whole); err != nil || m.Type != sent.Type || !bytes.Equal(m.Body, sent.Body) ||
		!bytes.Equal(m.blob, sent.blob) {
		t.Fatalf("%+v, %v", m, err)
	}
	for i := range whole {
		for bit := range 8 {
			changed := bytes.Clone(whole)
			changed[i] ^= 1 << bit
			m, err := heard(changed)
			// Capital hexadecimal digits are digits too.
			if same := m.Type == sent.Type && bytes.Equal(m.Body, sent.Body) &&
				bytes.Equal(m.blob, sent.blob); err == nil && !same {
				t.Errorf("byte %d, bit %d: %+v", i, bit, m)
			}
		}
		if m, err := heard(whole[:i]); err == nil {
			t.Errorf("cut off after %d bytes: %+v", i, m)
		}
	}
}

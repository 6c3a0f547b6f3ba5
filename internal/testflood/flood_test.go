package testflood

import (
	"net"
	"testing"
)

// TestFlood: connections arrive, and from several addresses where the system lets them.
func TestFlood(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	f := Start(l.Addr().String(), 2000)
	for range 100 {
		c, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		c.Close()
	}
	if n, rate := f.Stop(); n == 0 || rate <= 0 { // those of this moment may not have been counted
		t.Errorf("%d connections, %f per second", n, rate)
	}
}

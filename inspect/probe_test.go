package inspect

import (
	"net"
	"net/netip"
	"strings"
	"testing"

	"starling/wire/paths"
)

// loopbackPair describes two paths of this host.
func loopbackPair() *paths.File {
	return paths.Attached([]paths.Attachment{{Prefix: netip.MustParsePrefix("127.0.0.1/32"), Rate: 125e6, Latency: 1e-4},
		{Prefix: netip.MustParsePrefix("127.0.0.2/32"), Rate: 125e6, Latency: 1e-4}})
}

// TestProbeBetweenHosts: one side answers, the other finds a rate and a round trip for each path that both have; who
// does not know the token learns nothing.
func TestProbeBetweenHosts(t *testing.T) {
	t.Parallel()
	answerer := &prober{ProbeOptions: ProbeOptions{Token: []byte("secret"), Timeout: 60}, file: loopbackPair()}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() { answered <- answerer.answer(t.Context(), l) }()
	ask := func(token string) (string, error) {
		file := loopbackPair()
		file.Paths = file.Paths[1:] // it is in one of the networks only
		p := &prober{ProbeOptions: ProbeOptions{Token: []byte(token), Timeout: 60, Peer: l.Addr().String()}, file: file}
		return p.measure(t.Context())
	}
	if _, err := ask("guess"); err == nil || !strings.Contains(err.Error(), "token") {
		t.Errorf("with a wrong token: %v", err)
	}
	text, err := ask("secret")
	if err != nil {
		t.Fatal(err)
	}
	f, err := paths.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Paths) != 1 || f.Paths[0].Address != "127.0.0.2/32" || f.Hardware.Links[0].Bandwidth <= 0 ||
		f.Hardware.Network[0].Latency <= 0 {
		t.Errorf("found %s", text)
	}
	if err := <-answered; err != nil {
		t.Error(err)
	}
}

// TestProbeWantsASecret: beyond loopback a host does not answer without one.
func TestProbeWantsASecret(t *testing.T) {
	t.Parallel()
	f, err := paths.Auto()
	if err != nil {
		t.Skip("no network beyond 127.0.0.1")
	}
	if _, err := newProber(ProbeOptions{Timeout: 60}, f); err == nil || !strings.Contains(err.Error(), "--token-file") {
		t.Errorf("%v", err)
	}
}
